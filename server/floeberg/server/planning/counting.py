"""Count rows from metadata, where metadata can be exact.

A data file's `record_count` counts its rows; a vector's counts the deleted ones. It is exact while
nothing else stands between a file and the answer: no residual, no equality deletes, and no position
delete files, which may name a row twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from floeberg.protocol.expressions.model import TRUE
from floeberg.protocol.files import FileFormat
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Int64s, Mask
from floeberg.protocol.planned import DeleteFiles, PlannedFiles, References
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.server.planning.plan import CountResult

_PUFFIN: Final = s.FORMATS.index(FileFormat.PUFFIN)


def count_tasks(tasks: PlannedTasks) -> CountResult:
    """Divide the tasks of a plan into those counted here and those to be read.

    The ranges of a divided file stay together: metadata counts files, not ranges.
    """
    rows = RowsByMetadata(tasks.deletes)
    by_file = np.concatenate([np.zeros(0, dtype=np.int64), *map(rows.of, tasks.files)])
    by_task = by_file[tasks.ranges.files]
    is_counted = by_task >= 0
    counted = by_task[is_counted & (tasks.ranges.starts == 0)]
    to_read = PlannedTasks() if is_counted.all() else tasks.where(~is_counted)
    return CountResult(_exact_sum([counted]), to_read)


def total_rows(
    files: Sequence[PlannedFiles], deletes: DeleteFiles, limit: int | None = None
) -> int | None:
    """Return how many rows a scan of `files` has, None if any must be read to know."""
    rows_of = RowsByMetadata(deletes).of
    known = []
    is_exact = True
    for part in files:
        rows = rows_of(part)
        is_known = rows >= 0
        is_exact = is_exact and bool(is_known.all())
        if not is_exact and limit is None:
            return None
        known.append(rows[is_known])
    total = _exact_sum(known)
    if limit is not None and total >= limit:
        return limit
    return total if is_exact else None


class RowsByMetadata:
    """The rows that files contribute to a scan, by metadata; `deletes` are those of its plan."""

    def __init__(self, deletes: DeleteFiles) -> None:
        self._vectors = _VectorCounts(deletes)

    def of(self, part: PlannedFiles) -> Int64s:
        """Return the rows of each file, -1 for one that must be read.

        A negative count, as old imports wrote it, and a vector with more rows than its file count
        nothing: whoever reads them finds out.
        """
        records = part.numbers(s.RECORD_COUNT)
        is_whole = np.array([residual == TRUE for residual in part.residuals], dtype=np.bool_)
        deleted, are_vectors = self._vectors.of(part.deletes)
        rows = records - deleted
        is_counted = is_whole[part.residual_of] & are_vectors & (rows >= 0) & (rows <= records)
        counted: Int64s = np.where(is_counted, rows, -1)
        return counted


class _VectorCounts:
    """How many rows the deletes of files name, and whether all of them are vectors."""

    def __init__(self, deletes: DeleteFiles) -> None:
        is_other = deletes.column(s.FORMAT) != _PUFFIN
        self._counts = np.where(is_other, 0, deletes.column(s.RECORD_COUNT))
        self._others = is_other.astype(np.int64)
        self._summed: tuple[Int64s, Int64s, Int64s] | None = None

    def of(self, lists: References) -> tuple[Int64s, Mask]:
        """Return both for each file."""
        if not lists.starts.shape[1]:
            return np.zeros(len(lists), dtype=np.int64), np.ones(len(lists), dtype=np.bool_)
        counts, others = self._upto(lists.numbers)
        deleted, other = (
            (upto[lists.stops] - upto[lists.starts]).sum(axis=1) for upto in (counts, others)
        )
        return deleted, other == 0

    def _upto(self, numbers: Int64s) -> tuple[Int64s, Int64s]:
        """Return the sums over the numbers before each place."""
        if self._summed is None or self._summed[0] is not numbers:  # segments share them
            counts, others = (
                np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(column[numbers])])
                for column in (self._counts, self._others)
            )
            self._summed = numbers, counts, others
        return self._summed[1], self._summed[2]


def _exact_sum(counted: Sequence[Int64s]) -> int:
    if sum(float(rows.sum(dtype=np.float64)) for rows in counted) < 1 << 62:
        return sum(int(rows.sum()) for rows in counted)
    return sum(sum(rows.tolist()) for rows in counted)
