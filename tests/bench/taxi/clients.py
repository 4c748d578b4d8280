"""1 to 32 clients at once, each of which asks again as soon as it has its answer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from adbc_driver_flightsql import dbapi

from floeberg.client import connect
from tests.bench.taxi.comparing import Terms
from tests.bench.taxi.lake import NAMESPACE, Lake
from tests.bench.taxi.markdown import table
from tests.bench.taxi.parts import Part
from tests.bench.taxi.plotting import lines
from tests.bench.taxi.sides.fleet import Fleet
from tests.bench.taxi.streams import MONTH

CLIENTS = (1, 2, 4, 8, 16, 32)
_ANSWERS_EACH_ROUND = 16
_SQL = f"SELECT sum(total_amount) FROM {NAMESPACE}.trips WHERE {MONTH}"

Ask = Callable[[], object]


@dataclass(frozen=True)
class Answers:
    """Seconds of each answer, the least first, and of all together."""

    seconds: tuple[float, ...]
    in_all: float

    @property
    def rate(self) -> float:
        return len(self.seconds) / self.in_all

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def slowest(self) -> float:
        return self.seconds[-1]


def measure_clients(terms: Terms, lake: Lake) -> Part:
    """Return what so many clients get from one worker and from two."""
    lake.metadata_file("trips")
    answers = max(_ANSWERS_EACH_ROUND * terms.rounds, max(CLIENTS))
    found: dict[str, dict[int, Answers]] = {}
    for workers in (1, 2):
        with Fleet(lake.warehouse, workers) as fleet:
            for kind, asking in {"Flight": _scanning, "Flight SQL": _summing}.items():
                name = f"{kind}, {workers} worker{'s' if workers > 1 else ''}"
                terms.told(name)
                with asking(fleet.coordinator) as ask:
                    ask()
                    found[name] = {n: asked(ask, n, answers) for n in CLIENTS}
    picture = lines(
        "answers a second",
        "clients at once",
        {name: [(n, a.rate) for n, a in by.items()] for name, by in found.items()},
    )
    return Part(_table(found), {}, {"clients.svg": picture})


def asked(ask: Ask, clients: int, answers: int) -> Answers:
    """Return what so many answers take by so many clients at once."""

    def timed(_: int) -> float:
        began = time.perf_counter()
        ask()
        return time.perf_counter() - began

    with ThreadPoolExecutor(clients) as pool:
        began = time.perf_counter()
        seconds = list(pool.map(timed, range(answers)))
        return Answers(tuple(sorted(seconds)), time.perf_counter() - began)


@contextmanager
def _scanning(coordinator: str) -> Iterator[Ask]:
    """Give what reads one column of a month by floeberg's client."""
    with connect(coordinator) as lake:
        scan = lake.table((NAMESPACE, "trips")).scan(filter=MONTH, select=["total_amount"])
        yield scan.to_arrow


@contextmanager
def _summing(coordinator: str) -> Iterator[Ask]:
    """Give what has the same column summed, by a connection that all clients share."""
    with dbapi.connect(coordinator.replace("grpc+tcp", "grpc"), autocommit=True) as connection:

        def ask() -> object:
            with connection.cursor() as cursor:
                cursor.execute(_SQL)
                return cursor.fetchall()

        yield ask


def _table(found: Mapping[str, Mapping[int, Answers]]) -> str:
    header = ["answers/s (half within, all within, ms)", *(str(n) for n in CLIENTS)]
    return table(
        header,
        [
            [name, *(f"{a.rate:.0f} ({_ms(a.median)}, {_ms(a.slowest)})" for a in by.values())]
            for name, by in found.items()
        ],
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f}"
