"""`python -m tests.bench.fetching`: what it takes to fetch whole objects from a real S3, by client.

Each client is a process of its own, and they take turns: so many threads of it read all objects.
`far` is through a proxy that adds 20 ms to each request. Wall and CPU seconds are medians; `peak`
is how much more memory the process held than before, at most.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table as RichTable

from floeberg.protocol.storage import Storage
from tests.support.delaying_proxy import delaying_proxy
from tests.support.services import run_seaweed

BUCKET = "fetching"
OBJECTS: dict[str, tuple[int, int]] = {"63 x 6 MB": (63, 6_000_000), "1000 x 50 kB": (1000, 50_000)}

Read = Callable[[str], int]
"""Reads the object of a key, and returns its length."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--clients", nargs="+", default=list(CLIENTS), choices=list(CLIENTS))
    parser.add_argument(
        "--serve", nargs=2, metavar=("CLIENT", "PROPERTIES"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if arguments.serve:
        _answer(CLIENTS[arguments.serve[0]](json.loads(arguments.serve[1])))
        return
    report = RichTable("objects", "store", "at once", "client", "wall s", "CPU s", "peak MB")
    with tempfile.TemporaryDirectory(prefix="floeberg-fetching-") as folder, ExitStack() as stack:
        services = stack.enter_context(run_seaweed(Path(folder)))
        services.make_bucket(BUCKET)
        random_bytes = random.Random(7)
        for title, (count, size) in OBJECTS.items():
            body = random_bytes.randbytes(size)
            services.put(BUCKET, {f"{title[0]}/{n}": body for n in range(count)})
        near = urlsplit(services.s3_endpoint).port
        assert near is not None
        far = stack.enter_context(delaying_proxy(near, 0.02))
        for store, port in {"near": near, "far": far}.items():
            properties = {
                **services.s3_properties(),
                "s3.endpoint": f"http://127.0.0.1:{port}",
                "s3.path-style-access": "true",
            }
            with ExitStack() as clients:
                sides = {
                    name: clients.enter_context(_Client.started(name, properties))
                    for name in arguments.clients
                }
                for title, (count, size) in OBJECTS.items():
                    keys = [f"{title[0]}/{n}" for n in range(count)]
                    for threads in arguments.threads:
                        rounds = _in_turns(sides, keys, threads, arguments.rounds, count * size)
                        for name, seen in rounds.items():
                            cells = [f"{statistics.median(s[i] for s in seen):.2f}" for i in (0, 1)]
                            peak = max(s[2] for s in seen)
                            report.add_row(
                                title, store, str(threads), name, *cells, f"{peak / 1e6:.0f}"
                            )
    Console(width=110).print(report)


def _in_turns(
    sides: Mapping[str, _Client], keys: list[str], threads: int, rounds: int, expected: int
) -> dict[str, list[tuple[float, float, float]]]:
    seen: dict[str, list[tuple[float, float, float]]] = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, side in sides.items():
            size_bytes, *figures = side.fetch(keys, threads)
            if size_bytes != expected:
                raise SystemExit(f"{name} read {size_bytes} bytes, not {expected}")
            if turn:  # the first warms up
                seen[name].append((figures[0], figures[1], figures[2]))
    return seen


class _Client:
    """A process with one client in it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @classmethod
    @contextmanager
    def started(cls, name: str, properties: Mapping[str, str]) -> Iterator[_Client]:
        process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, "--serve", name, json.dumps(properties)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield cls(process)
        finally:
            process.kill()
            process.wait()

    def fetch(self, keys: list[str], threads: int) -> tuple[float, ...]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([keys, threads]) + "\n")
        self._process.stdin.flush()
        return tuple(json.loads(self._process.stdout.readline()))


# --- within a client's process -------------------------------------------------------------------


def _answer(read: Read) -> None:
    for line in sys.stdin:
        keys, threads = json.loads(line)
        before = _memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        wall, cpu = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(threads) as pool:
            size_bytes = sum(pool.map(read, keys))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps([size_bytes, wall, cpu, _memory("VmHWM") - before]), flush=True)


def _memory(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(t.split()[1]) * 1024 for t in status.splitlines() if t.startswith(name))


def _s3fs(properties: Mapping[str, str]) -> Read:
    from floeberg.process.storage.remote import RemoteStorage

    storage = RemoteStorage("s3", properties)
    return lambda key: len(storage.read(f"s3://{BUCKET}/{key}"))


def _s3fs_uvloop(properties: Mapping[str, str]) -> Read:
    import threading

    import s3fs
    import uvloop

    from floeberg.process.storage.s3 import s3_options

    loop = uvloop.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    fs = s3fs.S3FileSystem(loop=loop, skip_instance_cache=True, **s3_options(properties))
    return lambda key: len(fs.cat_file(f"{BUCKET}/{key}"))


def _obstore(properties: Mapping[str, str]) -> Read:
    from floeberg.process.storage.s3_storage import S3Storage

    def no_rest() -> Storage:
        raise AssertionError("nothing is left to s3fs here")

    storage = S3Storage(properties, no_rest)
    return lambda key: len(storage.read(f"s3://{BUCKET}/{key}"))


def _pyarrow(properties: Mapping[str, str]) -> Read:
    from pyarrow.fs import S3FileSystem

    endpoint = urlsplit(properties["s3.endpoint"])
    fs = S3FileSystem(
        endpoint_override=endpoint.netloc,
        scheme=endpoint.scheme,
        access_key=properties["s3.access-key-id"],
        secret_key=properties["s3.secret-access-key"],
        region=properties["s3.region"],
    )

    def read(key: str) -> int:
        with fs.open_input_stream(f"{BUCKET}/{key}") as stream:
            return len(stream.read())

    return read


CLIENTS: dict[str, Callable[[Mapping[str, str]], Read]] = {
    "s3fs": _s3fs,
    "s3fs, uvloop": _s3fs_uvloop,
    "obstore": _obstore,
    "pyarrow": _pyarrow,
}


if __name__ == "__main__":
    main()
