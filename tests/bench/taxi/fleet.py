"""100 workers and 10,000 endpoints: what a coordinator does for real, and what streams would take.

What a scan costs is measured with one worker and with two on this machine, and what a model makes
of that is held to what is measured with one, two and four, by one client and by eight. With the
same costs the streams of 10,000 endpoints are simulated, at the workers that a coordinator named.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow.flight as fl

from floeberg.client import connect
from tests.bench.taxi.comparing import Terms
from tests.bench.taxi.lake import NAMESPACE, Lake
from tests.bench.taxi.many_workers import Places, answers_table, ask_for_many
from tests.bench.taxi.markdown import table
from tests.bench.taxi.parts import Part
from tests.bench.taxi.sides.fleet import Fleet
from tests.bench.taxi.sides.serving import cpu_seconds
from tests.bench.taxi.simulation import Asking, Flow, ends
from tests.bench.taxi.streams import descriptor

_COLUMNS = ("pickup_zone", "total_amount")
_CLIENTS = (1, 8)
_WORKERS = (1, 2, 4)
_THIS_MACHINE = float(os.cpu_count() or 1)
"""Cores, in all."""
_LEAST_CORES = 0.1


@dataclass(frozen=True)
class Usage:
    """What one scan has taken: the plan and all of it in seconds, core seconds of the client and of
    the workers, and the number of its endpoints and data files. `others` is how many cores other
    processes had meanwhile."""

    plan: float
    seconds: float
    client: float
    workers: float
    endpoints: int
    files: int
    others: float = 0.0


@dataclass(frozen=True)
class Costs:
    """What a data file costs, in core seconds; at workers it may be more where there are more of
    them on a machine. `plan` and `delay` are seconds until endpoints, and a stream's first batch,
    are there."""

    client: float
    worker: float
    worker_more: float
    plan: float
    delay: float

    @classmethod
    def of(cls, one: Usage, two: Usage, delay: float) -> Costs:
        """Return the costs by what was measured with one worker and with two."""
        more = max(two.workers / two.files - one.workers / one.files, 0.0)
        client = (one.client + two.client) / (one.files + two.files)
        return cls(client, one.workers / one.files, more, (one.plan + two.plan) / 2, delay)

    def at_workers(self, workers: int) -> float:
        return self.worker + self.worker_more * (workers - 1)


def measure_fleet(terms: Terms, lake: Lake) -> Part:
    lake.metadata_file("trips")
    usages: dict[tuple[int, int], Usage] = {}
    delays: list[float] = []
    for workers in _WORKERS:
        terms.told(f"{workers} workers here")
        with Fleet(lake.warehouse, workers) as fleet:
            files = len(lake.data_files("trips"))
            for clients in _CLIENTS:
                usages[workers, clients] = _measured(fleet, clients, terms.rounds, files)
            if workers == 1:
                delays = _first_batches(fleet.coordinator, 2 * terms.rounds + 1)
    costs = Costs.of(usages[1, 1], usages[2, 1], statistics.median(delays))
    terms.told("a coordinator with 100 workers")
    answers = ask_for_many(lake.warehouse.parent / "planning", cpu_seconds=cpu_seconds)
    terms.told("10,000 streams that are not there")
    texts = [
        answers_table(answers),
        _costs_text(costs),
        _checked(usages, costs),
        _fleets(answers.places, answers.coordinator_seconds, costs),
    ]
    return Part("\n\n".join(texts))


# --- on this machine ------------------------------------------------------------------------------


def _measured(fleet: Fleet, clients: int, rounds: int, files: int) -> Usage:
    """Return what a scan takes where so many clients scan at once; the seconds are those of all of
    them, the median of rounds."""
    with connect(fleet.coordinator) as lake, ThreadPoolExecutor(clients) as pool:
        scan = lake.table((NAMESPACE, "trips")).scan(select=_COLUMNS)

        def read(_: int) -> int:
            return sum(batch.num_rows for batch in scan.to_batches())

        list(pool.map(read, range(2 * clients)))
        meter = _Meter(fleet)
        seconds = [_timed(lambda: list(pool.map(read, range(clients)))) for _ in range(rounds)]
        client, workers, others = meter.read()
        plans = [_timed(scan.planned) for _ in range(rounds)]
        endpoints = len(scan.planned().info.endpoints)
    scans = rounds * clients
    return Usage(
        statistics.median(plans),
        statistics.median(seconds),
        client / scans,
        workers / scans,
        endpoints,
        files,
        others,
    )


class _Meter:
    """What processors have done since it was made."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._workers = fleet.worker_processes()
        self._before = self._now()

    def read(self) -> tuple[float, float, float]:
        """Return the core seconds of this process and of the workers, and how many cores processes
        that have nothing to do with this had."""
        at, client, workers, fleet, busy = (
            now - before for now, before in zip(self._now(), self._before, strict=True)
        )
        return client, workers, max(busy - client - fleet, 0.0) / at

    def _now(self) -> tuple[float, float, float, float, float]:
        # user, nice and system, and what interrupts take, of all processors
        jiffies = [int(text) for text in Path("/proc/stat").read_text().split()[1:9]]
        busy = sum(jiffies) - jiffies[3] - jiffies[4]
        return (
            time.perf_counter(),
            time.process_time(),
            sum(map(cpu_seconds, self._workers)),
            sum(map(cpu_seconds, self._fleet.processes())),
            busy / os.sysconf("SC_CLK_TCK"),
        )


