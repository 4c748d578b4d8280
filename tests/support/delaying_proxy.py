"""A proxy before a server on loopback that is as far away as one likes: `python -m` runs it.

A process of its own, so that what it costs is not counted to whoever is measured.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvloop

_BUFFER_BYTES = 1 << 20


@contextmanager
def delaying_proxy(target_port: int, delay_seconds: float) -> Iterator[int]:
    """Give the port of a proxy to `target_port` that holds back what clients send."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(target_port), str(delay_seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


async def _serve(target_port: int, delay_seconds: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(
            "127.0.0.1", target_port, limit=_BUFFER_BYTES
        )
        await asyncio.gather(
            _pass_on(reader, far_writer, delay_seconds), _pass_on(far_reader, writer, 0)
        )

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=_BUFFER_BYTES)
    print(server.sockets[0].getsockname()[1], flush=True)
    # gone with whoever started it, and open connections with it
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_seconds: float
) -> None:
    with suppress(OSError):  # the other end has gone
        while chunk := await reader.read(_BUFFER_BYTES):
            if delay_seconds:
                await asyncio.sleep(delay_seconds)
            writer.write(chunk)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), float(sys.argv[2])))
