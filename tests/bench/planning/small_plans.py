"""What small plans wait for while a coordinator makes a very large one.

The coordinator is a process of its own; 64 threads of this one ask it over Flight for plans of
small tables, one after the other: for some seconds alone, and then while one more client has it
plan the large table for the first time.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow.flight as fl

from floeberg.protocol.registration import REGISTER_WORKER, seal_registration
from tests.bench.planning.sides.floeberg_side import command, worker
from tests.bench.planning.tables import BenchTable
from tests.support.processes import Processes, processes

THREADS = 64
_ALONE_SECONDS = 10.0
_WORKERS = 8


@dataclass(frozen=True)
class Latencies:
    """Seconds of each small plan."""

    seconds: Sequence[float]

    def percentile(self, of: int) -> float:
        return statistics.quantiles(self.seconds, n=100)[of - 1]


@dataclass(frozen=True)
class SmallPlans:
    alone: Latencies
    beside: Latencies
    """Those that began and ended while the large plan was made."""
    large_seconds: float
    large_alone_seconds: float
    """The same, by another coordinator that has nothing else to do."""


def measure_small_plans(
    warehouse: Path, large: BenchTable, small: Sequence[BenchTable], flags: Sequence[str] = ()
) -> SmallPlans:
    with tempfile.TemporaryDirectory() as scratch, processes(Path(scratch)) as started:
        location = _coordinator(started, warehouse, flags)
        large_alone = _seconds(lambda: _ask(fl.connect(location), large))
    with tempfile.TemporaryDirectory() as scratch, processes(Path(scratch)) as started:
        location = _coordinator(started, warehouse, flags)
        for table in small:
            _ask(fl.connect(location), table)
        ended = threading.Event()
        with ThreadPoolExecutor(THREADS + 1) as pool:
            asking = [
                pool.submit(_ask_until, location, small[i % len(small)], ended)
                for i in range(THREADS)
            ]
            try:
                first = time.perf_counter()
                ended.wait(_ALONE_SECONDS)
                began = time.perf_counter()
                large_seconds = _seconds(lambda: _ask(fl.connect(location), large))
                last = time.perf_counter()
            finally:
                ended.set()  # also where the large plan fails
            plans = [plan for thread in asking for plan in thread.result()]
    return SmallPlans(
        Latencies([b - a for a, b in plans if a >= first and b <= began]),
        Latencies([b - a for a, b in plans if a >= began and b <= last]),
        large_seconds,
        large_alone,
    )


def _coordinator(started: Processes, warehouse: Path, flags: Sequence[str]) -> str:
    """Start a coordinator with workers that nobody will dial; return where it is."""
    process = started.coordinator(warehouse, "--lease-seconds", "86400", *flags)
    location = str(process.addresses["coordinator"])
    with fl.connect(location) as client:
        for number in range(_WORKERS):
            body = seal_registration(
                worker(number), started.keys, now_ms=time.time_ns() // 1_000_000
            )
            list(client.do_action(fl.Action(REGISTER_WORKER, body)))
    return location


def _ask_until(
    location: str, table: BenchTable, ended: threading.Event
) -> list[tuple[float, float]]:
    """Return when each plan began and ended."""
    plans = []
    with fl.connect(location) as client:
        while not ended.is_set():
            began = time.perf_counter()
            _ask(client, table)
            plans.append((began, time.perf_counter()))
    return plans


def _ask(client: fl.FlightClient, table: BenchTable) -> int:
    info = client.get_flight_info(fl.FlightDescriptor.for_command(command(table.name, [])))
    tasks: int = json.loads(info.app_metadata)["tasks"]
    return tasks


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
