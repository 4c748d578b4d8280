"""What an answer is, how rows are folded into one, and when two answers are the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tests.bench.taxi.queries import Query

pc: Any = pyarrow.compute  # the stubs lack overloads for what is used here

Answer: TypeAlias = dict[str, list[float]]
"""By group, `""` where there are none: the sums, or the number of rows; of rows that were wanted
themselves their number first."""

_CLOSE = 1e-9  # sums of floats in another order


def same(one: Answer, other: Answer) -> bool:
    """Say whether two answers agree but for the order in which floats were added."""
    return one.keys() == other.keys() and all(
        len(one[key]) == len(other[key])
        and all(
            math.isclose(a, b, rel_tol=_CLOSE) for a, b in zip(one[key], other[key], strict=True)
        )
        for key in one
    )


class Fold:
    """Takes the rows of a query as they come, already filtered, and keeps what the answer needs."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._rows = 0
        self._sums = [0.0] * len(query.sums)
        self._groups: dict[str, float] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        query = self._query
        self._rows += batch.num_rows
        if query.by is not None:
            for key, value in _groups(batch, query.by, query.sums).items():
                self._groups[key] = self._groups.get(key, 0.0) + value
            return
        for number, column in enumerate(query.sums):
            self._sums[number] += pc.sum(batch[column]).as_py() or 0.0

    def answer(self) -> Answer:
        query = self._query
        if query.by is not None:
            return {key: [value] for key, value in self._groups.items()}
        if query.rows or not query.sums:
            return {"": [float(self._rows), *self._sums]}
        return {"": self._sums}


def folded(query: Query, batches: Iterable[pa.RecordBatch]) -> Answer:
    fold = Fold(query)
    for batch in batches:
        fold.add(batch)
    return fold.answer()


def aggregated(query: Query, rows: pa.Table) -> Answer:
    """Return the answer that an engine has computed: a row for each group, or the rows wanted."""
    if query.rows:
        return folded(query, rows.to_batches())
    if query.by is not None:
        keys: list[Any] = rows.column(0).to_pylist()
        values: list[Any] = rows.column(1).to_pylist()
        return {str(key): [float(value)] for key, value in zip(keys, values, strict=True)}
    sums: list[Any] = [column[0].as_py() for column in rows.columns]
    return {"": [float(value) for value in sums]}


def _groups(batch: pa.RecordBatch, by: str, sums: Sequence[str]) -> dict[str, float]:
    """Return the sum, or else the number, of a batch's rows by key."""
    keys: Any = batch[by]
    if not pa.types.is_integer(keys.type):
        counts = pc.value_counts(keys)
        pairs = zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True)
        return {str(key): float(count) for key, count in pairs}
    dense = keys.to_numpy()
    counted = np.bincount(dense)
    values: Any = batch[sums[0]] if sums else None
    found = counted if values is None else np.bincount(dense, values.to_numpy())
    return {str(key): float(found[key]) for key in np.flatnonzero(counted).tolist()}
