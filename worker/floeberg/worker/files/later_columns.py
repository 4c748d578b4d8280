"""Columns of a Parquet file that are decoded only where somebody asks for them.

They are fetched and decoded in step with the columns that decide, a unit of row groups at a time:
a unit for which nobody asks costs nothing, and of one that is asked for no more than a batch is
held. What comes before the rows that are asked for is decoded too, since a Parquet column can be
read from its beginning only; what comes after them is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from floeberg.worker.arrow import StructRows
from floeberg.worker.files.parquet_columns import Batch, ParquetColumns
from floeberg.worker.files.row_groups import WINDOW_BYTES, RowGroup
from floeberg.worker.files.rows import Demand

ROUND_TRIP_BYTES = 1 << 20
"""How many bytes take an object store about as long as a request that brings none: so many are
fetched on the chance that they are wanted."""


class LaterColumns:
    """The later columns of a file's `units`, which are gone through in order.

    How many units are fetched at a time follows `demand`: as many as were asked for on end before,
    so that at most half of what is fetched is in vain, and no unit waits long for its bytes where
    all are asked for.
    """

    def __init__(
        self, columns: ParquetColumns, units: Sequence[Sequence[RowGroup]], demand: Demand
    ) -> None:
        self._columns = columns
        self._units = units
        self._demand = demand
        self.fetched_units = self._stretch(0, demand.streak)
        """How many units from the first one on whoever fetches the other columns is to fetch these
        columns with: one request instead of two."""

    def of_unit(self, index: int, batch_rows: int) -> LaterUnit:
        """Return the rows of one unit, to be decoded in batches like those of the other columns."""

        def begin() -> Iterator[Batch]:
            if index >= self.fetched_units:
                self._expect_from(index)
            return self._columns.batches(self._units[index], batch_rows)

        return LaterUnit(begin)

    def end_unit(self, unit: LaterUnit) -> None:
        """Learn from a unit, once no more of its rows will be asked for."""
        self._demand.streak = self._demand.streak + 1 if unit.was_asked_for else 0

    def _expect_from(self, index: int) -> None:
        count = max(1, self._stretch(index, self._demand.streak + 1))
        self.fetched_units = index + count
        groups = list(chain(*self._units[index : index + count]))
        self._columns.expect(groups)

    def _stretch(self, start: int, wanted: int) -> int:
        """Return how many units from `start` on to fetch at once: `wanted` ones or a few small
        ones, and no more than a window holds.
        """
        size = 0
        for count, unit in enumerate(self._units[start:]):
            size += sum(group.stored_bytes(self._columns.leaves) for group in unit)
            if size > (WINDOW_BYTES if count < wanted else ROUND_TRIP_BYTES):
                return count
        return len(self._units) - start


class LaterUnit:
    """The rows of one unit, decoded as far as they are asked for; `begin` starts that."""

    def __init__(self, begin: Callable[[], Iterator[Batch]]) -> None:
        self._begin = begin
        self._batches: Iterator[Batch] | None = None
        self._batch: Batch | None = None

    @property
    def was_asked_for(self) -> bool:
        return self._batches is not None

    def rows(self, start: int, stop: int) -> Iterator[StructRows]:
        """Yield the rows at these places of the file, in one part or more; they come after all that
        were asked for before.
        """
        if self._batches is None:
            self._batches = self._begin()
        while start < stop:
            while self._batch is None or self._batch[0] + len(self._batch[1]) <= start:
                self._batch = next(self._batches)
            first_row, rows = self._batch
            part = rows.slice(start - first_row, stop - start)
            start += len(part)
            yield part
