"""`make bench`: the same questions to floeberg and its peers, in turns on one machine.

Writes the lake (once, kept outside of the checkout), and asks every contender for every query of
every table, interleaved; all must agree. Then the same in a store, streams by themselves, many
clients, and a fleet that is larger than the machine. What each part finds is kept in the report's
directory, the report is made of all that is there, and so is what docs/benchmarks.md has between
its marks.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.status import Status

from tests.bench.taxi.clients import measure_clients
from tests.bench.taxi.comparing import Terms, compare, part_of
from tests.bench.taxi.contenders import (
    CONTENDERS,
    DUCKDB_ANEW,
    FLIGHT_1,
    FLIGHT_BLOCKS,
    SQL_1,
    SQL_ENGINE,
    Place,
)
from tests.bench.taxi.fleet import measure_fleet
from tests.bench.taxi.lake import QUICK, TABLES, Lake, Size, default_directory
from tests.bench.taxi.parts import Part, keep, kept
from tests.bench.taxi.profiles import measure_profiles
from tests.bench.taxi.queries import QUERIES
from tests.bench.taxi.report import TITLES, write_page, write_report
from tests.bench.taxi.rounds import AnswersDiffer
from tests.bench.taxi.sides.serving import Question
from tests.bench.taxi.store import measure_store
from tests.bench.taxi.streams import measure_streams
from tests.bench.taxi.versions import machine, versions

_ONLY_FOR_TRIPS = (FLIGHT_1, SQL_1, SQL_ENGINE)
_ONLY_FOR_STORES = (DUCKDB_ANEW, FLIGHT_BLOCKS)
_QUICK_ROUNDS = 1
_STORE_ROUNDS = 3
"""For the table there is five times as large, and so are the rounds."""


def main() -> None:
    arguments = _arguments()
    lake = (
        Lake(arguments.lake / "quick", QUICK) if arguments.quick else Lake(arguments.lake, Size())
    )
    tell = Console(stderr=True)
    terms = _terms(arguments)
    on = f"{machine()}; {versions(terms.pythons, terms.names)}"
    if arguments.quick:
        on += "; small tables, to try it: the figures say nothing"
    report = arguments.report or Path("build") / ("bench-quick" if arguments.quick else "bench")
    failed = False
    for name in arguments.parts or _BY_DEFAULT:
        tell.print(f"{name}: {TITLES[name]}")
        with tell.status(name) as status:
            told = partial(_tell, status, name)
            try:
                part = _PARTS[name](replace(terms, told=told), lake)
            except AnswersDiffer as difference:
                failed = True
                part = Part(f"No time counts: {difference}")
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        keep(report / "parts", name, replace(part, measured=now, compared=on))
    parts = kept(report / "parts")
    print(write_report(report, parts))
    if arguments.page is not None:
        write_page(arguments.page, parts)
    if failed:
        sys.exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=list(_PARTS), help="all but profiles")
    parser.add_argument("--lake", type=Path, default=default_directory(), help="where tables are")
    parser.add_argument("--queries", nargs="+", choices=list(QUERIES), default=list(QUERIES))
    parser.add_argument("--contenders", nargs="+", default=[], help="names or their beginnings")
    parser.add_argument("--no-contenders", nargs="+", default=[], help="who is left out")
    parser.add_argument("--rounds", type=int, help="5, if not --quick")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="for a table: fewer rounds beyond that"
    )
    parser.add_argument("--quick", action="store_true", help="small tables and a round: a try")
    parser.add_argument(
        "--report", type=Path, help="a directory for what was found, build/bench if no other"
    )
    parser.add_argument("--page", type=Path, help="a page of documentation to bring up to date")
    parser.add_argument("--peers", default=sys.executable, help="the Python of Polars and DuckDB")
    parser.add_argument("--daft", default=sys.executable, help="the Python that has Daft")
    return parser.parse_args()


def _tell(status: Status, name: str, text: str) -> None:
    status.update(f"{name}: {text}")


def _terms(arguments: argparse.Namespace) -> Terms:
    names = [
        name for name in CONTENDERS if _wanted(name, arguments.contenders, arguments.no_contenders)
    ]
    return Terms(
        {"peers": arguments.peers, "daft": arguments.daft},
        names,
        arguments.queries,
        arguments.rounds or (_QUICK_ROUNDS if arguments.quick else 5),
        arguments.seconds,
    )


def _wanted(name: str, wanted: Sequence[str], unwanted: Sequence[str]) -> bool:
    def begins(prefixes: Sequence[str]) -> bool:
        return name.lower().startswith(tuple(prefix.lower() for prefix in prefixes))

    return (not wanted or begins(wanted)) and not begins(unwanted)


def _table(name: str) -> Callable[[Terms, Lake], Part]:
    def measure(terms: Terms, lake: Lake) -> Part:
        file = str(lake.metadata_file(name))
        questions = {query: Question(name, query, file, {}) for query in TABLES[name]}
        left_out = (*_ONLY_FOR_STORES, *(() if name == "trips" else _ONLY_FOR_TRIPS))
        names = [n for n in terms.names if n not in left_out]
        results = compare(terms, questions, Place(str(lake.warehouse)), names)
        return part_of(results, name, TITLES[name], with_moved=name == "trips")

    return measure


def _store(terms: Terms, lake: Lake) -> Part:
    return measure_store(replace(terms, rounds=min(terms.rounds, _STORE_ROUNDS)), lake)


_PARTS: Mapping[str, Callable[[Terms, Lake], Part]] = {
    **{name: _table(name) for name in TABLES},
    "store": _store,
    "streams": measure_streams,
    "clients": measure_clients,
    "fleet": measure_fleet,
    "profiles": measure_profiles,
}
_BY_DEFAULT = [name for name in _PARTS if name != "profiles"]


if __name__ == "__main__":
    main()
