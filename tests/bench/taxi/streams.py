"""`python -m tests.bench.taxi.streams`: what a worker's streams cost beside the reading.

The same batches out of memory, by a worker and by `RecordBatchStream`; the time from what
GetFlightInfo answers to the first batch of a small scan; and many clients at once.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, Popen

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.client import connect
from floeberg.embedded import open_table
from floeberg.protocol.commands import ScanCommand, TableName
from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.storage import Storage
from floeberg.worker.placed import Placed
from floeberg.worker.reading.plans import PlacedBatch
from tests.bench.interleaved import time_in_turns
from tests.bench.taxi.lake import NAMESPACE, Lake, default_directory
from tests.bench.taxi.reporting import markdown
from tests.bench.taxi.sides.fleet import Fleet
from tests.support.fleet import LocalFleet

_MONTH = "picked_up >= '2024-03-01T00:00:00' AND picked_up < '2024-04-01T00:00:00'"
_REPEATS = 8
_CLIENTS = (1, 2, 4, 8, 16, 32)
_SCANS = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lake", type=Path, default=default_directory())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    lake = Lake(arguments.lake)
    lake.metadata_file("trips")
    if arguments.serve:
        _serve(lake)
        return
    print(_bare_streams(arguments.lake, arguments.rounds), "\n")
    with Fleet(lake.warehouse, 2) as fleet:
        print(_first_batches(fleet.coordinator, arguments.rounds * 10), "\n")
        print(_clients(fleet.coordinator))


# --- out of memory --------------------------------------------------------------------------------


class _FromMemory(fl.FlightServerBase):
    """pyarrow's own stream of batches, whatever the ticket."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self._rows = pa.Table.from_batches(batches)

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.RecordBatchStream:
        return fl.RecordBatchStream(self._rows)


def _serve(lake: Lake) -> None:
    """Serve a month's batches, several times over, in both ways until standard input ends."""
    table = open_table(str(lake.metadata_file("trips")))
    batches = table.scan(filter=_MONTH).to_batches() * _REPEATS

    def read(plan: ReadPlan, storage: Storage, *, resume: ResumePlace) -> Iterator[Placed]:
        for number, batch in enumerate(batches):
            yield PlacedBatch(batch, ResumePlace(0, number))

    fleet, plain = LocalFleet(lake.warehouse), _FromMemory(batches)
    threading.Thread(target=plain.serve, daemon=True).start()
    fleet.add_worker(read)
    print(fleet.location, f"grpc://127.0.0.1:{plain.port}", flush=True)
    sys.stdin.read()
    plain.shutdown()
    fleet.close()


def _bare_streams(lake: Path, rounds: int) -> str:
    command = [sys.executable, "-m", "tests.bench.taxi.streams", "--serve", "--lake", str(lake)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as server, ExitStack() as stack:
        assert server.stdin is not None
        assert server.stdout is not None
        stack.callback(server.stdin.close)
        coordinator, plain = server.stdout.readline().split()
        with fl.connect(coordinator) as client:
            (endpoint,) = client.get_flight_info(_descriptor(filter=_MONTH)).endpoints
        worker = stack.enter_context(fl.connect(endpoint.locations[0]))
        other = stack.enter_context(fl.connect(plain))
        sides = {
            "a worker's stream": lambda: _read(worker, endpoint.ticket),
            "RecordBatchStream": lambda: _read(other, fl.Ticket(b"")),
        }
        timings = time_in_turns(sides, rounds)
    lines = []
    for name, timing in timings.items():
        rows, size = _rows_and_bytes(timing.answer)
        seconds = timing.median
        lines.append([name, f"{rows / seconds / 1e6:.1f}", f"{size / seconds / 1e9:.2f}"])
    return markdown(["out of memory, 19 columns", "million rows/s", "GB/s"], lines)


def _rows_and_bytes(answer: object) -> tuple[int, int]:
    assert isinstance(answer, tuple)
    rows, size = answer
    return int(rows), int(size)


def _read(client: fl.FlightClient, ticket: fl.Ticket) -> tuple[int, int]:
    rows = size = 0
    for chunk in client.do_get(ticket):
        batch: pa.RecordBatch | None = chunk.data
        assert batch is not None, "a chunk of rows has rows"
        rows += batch.num_rows
        size += batch.nbytes
    return rows, size


# --- over a fleet ---------------------------------------------------------------------------------


def _first_batches(coordinator: str, rounds: int) -> str:
    """Return how long the first batch takes after GetFlightInfo has answered, connected before."""
    seconds: list[float] = []
    with fl.connect(coordinator) as client, ExitStack() as stack:
        descriptor = _descriptor(filter=_MONTH, select=["trip_id", "total_amount"])
        workers: dict[str, fl.FlightClient] = {}
        for _ in range(rounds + 5):
            (endpoint,) = client.get_flight_info(descriptor).endpoints
            place = endpoint.locations[0].uri.decode()
            if place not in workers:
                workers[place] = stack.enter_context(fl.connect(place))
            began = time.perf_counter()
            reader = workers[place].do_get(endpoint.ticket)
            reader.read_chunk()
            seconds.append(time.perf_counter() - began)
            reader.cancel()
    warm = sorted(seconds[5:])
    return markdown(
        ["first batch of a warm scan", "half within", "all within"],
        [["two columns of a month", f"{statistics.median(warm) * 1e3:.1f} ms", _ms(warm[-1])]],
    )


def _clients(coordinator: str) -> str:
    """Return what so many clients at once get, each asking without a pause."""
    lines = []
    for clients in _CLIENTS:
        seconds: list[float] = []
        with connect(coordinator) as lake, ThreadPoolExecutor(clients) as pool:
            scan = lake.table((NAMESPACE, "trips")).scan(filter=_MONTH, select=["total_amount"])
            began = time.perf_counter()
            seconds = list(pool.map(lambda _, run=scan.to_arrow: _timed(run), range(_SCANS)))
            took = time.perf_counter() - began
        seconds.sort()
        lines.append(
            [
                str(clients),
                f"{_SCANS / took:.0f}",
                _ms(statistics.median(seconds)),
                _ms(seconds[-1]),
            ]
        )
    return markdown(["clients at once", "scans/s", "half within", "all within"], lines)


def _timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


def _descriptor(filter: str, select: list[str] | None = None) -> fl.FlightDescriptor:
    name = TableName((NAMESPACE, "trips"))
    command = ScanCommand.from_arguments(name, filter=filter, select=select)
    return fl.FlightDescriptor.for_command(command.to_json())


if __name__ == "__main__":
    main()
