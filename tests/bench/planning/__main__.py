"""`make bench-planning`: what it takes to plan scans of very large tables, beside the peers.

Generates the metadata of tables (once, kept outside of the checkout), and has every side plan the
same filters in turns, each time with other literals. The sides must agree on the number of tasks.
Then measures what small plans wait for while a large one is made. Tables are in Markdown.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from tests.bench.planning.driving import Rounds, SideOfComparison, SideProcess, running
from tests.bench.planning.generating import existing_or_generated
from tests.bench.planning.questions import QUESTIONS
from tests.bench.planning.reporting import (
    COLD,
    JAVA,
    POLARS,
    PYICEBERG,
    RESTARTED,
    WARM,
    figures,
    target_table,
    targets,
)
from tests.bench.planning.small_plans import THREADS, SmallPlans, measure_small_plans
from tests.bench.planning.tables import WITH_DELETES, BenchTable, default_directory

_SLOW_FILES = 500_000
_OTHERS_IN_A_ROW = 9
_SMALL_TABLES = [BenchTable(files) for files in range(1, 17)]


def main() -> None:
    arguments = _arguments()
    console = Console(width=140)
    warehouse = arguments.directory.resolve()
    tables = [BenchTable(files) for files in arguments.files]
    if arguments.deletes:
        tables.append(WITH_DELETES)
    for table in tables:
        existing_or_generated(table, warehouse)
    results: dict[tuple[str, str], dict[str, Rounds]] = {}
    with tempfile.TemporaryDirectory() as disk_cache:
        for table in tables:
            of_table = _compare(arguments, table, Path(disk_cache), console)
            console.print(figures(f"{table.name} (seconds)", of_table), "")
            results |= of_table
    if arguments.small_plans:
        large = max(tables, key=lambda table: table.files)
        small = [t for t in _SMALL_TABLES if existing_or_generated(t, warehouse)]
        console.print(_small_plans(measure_small_plans(warehouse, large, small)), "")
    console.print(target_table(targets(results)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="*", default=[1_000_000, 100_000, 1_000, 1])
    parser.add_argument("--no-deletes", dest="deletes", action="store_false")
    parser.add_argument("--no-small-plans", dest="small_plans", action="store_false")
    parser.add_argument("--questions", nargs="*", choices=list(QUESTIONS), default=list(QUESTIONS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", nargs="*", help="floeberg, pyiceberg, polars, java")
    parser.add_argument("--directory", type=Path, default=default_directory())
    parser.add_argument("--peers", default=sys.executable, help="the Python that has the peers")
    return parser.parse_args()


def _compare(
    arguments: argparse.Namespace, table: BenchTable, disk_cache: Path, console: Console
) -> dict[tuple[str, str], dict[str, Rounds]]:
    """Return what the sides took for each kind of filter."""
    results = {}
    with running(_sides(arguments, table, disk_cache)) as asked:
        for question in arguments.questions:
            r = random.Random(f"{arguments.seed}/{table.name}/{question}")
            ask = partial(QUESTIONS[question], r)
            filters = [ask() for _ in range(arguments.rounds + 1)]
            title = f"{table.name}, {question}"
            with console.status(title) as status:
                results[table.name, question] = asked.in_turns(
                    table.metadata_file(arguments.directory.resolve()),
                    filters,
                    lambda text, title=title: status.update(f"{title}: {text}"),
                    lambda ask=ask: [ask() for _ in range(_OTHERS_IN_A_ROW)],
                )
    return results


def _sides(
    arguments: argparse.Namespace, table: BenchTable, disk_cache: Path
) -> Sequence[SideOfComparison]:
    ours = partial(SideProcess, sys.executable, "floeberg_side", str(arguments.directory.resolve()))
    restarted = partial(ours, "--disk-cache", str(disk_cache))
    peer = partial(SideProcess, arguments.peers)
    sides = [
        SideOfComparison(WARM, ours, in_a_row=True),
        SideOfComparison(COLD, ours, forget=True),
        SideOfComparison(RESTARTED, restarted, anew=True),
        SideOfComparison(JAVA, partial(peer, "java_side")),
        SideOfComparison(POLARS, partial(peer, "polars_side")),
        SideOfComparison(
            PYICEBERG,
            partial(peer, "pyiceberg_side"),
            only_round=1 if table.files >= _SLOW_FILES else None,
        ),
    ]
    only = tuple(arguments.only or ("",))
    return [side for side in sides if side.name.lower().startswith(only)]


def _small_plans(found: SmallPlans) -> RichTable:
    report = RichTable(
        *("small plans", "p50", "p99", "plans"),
        title=f"{THREADS} clients at once; the large plan took {found.large_seconds:.2f} s beside"
        f" them, {found.large_alone_seconds:.2f} s alone",
        box=box.MARKDOWN,
    )
    for title, latencies in {
        "alone": found.alone,
        "while the large plan is made": found.beside,
    }.items():
        report.add_row(
            title,
            *(f"{latencies.percentile(p) * 1000:,.1f} ms" for p in (50, 99)),
            f"{len(latencies.seconds):,}",
        )
    return report


if __name__ == "__main__":
    main()
