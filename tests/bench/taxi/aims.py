"""What is to be reached, beside what was: each aim is about figures that parts have found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.bench.taxi.contenders import (
    DAFT,
    DUCKDB,
    DUCKDB_ANEW,
    FLIGHT_2,
    FLIGHT_BLOCKS,
    IN_PROCESS,
    PEERS,
    POLARS,
    PYARROW,
    PYICEBERG,
    SQL_1,
    SQL_2,
)
from tests.bench.taxi.markdown import table

Figures = Mapping[str, float]
"""What parts have found, by name."""

WORKER_MEGABYTES = "a worker's peak in MB"
"""How the names of such figures begin: each table has one."""
BARE_STREAM = "a worker's stream to RecordBatchStream"
FIRST_BATCH = "first batch, ms"
WORST_QUERY = "in process to pyarrow, worst query"


def total(of: str, contender: str) -> str:
    """Return the name of the figure that is the seconds of all queries of a table."""
    return f"{of}: {contender}, all"


def aggregates(of: str, contender: str) -> str:
    """Return the name of the figure that is the seconds of those queries that aggregate."""
    return f"{of}: {contender}, aggregates"


def slowdown(of: str, contender: str) -> str:
    """Return the name of the figure that is how many times as long as on local files large queries
    take."""
    return f"{of}: {contender}, to local files"


@dataclass(frozen=True)
class Aim:
    """What `found` shall not exceed, or not fall below; None: not measured, or a peer has no
    answer."""

    what: str
    limit: float
    found: float | None
    unit: str = "x"
    at_least: bool = False

    @property
    def verdict(self) -> str:
        if self.found is None:
            return "no figure"
        met = self.found >= self.limit if self.at_least else self.found <= self.limit
        return "met" if met else "**missed**"


def aims(figures: Figures) -> list[Aim]:
    """Return all aims, in the order in which they were set."""

    def ratio(what: str, one: str, other: str, limit: float, *, at_least: bool = False) -> Aim:
        has = one in figures and other in figures
        found = figures[one] / figures[other] if has else None
        return Aim(what, limit, found, at_least=at_least)

    def amount(what: str, name: str, limit: float, unit: str, *, at_least: bool = False) -> Aim:
        return Aim(what, limit, figures.get(name), unit, at_least)

    flight = total("trips", FLIGHT_2)
    found = [
        ratio("plain: Flight to PyIceberg", flight, total("trips", PYICEBERG), 0.75),
        ratio("plain: Flight to pyarrow in process", flight, total("trips", PYARROW), 1.2),
    ]
    for title, name in (("positions", "trips_positions"), ("vectors", "trips_vectors")):
        found += [
            ratio(f"{title}: Flight to {peer}", total(name, FLIGHT_2), total(name, peer), limit)
            for peer, limit in ((PYICEBERG, 0.10), (DAFT, 1.0), (POLARS, 1.1))
        ]
    found.append(
        ratio(
            "1 million equality deletes: Flight to plain",
            total("trips_equal_1m", FLIGHT_2),
            flight,
            1.5,
        )
    )
    for title, name in (("plain", "trips"), ("positions", "trips_positions")):
        found += [
            ratio(f"{title}: Flight SQL to {peer}", total(name, SQL_2), total(name, peer), 1.0)
            for peer in PEERS
            if name == "trips" or peer != PYARROW  # which knows of no deletes
        ]
    found += [
        amount("plain: in process to pyarrow, query by query", WORST_QUERY, 1.1, "x"),
        amount("bare stream to RecordBatchStream", BARE_STREAM, 0.9, "x", at_least=True),
        amount("first batch of a warm small scan", FIRST_BATCH, 15, " ms"),
    ]
    found += [
        amount(f"20 ms away: {name}, large queries to local", slowdown("far", name), 1.3, "x")
        for name in (IN_PROCESS, FLIGHT_2, SQL_2)
    ]
    found += [
        ratio(f"20 ms away: Flight to {peer}", total("far", FLIGHT_2), total("far", peer), 1.0)
        for peer in (PYICEBERG, DAFT, POLARS, DUCKDB, DUCKDB_ANEW)
    ]
    found.append(
        ratio(
            "20 ms away: Flight, blocks kept, to DuckDB, data kept",
            total("far", FLIGHT_BLOCKS),
            total("far", DUCKDB),
            1.0,
        )
    )
    return [
        *found,
        ratio(
            "plain, aggregates: Flight SQL, 1 worker to 2",
            aggregates("trips", SQL_1),
            aggregates("trips", SQL_2),
            1.5,
            at_least=True,
        ),
        Aim("a worker's memory at most", 400, _worker_megabytes(figures), " MB"),
    ]


def _worker_megabytes(figures: Figures) -> float | None:
    peaks = [value for name, value in figures.items() if name.startswith(WORKER_MEGABYTES)]
    return max(peaks, default=None)


def aim_table(found: list[Aim]) -> str:
    return table(
        ["to be reached", "aim", "found", ""],
        [
            [
                aim.what,
                f"{'≥' if aim.at_least else '≤'} {aim.limit:g}{aim.unit}",
                "" if aim.found is None else f"{aim.found:,.2f}{aim.unit}",
                aim.verdict,
            ]
            for aim in found
        ],
    )