def _first_batches(coordinator: str, times: int) -> list[float]:
    """Return how long streams with one row take from DoGet on, the first one left out."""
    with fl.connect(coordinator) as client:
        (endpoint,) = client.get_flight_info(descriptor("trip_id = 1", ["trip_id"])).endpoints
        with fl.connect(endpoint.locations[0]) as worker:
            found = [
                _timed(lambda: worker.do_get(endpoint.ticket).read_all()) for _ in range(times)
            ]
    return found[1:]


def _timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def predicted(usage: Usage, costs: Costs, workers: int, clients: int) -> float:
    """Return how long so many scans at once should take on what this machine has left for them."""
    files = usage.files / usage.endpoints
    at_worker, at_client = costs.at_workers(workers) * files, costs.client * files
    flows = [
        Flow(f"client {c}", {"machine": at_worker + at_client}, max(at_worker, at_client))
        for c in range(clients)
        for _ in range(usage.endpoints)
    ]
    asking = Asking(costs.plan, delay=costs.delay)
    machine = max(_THIS_MACHINE - usage.others, _LEAST_CORES)
    found = ends(flows, {"machine": machine}, {f"client {c}": asking for c in range(clients)})
    return max(found.values())


def _costs_text(costs: Costs) -> str:
    return (
        "What the model is given, by one worker and by two on this machine: a plan"
        f" {costs.plan * 1e3:.1f} ms, a stream's beginning {costs.delay * 1e3:.1f} ms; of a file of"
        f" trips, two columns of which are read, {costs.worker * 1e3:.1f} ms of a worker's core"
        f" (and {costs.worker_more * 1e3:.1f} for each worker beside it) and"
        f" {costs.client * 1e3:.1f} ms of the client's. What it says, beside what was measured:"
    )


def _checked(usages: Mapping[tuple[int, int], Usage], costs: Costs) -> str:
    rows = []
    for (workers, clients), usage in usages.items():
        expected = predicted(usage, costs, workers, clients)
        rows.append(
            [
                str(workers),
                str(clients),
                f"{usage.others:.1f}",
                f"{usage.seconds * 1e3:,.0f} ms",
                f"{expected * 1e3:,.0f} ms",
                f"{expected / usage.seconds:.2f}x",
            ]
        )
    header = ["workers here", "clients at once", "cores that others had"]
    return table([*header, "measured", "by the model", "ratio"], rows)


# --- elsewhere ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Simulated:
    """When half of the clients, and all, have all their rows; and which part of the workers' cores
    was used until then."""

    half: float
    all: float
    used: float


def simulated(
    places: Places, costs: Costs, planning: float, cores: float = 2.0, slow: int = 0
) -> Simulated:
    """Return what clients get who all ask at once, each on a machine of its own, when each endpoint
    is one file and is read at its place.

    A worker has so many `cores`; the first `slow` of them have half. `planning` is what a plan
    takes of the core on which the coordinator's Python runs.
    """
    workers = sorted({place for scan in places for place in scan})
    capacity = {w: cores / 2 if n < slow else cores for n, w in enumerate(workers)}
    clients = {
        f"client {n}": Asking(costs.plan + n * planning, delay=costs.delay)
        for n in range(len(places))
    }
    flows = [
        Flow(f"client {n}", {place: costs.worker, f"client {n}": costs.client}, costs.worker)
        for n, scan in enumerate(places)
        for place in scan
    ]
    found = ends(flows, {**capacity, **dict.fromkeys(clients, 2.0)}, clients)
    last = max(found.values())
    work = sum(len(scan) for scan in places) * costs.worker
    return Simulated(
        statistics.median(found.values()), last, work / (sum(capacity.values()) * last)
    )


def _fleets(places: Places, planning: float, costs: Costs) -> str:
    """Return the simulated streams on the workers that were named, on fewer, and with slow ones."""
    cases: dict[str, Simulated] = {}
    for workers in (10, 25, 50, 100):
        cases[f"{workers} workers"] = simulated(_on_fewer(places, workers), costs, planning)
    cases["100 workers, 10 of them half as fast"] = simulated(places, costs, planning, slow=10)
    cases["100 workers, 4 coordinators"] = simulated(places, costs, planning / 4)
    endpoints = sum(len(scan) for scan in places)
    header = ["simulated, 2 cores each", "half have all", "all have all", "streams/s", "cores used"]
    return table(
        header,
        [
            [
                name,
                f"{case.half:.2f} s",
                f"{case.all:.2f} s",
                f"{endpoints / case.all:,.0f}",
                f"{case.used:.0%}",
            ]
            for name, case in cases.items()
        ],
    )


def _on_fewer(places: Places, workers: int) -> list[Sequence[str]]:
    """Return the places as they would be with fewer workers, who share those of others evenly."""
    names = sorted({place for scan in places for place in scan})
    fewer = {name: names[number % workers] for number, name in enumerate(names)}
    return [[fewer[place] for place in scan] for scan in places]
