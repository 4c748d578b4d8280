"""`python -m tests.bench.latency`: reading over a storage that answers each call 20 ms later.

Each shape is read by one thread, with `overlap_io` (the next bytes are fetched while some are
decoded) and without, in turns. Planning is left out. A call may ask for many ranges of many files:
they come side by side, as from an object store.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table
from rich.console import Console
from rich.table import Table as RichTable

from floeberg.embedded import ScanOptions, open_table
from floeberg.protocol.errors import FloebergError
from tests.bench.interleaved import time_in_turns
from tests.support.reads import CountingStorage

SHAPES: dict[str, tuple[int, int]] = {
    "24 files of 7 MB": (24, 100_000),
    "200 files of 0.2 MB": (200, 2_000),
    "1 row group of 128 MB": (1, 2_000_000),
}
"""Number of files, and rows of each, which are one row group."""


class SlowStorage(CountingStorage):
    """Local files as if they were far away: a call takes `seconds` more, whatever it asks for."""

    def __init__(self, seconds: float) -> None:
        super().__init__(is_far=True)
        self._seconds = seconds

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        time.sleep(self._seconds)
        return super().read_ranges(location, ranges)

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> list[list[bytes] | FloebergError]:
        time.sleep(self._seconds)
        return super().read_many(requests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(".bench"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--milliseconds", type=float, default=20)
    arguments = parser.parse_args()
    report = RichTable("shape", "at need", "rounds", "ahead", "rounds", "ratio")
    for title, table in _tables(arguments.directory.resolve()):
        report.add_row(title, *_compare(table, arguments.milliseconds / 1000, arguments.rounds))
    Console(width=110).print(report)


def _compare(table: Table, seconds: float, rounds: int) -> list[str]:
    storages = {overlap: SlowStorage(seconds) for overlap in (False, True)}

    def read(overlap: bool) -> int:
        storage = storages[overlap]
        scan = open_table(table.metadata, io=storage).scan()
        tasks = scan.plan_files()
        storage.rounds.clear()
        batches = scan.to_batches_for_tasks(tasks, ScanOptions(overlap_io=overlap))
        return sum(batch.num_rows for batch in batches)

    sides = {"at need": lambda: read(False), "ahead": lambda: read(True)}
    timings = time_in_turns(sides, rounds)
    before, now = timings["at need"].median, timings["ahead"].median
    return [
        f"{before * 1000:,.0f} ms",
        str(len(storages[False].rounds)),
        f"{now * 1000:,.0f} ms",
        str(len(storages[True].rounds)),
        f"{before / now:.1f}x",
    ]


# --- the tables ----------------------------------------------------------------------------------


def _tables(directory: Path) -> Iterator[tuple[str, Table]]:
    """Yield the tables with their titles, written when they are not there yet."""
    lake = directory / "latency"
    lake.mkdir(parents=True, exist_ok=True)
    catalog = load_catalog(
        "latency", type="sql", uri=f"sqlite:///{lake}/catalog.db", warehouse=f"file://{lake}"
    )
    catalog.create_namespace_if_not_exists("latency")
    for title, (files, rows) in SHAPES.items():
        name = f"t{files}x{rows}"
        if not catalog.table_exists(("latency", name)):
            paths = [lake / f"{name}-{number}.parquet" for number in range(files)]
            for number, path in enumerate(paths):
                pq.write_table(_rows(number, rows), path, row_group_size=rows, compression="zstd")
            table = catalog.create_table(("latency", name), _rows(0, 1).schema)
            table.add_files([f"file://{path}" for path in paths])
        yield title, catalog.load_table(("latency", name))


def _rows(seed: int, count: int) -> pa.Table:
    """Return 16 columns: doubles, whole numbers and short texts."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {}
    for i in range(6):
        columns[f"d{i}"] = pa.array(rng.random(count))
        columns[f"n{i}"] = pa.array(rng.integers(0, 10_000, count))
    for i in range(4):
        columns[f"s{i}"] = pa.array([f"text {k}" for k in rng.integers(0, 1000, count)])
    return pa.table(columns)


if __name__ == "__main__":
    main()
