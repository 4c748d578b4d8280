"""What a coordinator does for a fleet that is larger than this machine: for real, but for the
workers, who register and whom nobody dials.

Clients ask for neighbouring days of a table of 100,000 files, until there are 10,000 endpoints: one
answer names 20 workers at most, so that they are many answers.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pyarrow.flight as fl

from floeberg.protocol.commands import ScanCommand, TableName
from floeberg.protocol.registration import (
    LEAVE_WORKER,
    REGISTER_WORKER,
    LeaveWorker,
    RegisterWorker,
    seal_registration,
)
from floeberg.protocol.sealing import Keyring
from tests.bench.planning.generating import existing_or_generated
from tests.bench.planning.sides.floeberg_side import worker
from tests.bench.planning.tables import BenchTable
from tests.bench.taxi.markdown import table
from tests.support.processes import processes

_FIRST_DAY = date(2025, 1, 1)
_LAST_START = 360
_DAYS_A_SCAN = 2

Places = Sequence[Sequence[str]]
"""By scan, the first location of each of its endpoints."""


@dataclass(frozen=True)
class Answers:
    """What GetFlightInfo took for each scan, and where its endpoints are read: with all workers,
    after one of them has left, and after another has come beside all."""

    workers: int
    seconds: Sequence[float]
    answer_bytes: Sequence[int]
    coordinator_seconds: float
    """Of its processor, for one scan."""
    places: Places
    without_one: Places
    left: str
    with_another: Places

    @property
    def endpoints(self) -> int:
        return sum(len(scan) for scan in self.places)


def ask_for_many(
    directory: Path,
    *,
    workers: int = 100,
    endpoints: int = 10_000,
    files: int = 100_000,
    cpu_seconds: Callable[[int], float],
) -> Answers:
    """Return how a coordinator answers, whose decoded manifests are warm. The table is generated
    below `directory` when it is not there; `cpu_seconds` tells what a process has used."""
    bench_table = BenchTable(files)
    existing_or_generated(bench_table, directory)
    with tempfile.TemporaryDirectory() as scratch, processes(Path(scratch)) as started:
        process = started.coordinator(directory, "--lease-seconds", "86400")
        with fl.connect(str(process.addresses["coordinator"])) as client:
            for number in range(workers):
                _register(client, started.keys, number)
            each = len(_endpoints(client.get_flight_info(_scan(bench_table, 0, 1))))
            scans = [
                _scan(bench_table, number, -(-endpoints // each))
                for number in range(-(-endpoints // each))
            ]
            seconds: list[float] = []
            sizes: list[int] = []
            places: list[Sequence[str]] = []
            began = cpu_seconds(process.process.pid)
            for scan in scans:
                asked = time.perf_counter()
                info = client.get_flight_info(scan)
                seconds.append(time.perf_counter() - asked)
                sizes.append(len(info.serialize()))
                places.append(_endpoints(info))
            used = cpu_seconds(process.process.pid) - began
            left = worker(workers // 2)
            _tell(client, started.keys, LEAVE_WORKER, LeaveWorker(worker_id=left.worker_id))
            without_one = [_endpoints(client.get_flight_info(scan)) for scan in scans]
            _register(client, started.keys, workers // 2)
            _register(client, started.keys, workers)
            with_another = [_endpoints(client.get_flight_info(scan)) for scan in scans]
    return Answers(
        workers,
        seconds,
        sizes,
        used / len(scans),
        places,
        without_one,
        left.location,
        with_another,
    )


def moved(before: Places, after: Places) -> float:
    """Return which part of the endpoints is read elsewhere than before; 1 for a scan that is cut
    otherwise."""
    count = changed = 0
    for old, new in zip(before, after, strict=True):
        count += len(old)
        same = sum(a == b for a, b in zip(old, new, strict=False)) if len(old) == len(new) else 0
        changed += len(old) - same
    return changed / count


def shares(places: Places, workers: int) -> tuple[float, float]:
    """Return the least and the most endpoints of a worker, as parts of an equal share."""
    counts = Counter(place for scan in places for place in scan)
    equal = sum(counts.values()) / workers
    least = min(counts.values()) if len(counts) >= workers else 0
    return least / equal, max(counts.values()) / equal


def answers_table(found: Answers) -> str:
    """Return what was found in Markdown."""
    least, most = shares(found.places, found.workers)
    one = 1 / found.workers
    of_left = Counter(place for scan in found.places for place in scan)[found.left]
    rows: Mapping[str, str] = {
        "answers, endpoints": f"{len(found.places):,}, {found.endpoints:,}",
        "GetFlightInfo, half within": f"{statistics.median(found.seconds) * 1e3:.1f} ms",
        "GetFlightInfo, all within": f"{max(found.seconds) * 1e3:.1f} ms",
        "the coordinator's CPU for an answer": f"{found.coordinator_seconds * 1e3:.1f} ms",
        "an answer": f"{statistics.median(found.answer_bytes) / 1e3:,.0f} kB",
        "a worker's endpoints, least and most to an equal share": f"{least:.2f}x, {most:.2f}x",
        "endpoints of a worker that leaves": f"{of_left / found.endpoints:.1%}",
        "endpoints that are read elsewhere then": f"{moved(found.places, found.without_one):.1%}",
        f"the same for one that comes (at least {one:.1%} should)": (
            f"{moved(found.places, found.with_another):.1%}"
        ),
    }
    return table([f"{found.workers} workers", ""], [[name, value] for name, value in rows.items()])


def _scan(bench_table: BenchTable, number: int, of: int) -> fl.FlightDescriptor:
    """Return the scan of two days, the first of which is this far through the year."""
    start = _FIRST_DAY + timedelta(days=number * _LAST_START // of)
    end = start + timedelta(days=_DAYS_A_SCAN)
    command = ScanCommand.from_arguments(
        TableName(("bench", bench_table.name)),
        filter=f"occurred_at >= '{start}T00:00:00Z' AND occurred_at < '{end}T00:00:00Z'",
    )
    return fl.FlightDescriptor.for_command(command.to_json())


def _endpoints(info: fl.FlightInfo) -> list[str]:
    return [endpoint.locations[0].uri.decode() for endpoint in info.endpoints]


def _register(client: fl.FlightClient, keys: Keyring, number: int) -> None:
    _tell(client, keys, REGISTER_WORKER, worker(number))


def _tell(
    client: fl.FlightClient, keys: Keyring, action: str, message: RegisterWorker | LeaveWorker
) -> None:
    body = seal_registration(message, keys, now_ms=time.time_ns() // 1_000_000)
    list(client.do_action(fl.Action(action, body)))
