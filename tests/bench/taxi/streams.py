"""What a worker's streams cost beside the reading.

The same batches out of memory, by a worker and by `RecordBatchStream`; and the time from what
GetFlightInfo answers to the first batch of a small scan. `python -m` serves such batches.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, Popen

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.embedded import open_table
from floeberg.protocol.commands import ScanCommand, TableName
from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.storage import Storage
from floeberg.worker.placed import Placed
from floeberg.worker.reading.plans import PlacedBatch
from tests.bench.interleaved import time_in_turns
from tests.bench.taxi.aims import BARE_STREAM, FIRST_BATCH
from tests.bench.taxi.comparing import Terms
from tests.bench.taxi.lake import NAMESPACE, Lake
from tests.bench.taxi.markdown import table
from tests.bench.taxi.parts import Part
from tests.bench.taxi.sides.fleet import Fleet
from tests.support.fleet import LocalFleet

MONTH = "picked_up >= '2024-03-01T00:00:00' AND picked_up < '2024-04-01T00:00:00'"
_REPEATS = 8


def measure_streams(terms: Terms, lake: Lake) -> Part:
    """Return what streams take out of memory, and what a scan's first batch waits for."""
    lake.metadata_file("trips")
    terms.told("out of memory")
    bare, ratio = _bare_streams(lake, terms.rounds)
    terms.told("first batches")
    with Fleet(lake.warehouse, 2) as fleet:
        first, median = _first_batches(fleet.coordinator, terms.rounds * 10)
    return Part(f"{bare}\n\n{first}", {BARE_STREAM: ratio, FIRST_BATCH: median * 1000})


def descriptor(filter: str, select: Sequence[str] | None = None) -> fl.FlightDescriptor:
    """Return what asks for a scan of the trips."""
    name = TableName((NAMESPACE, "trips"))
    command = ScanCommand.from_arguments(name, filter=filter, select=select)
    return fl.FlightDescriptor.for_command(command.to_json())


# --- out of memory --------------------------------------------------------------------------------


class _FromMemory(fl.FlightServerBase):
    """pyarrow's own stream of batches, whatever the ticket."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self._rows = pa.Table.from_batches(batches)

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.RecordBatchStream:
        return fl.RecordBatchStream(self._rows)


def _serve(metadata_file: str) -> None:
    """Serve a month's batches, several times over, in both ways until standard input ends."""
    batches = open_table(metadata_file).scan(filter=MONTH).to_batches() * _REPEATS

    def read(plan: ReadPlan, storage: Storage, *, resume: ResumePlace) -> Iterator[Placed]:
        for number, batch in enumerate(batches):
            yield PlacedBatch(batch, ResumePlace(0, number))

    fleet, plain = LocalFleet(Path(metadata_file).parents[3]), _FromMemory(batches)
    threading.Thread(target=plain.serve, daemon=True).start()
    fleet.add_worker(read)
    print(fleet.location, f"grpc://127.0.0.1:{plain.port}", flush=True)
    sys.stdin.read()
    plain.shutdown()
    fleet.close()


def _bare_streams(lake: Lake, rounds: int) -> tuple[str, float]:
    """Return a table, and how many times as fast as pyarrow's own stream a worker's is."""
    command = [sys.executable, "-m", "tests.bench.taxi.streams", str(lake.metadata_file("trips"))]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as server, ExitStack() as stack:
        assert server.stdin is not None
        assert server.stdout is not None
        stack.callback(server.stdin.close)
        coordinator, plain = server.stdout.readline().split()
        with fl.connect(coordinator) as client:
            (endpoint,) = client.get_flight_info(descriptor(MONTH)).endpoints
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
    ours, theirs = (timing.median for timing in timings.values())
    header = ["out of memory, 19 columns", "million rows/s", "GB/s"]
    return table(header, lines), theirs / ours


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


def _first_batches(coordinator: str, rounds: int) -> tuple[str, float]:
    """Return how long the first batch takes after GetFlightInfo has answered, connected before: a
    table, and the median of the seconds."""
    seconds: list[float] = []
    with fl.connect(coordinator) as client, ExitStack() as stack:
        wanted = descriptor(MONTH, ["trip_id", "total_amount"])
        workers: dict[str, fl.FlightClient] = {}
        for _ in range(rounds + 5):
            (endpoint,) = client.get_flight_info(wanted).endpoints
            place = endpoint.locations[0].uri.decode()
            if place not in workers:
                workers[place] = stack.enter_context(fl.connect(place))
            began = time.perf_counter()
            reader = workers[place].do_get(endpoint.ticket)
            reader.read_chunk()
            seconds.append(time.perf_counter() - began)
            reader.cancel()
    warm = sorted(seconds[5:])
    median = statistics.median(warm)
    return table(
        ["first batch of a warm scan", "half within", "all within"],
        [["two columns of a month", f"{median * 1e3:.1f} ms", f"{warm[-1] * 1e3:.1f} ms"]],
    ), median


if __name__ == "__main__":
    _serve(sys.argv[1])
