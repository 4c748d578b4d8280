"""What a plan keeps, as columns: files by segment and row, and the deletes of each by number.

Planning a million files leaves no time for objects; these say the same without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from floeberg.protocol.expressions.model import BoundExpression
from floeberg.protocol.files import DeleteFile
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests.columns import Int64s


@dataclass(frozen=True, slots=True)
class References:
    """A list of numbers for each of n rows: row i's are `numbers[starts[i] : starts[i + 1]]`.

    `starts` has the shape (n + 1,).
    """

    starts: Int64s
    numbers: Int64s

    @classmethod
    def none(cls, rows: int) -> References:
        """Return empty lists for `rows` rows."""
        return cls(np.zeros(rows + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> Int64s:
        return self.numbers[self.starts[row] : self.starts[row + 1]]

    def between(self, first: int, stop: int) -> References:
        """Return the lists of the rows from `first` up to `stop`."""
        starts = self.starts[first : stop + 1]
        return References(starts - starts[0], self.numbers[starts[0] : starts[-1]])


class DeleteFiles:
    """The delete files that a plan may refer to, numbered in the order of the snapshot's manifests.

    `parts` are segments of delete manifests and the rows of each, ascending, that are among them.
    Safe to share between threads.
    """

    def __init__(self, parts: Sequence[tuple[Segment, Int64s]] = ()) -> None:
        self.parts = tuple(parts)
        self._firsts = np.cumsum([0, *(len(rows) for _, rows in self.parts)])
        self._made: dict[int, DeleteFile] = {}

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def files(self, numbers: Sequence[int] | Int64s) -> list[DeleteFile]:
        """Return delete files by their numbers; the same number gives the same object."""
        wanted = np.asarray(numbers, dtype=np.int64)
        missing = np.unique([n for n in wanted.tolist() if n not in self._made])
        for part in np.unique(np.searchsorted(self._firsts, missing, side="right") - 1).tolist():
            segment, rows = self.parts[part]
            first, stop = self._firsts[part], self._firsts[part + 1]
            inside = missing[(missing >= first) & (missing < stop)].astype(np.int64)
            entries = segment.entries(rows[inside - first])
            for number, entry in zip(inside.tolist(), entries, strict=True):
                assert isinstance(entry.file, DeleteFile)
                self._made.setdefault(number, entry.file)
        return [self._made[number] for number in wanted.tolist()]


@dataclass(frozen=True, slots=True)
class PlannedFiles:
    """Data files that a plan keeps of one segment, in the segment's order.

    `rows` are ascending, shape (n,). What is left of the filter for file i is
    `residuals[residual_of[i]]`, and `deletes` has the numbers, ascending, of the deletes that apply
    to it, among the plan's `DeleteFiles`.
    """

    segment: Segment
    rows: Int64s
    residuals: tuple[BoundExpression, ...]
    residual_of: Int64s
    deletes: References

    def __len__(self) -> int:
        return len(self.rows)
