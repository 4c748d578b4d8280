"""What a plan keeps, as columns: files by segment and row, and the deletes of each by number.

Planning a million files leaves no time for objects; these say the same without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from floeberg.protocol.expressions.model import BoundExpression
from floeberg.protocol.files import DeleteFile, ManifestFile
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests.columns import Int64s, Mask


@dataclass(frozen=True, slots=True)
class References:
    """A list of numbers, ascending, for each of n rows: row i's is all of its ranges of `numbers`.

    `starts` and `stops` have the shape (n, ranges): of row i are `numbers[starts[i, j] :
    stops[i, j]]` for every j, without a number twice. Rows may share a range, so that a thousand
    deletes that apply to a million files are a thousand numbers; within a range they have any
    order.
    """

    starts: Int64s
    stops: Int64s
    numbers: Int64s

    @classmethod
    def none(cls, rows: int) -> References:
        """Return empty lists for `rows` rows."""
        ranges = np.zeros((rows, 0), dtype=np.int64)
        return cls(ranges, ranges, np.zeros(0, dtype=np.int64))

    @classmethod
    def of_flat(cls, starts: Int64s, numbers: Int64s) -> References:
        """Return lists that lie one after the other.

        Row i's is `numbers[starts[i] : starts[i + 1]]`; `starts` has the shape (n + 1,).
        """
        return cls(starts[:-1, None], starts[1:, None], numbers)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> Int64s:
        ranges = zip(self.starts[row].tolist(), self.stops[row].tolist(), strict=True)
        parts = [self.numbers[start:stop] for start, stop in ranges if start < stop]
        return np.sort(np.concatenate(parts)) if parts else self.numbers[:0]

    @classmethod
    def joined(cls, parts: Sequence[References]) -> References:
        """Return the lists of several, one after the other."""
        if len(parts) == 1:
            return parts[0]
        shape = sum(map(len, parts)), max((part.starts.shape[1] for part in parts), default=0)
        starts, stops = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        row = place = 0
        for part in parts:
            rows, ranges = slice(row, row + len(part)), slice(part.starts.shape[1])
            starts[rows, ranges] = part.starts + place
            stops[rows, ranges] = part.stops + place
            row += len(part)
            place += len(part.numbers)
        none = np.zeros(0, dtype=np.int64)
        return cls(starts, stops, np.concatenate([none, *(part.numbers for part in parts)]))

    def of(self, rows: Int64s | slice) -> References:
        """Return the lists of `rows`, in their order."""
        return References(self.starts[rows], self.stops[rows], self.numbers)

    def between(self, first: int, stop: int) -> References:
        """Return the lists of the rows from `first` up to `stop`, without copying any."""
        return References(self.starts[first:stop], self.stops[first:stop], self.numbers)

    def counts(self) -> Int64s:
        """Return how long each row's list is, shape (n,)."""
        found: Int64s = (self.stops - self.starts).sum(axis=1)
        return found

    def counts_of(self, wanted: Mask) -> Int64s:
        """Return how many of each row's numbers are among those that `wanted` says, shape (n,)."""
        upto = np.zeros(len(self.numbers) + 1, dtype=np.int64)
        np.cumsum(wanted[self.numbers], out=upto[1:])
        found: Int64s = (upto[self.stops] - upto[self.starts]).sum(axis=1)
        return found

    def flat(self) -> tuple[Int64s, Int64s]:
        """Return all lists one after the other, as `of_flat` takes them.

        What rows share is repeated for each: do it for so many rows as the result has room for.
        """
        counts = self.counts()
        starts = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(counts, out=starts[1:])
        numbers = self.numbers[ranges_as_places(self.starts.ravel(), self.stops.ravel())]
        if len(numbers):
            limit = int(numbers.max()) + 1
            keys = np.repeat(np.arange(len(self)) * limit, counts) + numbers
            keys.sort()
            numbers = keys % limit
        return starts, numbers

    def used(self) -> Int64s:
        """Return the numbers that are in any list, once each and ascending."""
        if int(self.counts().sum()) <= len(self.numbers):
            places = ranges_as_places(self.starts.ravel(), self.stops.ravel())
            return np.unique(self.numbers[places])
        edges = np.zeros(len(self.numbers) + 1, dtype=np.int64)
        np.add.at(edges, self.starts.ravel(), 1)
        np.subtract.at(edges, self.stops.ravel(), 1)
        return np.unique(self.numbers[np.cumsum(edges[:-1]) > 0])


def ranges_as_places(starts: Int64s, stops: Int64s) -> Int64s:
    """Return the whole numbers of each range, range after range; both have the shape (n,).

    >>> ranges_as_places(np.array([5, 0, 2]), np.array([7, 0, 3])).tolist()
    [5, 6, 2]
    """
    counts = stops - starts
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    found: Int64s = np.arange(total) + np.repeat(stops - ends, counts)
    return found


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

    def rows_of(self, numbers: Int64s) -> list[tuple[Segment, Int64s]]:
        """Return the segments of deletes by their numbers, which ascend, and the rows of each."""
        cuts = np.searchsorted(numbers, self._firsts)
        return [
            (self.parts[k][0], self.parts[k][1][numbers[cuts[k] : cuts[k + 1]] - self._firsts[k]])
            for k in np.flatnonzero(np.diff(cuts)).tolist()
        ]

    def numbers(self, field_id: int) -> Int64s:
        """Return one of the columns of numbers that every entry has, see `Segment.numbers`."""
        found = [_numbers(segment, rows, field_id) for segment, rows in self.parts]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    def column(self, field_id: int) -> Int64s:
        """Return one of the deletes' own numbers (see `Segment.numbers`) for all, 0 for none."""
        found = [np.zeros(0, dtype=np.int64)]
        for segment, rows in self.parts:
            column = segment.numbers(field_id)
            values = np.zeros(len(segment)) if column is None else column.values
            found.append(values[rows].astype(np.int64))
        return np.concatenate(found)

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
    to it, among the plan's `DeleteFiles`. `manifest` is what the segment was decoded from, None
    where that is not known: in a ticket that lists its files.
    """

    segment: Segment
    rows: Int64s
    residuals: tuple[BoundExpression, ...]
    residual_of: Int64s
    deletes: References
    manifest: ManifestFile | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def numbers(self, field_id: int) -> Int64s:
        """Return one of the columns of numbers that every entry has, see `Segment.numbers`."""
        return _numbers(self.segment, self.rows, field_id)


def _numbers(segment: Segment, rows: Int64s, field_id: int) -> Int64s:
    column = segment.numbers(field_id)
    return np.zeros(0, dtype=np.int64) if column is None else column.values[rows].astype(np.int64)
