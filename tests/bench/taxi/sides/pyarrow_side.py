"""Plain pyarrow: the table's Parquet files by `ParquetFile`, a file to each thread.

Row groups are skipped by their statistics, batches filtered by its kernels, and folded as they
come. Deletes are beyond it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import reduce
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from tests.bench.taxi.answers import Answer, Fold
from tests.bench.taxi.queries import TIMES, Query
from tests.bench.taxi.sides.serving import Question, Refuses, serve

pc: Any = pyarrow.compute  # the stubs lack overloads for what is used here

_KERNELS: Mapping[str, Callable[..., Any]] = {
    "=": pc.equal,
    "<": pc.less,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_MAY_HOLD: Mapping[str, Callable[[Any, Any, Any], bool]] = {
    "=": lambda least, most, value: least <= value <= most,
    "<": lambda least, most, value: least < value,
    ">": lambda least, most, value: most > value,
    ">=": lambda least, most, value: most >= value,
}
_BATCH_ROWS = 65_536


class PyArrowSide:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(os.cpu_count())

    def answer(self, question: Question) -> Answer:
        folder = Path(question.metadata_file).parents[1] / "data"
        if question.table not in ("trips", "wide") or question.properties:
            raise Refuses("knows of no deletes and no stores")
        paths = sorted(folder.rglob("*.parquet"))
        query = question.asked
        fold, alone = Fold(query), Lock()

        def read(path: Path) -> None:
            for batch in _filtered(path, query):
                with alone:
                    fold.add(batch)

        list(self._pool.map(read, paths))
        return fold.answer()


def _filtered(path: Path, query: Query) -> Iterator[pa.RecordBatch]:
    tests: list[tuple[str, str, Any]] = [
        (column, operation, datetime.fromisoformat(str(value)) if column in TIMES else value)
        for column, operation, value in query.conditions
    ]
    with pq.ParquetFile(path, pre_buffer=False) as file:
        groups = [g for g in range(file.num_row_groups) if _may_match(file, g, tests)]
        if not groups:
            return
        names = file.schema_arrow.names
        selected = names if query.selected is None else list(query.selected)
        read = [n for n in names if n in selected or n in {c for c, _, _ in tests}]
        for batch in file.iter_batches(_BATCH_ROWS, groups, read, use_threads=False):
            if tests:
                masks = [_KERNELS[op](batch[column], pa.scalar(v)) for column, op, v in tests]
                batch = batch.filter(reduce(pc.and_, masks))
            yield batch.select(selected)


def _may_match(file: pq.ParquetFile, group: int, tests: list[tuple[str, str, Any]]) -> bool:
    names = file.schema_arrow.names
    for column, operation, value in tests:
        statistics = file.metadata.row_group(group).column(names.index(column)).statistics
        if statistics is None or not statistics.has_min_max:
            continue
        if not _MAY_HOLD[operation](statistics.min, statistics.max, value):
            return False
    return True


if __name__ == "__main__":
    serve(PyArrowSide())
