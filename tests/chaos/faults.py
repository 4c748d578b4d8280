"""A proxy before an object store on loopback that does to requests what networks and stores do.

Each request draws its fate from a seeded generator: to pass, to wait, to be answered with 500 or
503, to have its connection reset before or within the answer, to get nothing at all, to get a part
and then nothing, or to get a body that ends early. `python -m` runs it as a process of its own; a
line of JSON on its standard input sets the odds, and each line is answered with what was done so
far.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum

import uvloop

_LIMIT_BYTES = 1 << 20
_CHUNK_BYTES = 64 << 10
_HOLD_SECONDS = 120.0


class Fault(StrEnum):
    """What may happen to a request."""

    DELAY = "delay"
    INTERNAL_ERROR = "500"
    SLOW_DOWN = "503"
    RESET = "reset"
    RESET_IN_BODY = "reset in body"
    STALL = "stall"
    STALL_IN_BODY = "stall in body"
    TRUNCATE = "truncate"


@dataclass(frozen=True, slots=True)
class Odds:
    """How likely each fault is, for one request; what is left passes.

    `delay_seconds` is the most that a delayed request waits, `latency_seconds` what each of them
    waits on average. After `at_most` faults, if given, everything passes.
    """

    faults: Mapping[Fault, float] = field(default_factory=dict)
    latency_seconds: float = 0.0
    delay_seconds: float = 1.0
    at_most: int | None = None

    def draw(self, dice: random.Random) -> Fault | None:
        left = dice.random()
        for fault, likelihood in self.faults.items():
            left -= likelihood
            if left < 0:
                return fault
        return None

    def to_json(self) -> str:
        return json.dumps(
            {
                "faults": {str(fault): odds for fault, odds in self.faults.items()},
                "latency_seconds": self.latency_seconds,
                "delay_seconds": self.delay_seconds,
                "at_most": self.at_most,
            }
        )

    @classmethod
    def parse(cls, raw: str) -> Odds:
        values = json.loads(raw)
        faults = {Fault(name): odds for name, odds in values["faults"].items()}
        return cls(faults, values["latency_seconds"], values["delay_seconds"], values["at_most"])


CALM = Odds()


class FaultProxy:
    """The process of a proxy; `port` is where to reach it."""

    def __init__(self, target_port: int, seed: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(target_port), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._read())

    def set(self, odds: Odds) -> dict[str, int]:
        """Let `odds` hold from now on; return how many requests met what, those that passed
        included."""
        assert self._process.stdin is not None
        self._process.stdin.write(odds.to_json() + "\n")
        self._process.stdin.flush()
        counted: dict[str, int] = json.loads(self._read())
        return counted

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the proxy ended"
        return line

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


@contextmanager
def fault_proxy(target_port: int, seed: int) -> Iterator[FaultProxy]:
    """Run a proxy to `target_port`, which does no harm before it is `set` to."""
    proxy = FaultProxy(target_port, seed)
    try:
        yield proxy
    finally:
        proxy.close()


# --- the process ---------------------------------------------------------------------------------


class _Proxy:
    def __init__(self, target_port: int, seed: int) -> None:
        self._target_port = target_port
        self._dice = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.set(CALM)

    def set(self, odds: Odds) -> None:
        self.odds = odds
        self._left = odds.at_most

    def _draw(self) -> Fault | None:
        fault = None if self._left == 0 else self.odds.draw(self._dice)
        if fault is not None and self._left is not None:
            self._left -= 1
        return fault

    async def connected(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Serve one client's connection, request after request."""
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            store, forth = await asyncio.open_connection(
                "127.0.0.1", self._target_port, limit=_LIMIT_BYTES
            )
            try:
                while await self._pass_request(client, back, store, forth):
                    pass
            finally:
                forth.close()
        back.close()

    async def _pass_request(
        self,
        client: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        store: asyncio.StreamReader,
        forth: asyncio.StreamWriter,
    ) -> bool:
        """Pass one request and its answer on; return whether the connections can go on."""
        head = await client.readuntil(b"\r\n\r\n")
        body = await client.readexactly(_content_length(head) or 0)
        fault = self._draw()
        self.counts[fault or "passed"] += 1
        if self.odds.latency_seconds:
            await asyncio.sleep(self._dice.expovariate(1 / self.odds.latency_seconds))
        match fault:
            case Fault.DELAY:
                await asyncio.sleep(self._dice.uniform(0, self.odds.delay_seconds))
            case Fault.INTERNAL_ERROR | Fault.SLOW_DOWN:
                await _send(back, _refusal(fault, head))
                return True
            case Fault.RESET:
                back.transport.abort()
                return False
            case Fault.STALL:
                await _hold(client)
                return False
            case _:
                pass
        forth.write(head + body)
        answer = await store.readuntil(b"\r\n\r\n")
        await _send(back, answer)
        if head.startswith(b"HEAD ") or answer[9:12] in (b"204", b"304"):
            return _is_kept(answer)
        length = _content_length(answer)
        if length is None:
            await _pass_chunks(store, back)
            return _is_kept(answer)
        if fault in (Fault.RESET_IN_BODY, Fault.STALL_IN_BODY, Fault.TRUNCATE) and length:
            await _pass_bytes(store, back, self._dice.randrange(length))
            if fault is Fault.RESET_IN_BODY:
                back.transport.abort()
            elif fault is Fault.STALL_IN_BODY:
                await _hold(client)
            return False
        await _pass_bytes(store, back, length)
        return _is_kept(answer)


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def _hold(client: asyncio.StreamReader) -> None:
    """Do nothing until the client has had enough."""
    with suppress(TimeoutError):
        await asyncio.wait_for(client.read(1), _HOLD_SECONDS)


async def _pass_bytes(source: asyncio.StreamReader, sink: asyncio.StreamWriter, count: int) -> None:
    while count:
        chunk = await source.readexactly(min(count, _CHUNK_BYTES))
        count -= len(chunk)
        await _send(sink, chunk)


async def _pass_chunks(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Pass a body of unknown length on, in the chunks that it comes in."""
    size = -1
    while size:
        line = await source.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        await _send(sink, line + await source.readexactly(size + 2))


def _content_length(head: bytes) -> int | None:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return None


def _is_kept(head: bytes) -> bool:
    return b"\r\nconnection: close" not in head.lower()


def _refusal(fault: Fault, head: bytes) -> bytes:
    status, code = {
        Fault.INTERNAL_ERROR: ("500 Internal Server Error", "InternalError"),
        Fault.SLOW_DOWN: ("503 Slow Down", "SlowDown"),
    }[fault]
    body = b"" if head.startswith(b"HEAD ") else f"<Error><Code>{code}</Code></Error>".encode()
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def _serve(target_port: int, seed: int) -> None:
    proxy = _Proxy(target_port, seed)
    server = await asyncio.start_server(proxy.connected, "127.0.0.1", 0, limit=_LIMIT_BYTES)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        proxy.set(Odds.parse(line))
        print(json.dumps(proxy.counts), flush=True)
    os._exit(0)  # gone with whoever started it, and open connections with it


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
