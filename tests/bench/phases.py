"""`python -m tests.bench.phases`: what it saves to decode the filter's columns first.

One file of a table is read by a worker's code, on one thread, with the columns of the answer
decoded where rows are kept (as always) and all at once (`prune` off). The filters are such that
statistics prune nothing. The times are of the processor.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table as RichTable

from floeberg.process.storage import open_storage
from floeberg.protocol.plans import ReadOptions
from floeberg.worker.reading import to_batches_for_tasks
from tests.bench.interleaved import time_in_turns
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.reads import plan_of

_ROWS = 2_000_000
_COLUMNS = schema(
    {
        "id": required("long"),
        "near": "double",
        "even": "int",
        **{f"number{i}": "double" for i in range(8)},
        **{f"text{i}": "string" for i in range(4)},
    }
)

FILTERS: dict[str, Any] = {
    "4 row groups in 16 hold a row": ["and", [">", "near", 0.25], ["<", "near", 0.5]],
    "1 row": ["=", "id", 1_234_567],
    "50% of the rows": ["=", "even", 0],
    "all rows": [">=", "even", 0],
    "1% deleted by position": None,
    "1% deleted by position, 50% kept": ["=", "even", 0],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(".bench"))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    directory = arguments.directory.resolve()
    tables = {deleted: _table(directory, deleted) for deleted in (False, True)}
    report = RichTable("filter", "rows", "at once", "in phases", "ratio")
    for title, filter_ in FILTERS.items():
        table = tables["deleted" in title]

        def read(prune: bool, table: TableWriter = table, filter_: Any = filter_) -> int:
            plan = plan_of(table, filter_, ReadOptions(prune=prune))
            return sum(
                placed.batch.num_rows for placed in to_batches_for_tasks(plan, open_storage())
            )

        sides = {"at once": lambda: read(False), "in phases": lambda: read(True)}
        timings = time_in_turns(sides, arguments.rounds, time.process_time)
        at_once, in_phases = timings["at once"].median, timings["in phases"].median
        report.add_row(
            title,
            f"{timings['in phases'].answer:,}",
            f"{at_once * 1000:,.0f} ms",
            f"{in_phases * 1000:,.0f} ms",
            f"{at_once / in_phases:.2f}x",
        )
    Console(width=110).print(report)


def _table(directory: Path, deleted: bool) -> TableWriter:
    """Return a table of one file with 16 row groups; written when it is not there yet."""
    place = directory / ("phases-deleted" if deleted else "phases")
    if (place / "metadata" / "version-hint.text").exists():
        return TableWriter.open(place)
    table = TableWriter.create(place, _COLUMNS)
    (file,) = table.append(_rows(), layout=FileLayout(row_group_size=_ROWS // 16, metrics="none"))
    if deleted:
        rng = np.random.default_rng(1)
        table.delete_positions({file: np.sort(rng.choice(_ROWS, _ROWS // 100, False)).tolist()})
    return table


def _rows() -> pa.Table:
    rng = np.random.default_rng(0)
    # a shuffled id tells statistics nothing; `near` has both ends in every row group, beside values
    # that are near to one another
    near = np.repeat(np.arange(16) / 16, _ROWS // 16) + rng.random(_ROWS) / 32
    near[:: _ROWS // 64], near[1 :: _ROWS // 64] = -1.0, 2.0
    columns: dict[str, Any] = {
        "id": rng.permutation(_ROWS),
        "near": near,
        "even": pa.array(rng.integers(0, 2, _ROWS), pa.int32()),
    }
    columns |= {f"number{i}": rng.random(_ROWS).round(3) for i in range(8)}
    for i in range(4):
        words = pa.array([f"the {n}. text of column {i}" for n in range(5000)])
        columns[f"text{i}"] = words.take(pa.array(rng.integers(0, 5000, _ROWS)))
    return pa.table(columns)


if __name__ == "__main__":
    main()
