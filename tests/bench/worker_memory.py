"""`make bench-memory`: what clients that read little make a worker hold.

A worker process with a budget reads files of one row group of 128 MB each, from this machine's disk
and from a real S3. A client takes a batch a second while 200 streams are opened of which nothing is
read; those clients go, and 50 queries come that are cancelled after their first batch.
`peak` is the most memory that the worker's process had resident until then, and must stay below its
budget. `refused` were told at once that the worker is busy.

Clients are processes of their own, and buffer little: left to themselves, gRPC's take tens of MB
for a stream that nobody reads.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.flight as fl
from rich.console import Console
from rich.table import Table as RichTable

from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.tickets import seal_ticket
from tests.support.gate import now_ms
from tests.support.idle import SMALL_WINDOW, plan_of_doubles, write_doubles
from tests.support.processes import Processes, environment, processes
from tests.support.services import run_seaweed
from tests.support.waiting import wait_until

_BUCKET = "memory"
_ROWS = 1_000_000
_FILES = 4
_CLIENTS, _STREAMS_EACH = 4, 50
_CANCELLED = 50
_SLOW_BATCHES = 10


@dataclass(frozen=True, slots=True)
class _Load:
    """What came, how many streams of it were served and refused, how long the slowest refusal took,
    and the worker's peak until then."""

    what: str
    served: int
    refused: int
    refused_seconds: float
    peak_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=1 << 30, help="the worker's, in bytes")
    parser.add_argument(
        "--client", nargs=3, metavar=("KIND", "LOCATION", "TICKET"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if arguments.client:
        kind, location, ticket = arguments.client
        with fl.connect(location, generic_options=SMALL_WINDOW) as client:
            _CLIENT_KINDS[kind](client, fl.Ticket(Path(ticket).read_bytes()))
        return
    report = RichTable("files", "load", "served", "refused", "within", "peak MB", "budget MB")
    is_over = False
    with tempfile.TemporaryDirectory(prefix="floeberg-memory-") as name, ExitStack() as stack:
        folder = Path(name)
        for store, plan in _plans(folder, stack):
            with processes(folder / store) as started:
                for load in _loads(started, plan, folder / store, arguments.budget):
                    is_over = is_over or load.peak_bytes > arguments.budget
                    report.add_row(
                        store,
                        load.what,
                        f"{load.served}",
                        f"{load.refused}",
                        f"{load.refused_seconds * 1000:,.0f} ms" if load.refused else "",
                        f"{load.peak_bytes / 1e6:,.0f}",
                        f"{arguments.budget / 1e6:,.0f}",
                    )
    Console(width=110).print(report)
    if is_over:
        raise SystemExit("the worker was over its budget")


def _plans(folder: Path, stack: ExitStack) -> Iterator[tuple[str, ReadPlan]]:
    file = folder / "data.parquet"
    write_doubles(file, _ROWS)
    services = stack.enter_context(run_seaweed(folder))
    services.make_bucket(_BUCKET)
    services.put(_BUCKET, {f"{n}.parquet": file.read_bytes() for n in range(_FILES)})
    far = {**services.s3_properties(), "s3.path-style-access": "true"}
    stores: dict[str, tuple[str, Mapping[str, str]]] = {
        "local": (f"file://{file}", {}),
        "S3": (f"s3://{_BUCKET}/{{}}.parquet", far),
    }
    for store, (location, properties) in stores.items():
        (folder / store).mkdir()
        locations = [location.format(n) for n in range(_FILES)]
        size = file.stat().st_size
        yield store, plan_of_doubles(folder / store, locations, _ROWS, size, properties)


def _loads(started: Processes, plan: ReadPlan, folder: Path, budget: int) -> Iterator[_Load]:
    flags = ("--max-streams", "256", "--memory-bytes", str(budget), "--stall-seconds", "0")
    worker = started.worker(None, *flags)
    ticket = folder / "ticket"
    lasts = now_ms() + 3_600_000
    ticket.write_bytes(seal_ticket(plan, started.keys, principal=None, expires_at_ms=lasts))
    location = worker.addresses["location"]
    yield _Load("none", 0, 0, 0.0, worker.peak_bytes())
    with ExitStack() as stack:
        slow = stack.enter_context(_client("slow", location, ticket))
        slow.next_answer()
        idle = [stack.enter_context(_client("idle", location, ticket)) for _ in range(_CLIENTS)]
        answers = [client.next_answer() for client in idle]
        last = slow.next_answer()  # it has gone on for as long as it takes
        served, refused = (sum(answer[i] for answer in answers) for i in (0, 1))
        seconds = max(answer[2] for answer in answers)
        what = f"{_CLIENTS * _STREAMS_EACH} idle readers"
        yield _Load(what, int(served), int(refused), seconds, worker.peak_bytes())
        yield _Load("1 batch a second beside them", *_counts(last), worker.peak_bytes())
        for client in idle:
            client.kill()
        wait_until(lambda: worker.status()["streams"] <= 1, "their streams to end")
        cancelled = stack.enter_context(_client("cancelled", location, ticket))
        what = f"{_CANCELLED} cancelled queries, the idle ones gone"
        yield _Load(what, *_counts(cancelled.next_answer()), worker.peak_bytes())


def _counts(answer: tuple[float, float, float]) -> tuple[int, int, float]:
    return int(answer[0]), int(answer[1]), answer[2]


# --- clients, each a process ---------------------------------------------------------------------


class _Client:
    """A client's process, and its answers: streams served and refused, and the longest refusal."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def next_answer(self) -> tuple[float, float, float]:
        assert self._process.stdout is not None
        served, refused, seconds = map(float, self._process.stdout.readline().split())
        return served, refused, seconds

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def _client(kind: str, location: str, ticket: Path) -> Iterator[_Client]:
    """Run a client until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, "--client", kind, location, str(ticket)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    client = _Client(process)
    try:
        yield client
    finally:
        client.kill()


class _Opening:
    """Opens streams, and counts those that are refused."""

    def __init__(self, client: fl.FlightClient, ticket: fl.Ticket) -> None:
        self._client = client
        self._ticket = ticket
        self._served = self._refused = 0
        self._seconds = 0.0

    def open(self) -> fl.FlightStreamReader | None:
        began = time.monotonic()
        try:
            reader = self._client.do_get(self._ticket)
        except fl.FlightUnavailableError:
            self._seconds = max(self._seconds, time.monotonic() - began)
            self._refused += 1
            return None
        self._served += 1
        return reader

    def answer(self) -> None:
        print(self._served, self._refused, self._seconds, flush=True)


def _idle(client: fl.FlightClient, ticket: fl.Ticket) -> None:
    opening = _Opening(client, ticket)
    readers = [opening.open() for _ in range(_STREAMS_EACH)]
    opening.answer()
    sys.stdin.read()
    del readers


def _slow(client: fl.FlightClient, ticket: fl.Ticket) -> None:
    opening = _Opening(client, ticket)
    reader = opening.open()
    assert reader is not None
    opening.answer()
    for _ in range(_SLOW_BATCHES):
        reader.read_chunk()
        time.sleep(1)
    opening.answer()
    sys.stdin.read()


def _cancelled(client: fl.FlightClient, ticket: fl.Ticket) -> None:
    opening = _Opening(client, ticket)
    for _ in range(_CANCELLED):
        reader = opening.open()
        if reader is not None:
            reader.read_chunk()
            reader.cancel()
    opening.answer()


_CLIENT_KINDS = {"idle": _idle, "slow": _slow, "cancelled": _cancelled}


if __name__ == "__main__":
    main()
