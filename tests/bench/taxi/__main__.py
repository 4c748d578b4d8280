"""`make bench`: the same questions to floeberg and its peers, in turns on one machine.

Writes the lake (once, kept outside of the checkout), and asks every contender for every query of
every table, interleaved; all must agree. What is printed is Markdown, for docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from tests.bench.taxi.contenders import CONTENDERS, ContenderProcess
from tests.bench.taxi.lake import TABLES, Lake, default_directory
from tests.bench.taxi.plotting import bars
from tests.bench.taxi.queries import QUERIES
from tests.bench.taxi.reporting import memory, moved, refusals, target_table, targets, times
from tests.bench.taxi.rounds import Results, in_turns
from tests.bench.taxi.sides.serving import Question
from tests.bench.taxi.versions import machine, versions

_TITLES = {
    "trips": "12 million trips in 24 files",
    "trips_positions": "1% deleted by position",
    "trips_vectors": "1% deleted by deletion vectors",
    "trips_equal_10k": "10,000 equality deletes",
    "trips_equal_1m": "1 million equality deletes",
    "wide": "wide strings",
}


def main() -> None:
    arguments = _arguments()
    pythons = {"peers": arguments.peers, "daft": arguments.daft}
    lake = Lake(arguments.lake)
    tell = Console(stderr=True)
    names = [
        name for name in CONTENDERS if _wanted(name, arguments.contenders, arguments.no_contenders)
    ]
    print(f"{machine()}; {versions(pythons, names)}\n")
    results: dict[str, Results] = {}
    for table in arguments.tables:
        tell.print(f"{table}: {_TITLES[table]}")
        results[table] = _compare(arguments, table, lake, names, pythons, tell)
        _report(table, results[table])
    if found := targets(results):
        print(f"{target_table(found)}\n")
    if arguments.plot is not None:
        arguments.plot.write_text(bars(results, {t: _TITLES[t] for t in arguments.tables}))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lake", type=Path, default=default_directory(), help="where tables are")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--queries", nargs="+", choices=list(QUERIES), default=list(QUERIES))
    parser.add_argument("--contenders", nargs="+", default=[], help="names or their beginnings")
    parser.add_argument("--no-contenders", nargs="+", default=[], help="who is left out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="for a table: fewer rounds beyond that"
    )
    parser.add_argument("--plot", type=Path, help="an SVG to write")
    parser.add_argument("--peers", default=sys.executable, help="the Python of Polars and DuckDB")
    parser.add_argument("--daft", default=sys.executable, help="the Python that has Daft")
    return parser.parse_args()


def _wanted(name: str, wanted: Sequence[str], unwanted: Sequence[str]) -> bool:
    def begins(prefixes: Sequence[str]) -> bool:
        return name.lower().startswith(tuple(prefix.lower() for prefix in prefixes))

    return (not wanted or begins(wanted)) and not begins(unwanted)


def _compare(
    arguments: argparse.Namespace,
    table: str,
    lake: Lake,
    names: Sequence[str],
    pythons: Mapping[str, str],
    tell: Console,
) -> Results:
    metadata_file = str(lake.metadata_file(table))
    questions = {
        query: Question(table, query, metadata_file, {})
        for query in TABLES[table]
        if query in arguments.queries
    }
    with ExitStack() as stack, tell.status(table) as status:
        processes = {
            name: ContenderProcess(CONTENDERS[name], pythons, lake.warehouse) for name in names
        }
        for process in processes.values():
            stack.callback(process.close)
        return in_turns(
            questions, processes, arguments.rounds, status.update, seconds=arguments.seconds
        )


def _report(table: str, results: Results) -> None:
    if not results:
        return
    print(f"{_TITLES[table]} (`{table}`):\n\n{times(results)}\n\n{memory(results)}\n")
    if found := moved(results):
        print(f"{found}\n")
    for refusal in refusals(results):
        print(f"- {refusal}")
    print(flush=True)


if __name__ == "__main__":
    main()
