"""The same queries over more trips: on local files, in an S3 store, and in one that is far away."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.taxi.aims import slowdown
from tests.bench.taxi.comparing import Terms, compare, part_of
from tests.bench.taxi.contenders import (
    DAFT,
    DUCKDB,
    DUCKDB_ANEW,
    FLIGHT_2,
    FLIGHT_BLOCKS,
    IN_PROCESS,
    POLARS,
    PYICEBERG,
    SQL_2,
    Place,
)
from tests.bench.taxi.lake import LARGE, Lake
from tests.bench.taxi.markdown import table
from tests.bench.taxi.parts import Part
from tests.bench.taxi.plotting import bars
from tests.bench.taxi.queries import TAXI
from tests.bench.taxi.reporting import total_seconds
from tests.bench.taxi.rounds import Results
from tests.bench.taxi.sides.serving import Question
from tests.bench.taxi.stores import StoredTable, column_bytes, stored

_OURS = (IN_PROCESS, FLIGHT_2, SQL_2)
_CONTENDERS = (PYICEBERG, DAFT, POLARS, DUCKDB, DUCKDB_ANEW, *_OURS, FLIGHT_BLOCKS)
_LARGE_BYTES = 100_000_000
LOCAL, NEAR, FAR = "local", "near", "far"
_TITLES = {
    LOCAL: "local files",
    NEAR: "a store on this machine",
    FAR: "the same store, 20 ms away",
}


def measure_store(terms: Terms, lake: Lake, seconds: float = 0.02) -> Part:
    """Return what contenders take in each place; `seconds` is what is far away."""
    names = [name for name in _CONTENDERS if name in terms.names]
    results: dict[str, Results] = {}
    metadata_file = str(lake.metadata_file(LARGE))
    results[LOCAL] = compare(
        terms,
        _questions(metadata_file),
        Place(str(lake.warehouse)),
        [n for n in names if n in _OURS],
    )
    with (
        tempfile.TemporaryDirectory(prefix="floeberg-bench-") as folder,
        stored(lake, Path(folder)) as there,
    ):
        for name, away in ((NEAR, 0.0), (FAR, seconds)):
            results[name] = _compared(terms, there, away, names)
    return _part(lake, {name: found for name, found in results.items() if found})


def _compared(terms: Terms, there: StoredTable, away: float, names: Sequence[str]) -> Results:
    with there.away(away) as place:
        questions = _questions(there.metadata_file, place.properties)
        return compare(terms, questions, place, names)


def _questions(
    metadata_file: str, properties: Mapping[str, str] | None = None
) -> dict[str, Question]:
    return {query: Question(LARGE, query, metadata_file, properties or {}) for query in TAXI}


def _part(lake: Lake, results: Mapping[str, Results]) -> Part:
    parts = {name: part_of(found, name, _TITLES[name]) for name, found in results.items()}
    sizes = {query: column_bytes(lake, TAXI[query]) for query in results[LOCAL]}
    large = [query for query, size in sizes.items() if size > _LARGE_BYTES]
    read = ", ".join(f"{query} {size / 1e6:,.0f}" for query, size in sizes.items())
    texts = [
        f"The table has {lake.data_bytes(LARGE) / 1e9:.2f} GB. MB of the columns that a query asks"
        f" for, in the months that it asks for: {read}."
    ]
    texts += [f"In {_TITLES[name]}:\n\n{part.text}" for name, part in parts.items()]
    figures = {k: v for part in parts.values() for k, v in part.figures.items()}
    for name in (NEAR, FAR):
        figures |= _slowdowns(results[LOCAL], results[name], name, large)
    texts.append(_slowdown_table(figures, large))
    totals = {
        _TITLES[name]: {
            contender: seconds
            for contender in next(iter(found.values()), {})
            if (seconds := total_seconds(found, contender)) is not None
        }
        for name, found in results.items()
    }
    return Part("\n\n".join(texts), figures, {"store.svg": bars(totals)})


def _slowdowns(
    local: Results, away: Results, name: str, queries: Sequence[str]
) -> dict[str, float]:
    found = {}
    for contender in _OURS:
        here, there = (total_seconds(results, contender, queries) for results in (local, away))
        if here and there:
            found[slowdown(name, contender)] = there / here
    return found


def _slowdown_table(figures: Mapping[str, float], queries: Sequence[str]) -> str:
    rows = [
        [_TITLES[name], *(_ratio(figures.get(slowdown(name, contender))) for contender in _OURS)]
        for name in (NEAR, FAR)
    ]
    title = f"{', '.join(queries) or 'no query'} (over 100 MB), to local files"
    return table([title, *_OURS], rows)


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}x"
