"""`make tpch`: TPC-H's queries over a coordinator and two worker processes, beside DuckDB.

The fleet reads Iceberg tables with deletes and evolution and answers over Flight SQL; DuckDB reads
the same rows in the generator's Parquet files, in this process. "moved" is what the workers send,
to each other and to the client, for one run.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import adbc_driver_flightsql.dbapi
import duckdb
from adbc_driver_manager import dbapi
from rich.console import Console
from rich.table import Table

from tests.bench.interleaved import time_in_turns
from tests.sql.tpch.generated import QUERIES, over_generated
from tests.sql.tpch.lake import NAMESPACE, write_lake
from tests.support.processes import ServiceProcess, processes

_PARTS_AT_SCALE_1 = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(".bench"))
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--queries", type=int, nargs="*", choices=QUERIES, metavar="N")
    arguments = parser.parse_args()
    lake = _lake(arguments.directory.resolve(), arguments.scale)
    report = Table("query", "road", "DuckDB", "floeberg", "ratio", "moved")
    with (
        tempfile.TemporaryDirectory() as directory,
        processes(Path(directory)) as started,
        over_generated(lake / NAMESPACE) as engine,
    ):
        coordinator = started.coordinator(lake)
        workers = [started.worker(coordinator) for _ in range(2)]
        location = coordinator.addresses["coordinator"]
        with (
            adbc_driver_flightsql.dbapi.connect(location, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            connection.adbc_current_db_schema = NAMESPACE
            for number in arguments.queries or QUERIES:
                report.add_row(*_cells(number, cursor, engine, workers, arguments.rounds))
    Console(width=100).print(report)


def _cells(
    number: int,
    cursor: dbapi.Cursor,
    engine: duckdb.DuckDBPyConnection,
    workers: list[ServiceProcess],
    rounds: int,
) -> list[str]:
    text = QUERIES[number]
    sides: dict[str, Callable[[], object]] = {
        "DuckDB": lambda: engine.sql(text).to_arrow_table().num_rows,
        "floeberg": lambda: cursor.execute(text).fetch_arrow_table().num_rows,
    }
    timings = time_in_turns(sides, rounds)
    (_, road), *_ = cursor.execute(f"EXPLAIN {text}").fetchall()
    before = _sent_bytes(workers)
    sides["floeberg"]()
    moved = _sent_bytes(workers) - before
    own, theirs = timings["floeberg"].median, timings["DuckDB"].median
    return [
        str(number),
        str(road).partition(":")[0],
        f"{1000 * theirs:.0f} ms",
        f"{1000 * own:.0f} ms",
        f"{own / theirs:.1f}",
        f"{moved / 1e6:.1f} MB",
    ]


def _sent_bytes(workers: list[ServiceProcess]) -> int:
    return sum(int(worker.status()["bytes"]) for worker in workers)


def _lake(directory: Path, scale: float) -> Path:
    """Return the warehouse for a scale factor, written when it is not there yet."""
    lake = directory / f"tpch-{scale:g}"
    written = lake / "written"
    if not written.exists():
        shutil.rmtree(lake, ignore_errors=True)
        write_lake(lake, scale, parts=max(3, round(scale * _PARTS_AT_SCALE_1)))
        written.touch()
    return lake


if __name__ == "__main__":
    main()
