"""Columns of a Parquet file that are decoded only where somebody asks for them.

They are fetched and decoded in step with the columns that decide, a unit of row groups at a time:
a unit for which nobody asks is not read, and of one that is asked for no more than a batch is held.
What comes before the rows that are asked for is decoded too, since a Parquet column can be read
from its beginning only; what comes after them is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from floeberg.worker.arrow import Rows
from floeberg.worker.files.parquet_columns import Batch, ParquetColumns
from floeberg.worker.files.row_groups import RowGroup
from floeberg.worker.files.rows import Demand


class LaterUnits:
    """The later columns of `units`, which are gone through in order, each from `begin` to `end`.

    How many units are expected at a time, so that their bytes may come before they are asked for,
    follows `demand`: as many as were asked for on end before. So no more is fetched in vain than
    was wanted before, and where all units are wanted, few have to wait for their bytes.
    """

    def __init__(
        self, columns: ParquetColumns, units: Sequence[Sequence[RowGroup]], demand: Demand
    ) -> None:
        self._columns = columns
        self._units = units
        self._demand = demand
        self._expected_units = 0
        """Units before this one are expected, or over."""
        self._expect(0, demand.streak)

    def begin(self, index: int, batch_rows: int) -> LaterUnit:
        """Return the rows of one unit, to be decoded in batches like those of the other columns."""

        def batches() -> Iterator[Batch]:
            if index >= self._expected_units:
                self._expect(index, 1)
            return self._columns.batches(self._units[index], batch_rows)

        return LaterUnit(batches)

    def end(self, index: int, unit: LaterUnit) -> None:
        """Learn from a unit, once no more of its rows will be asked for."""
        end_row = self._units[index][-1].end_row
        self._demand.learn(
            was_asked_for=unit.was_asked_for, to_the_end=unit.asked_to_row == end_row
        )
        if not unit.was_asked_for or index + 1 == self._expected_units:
            # after a unit that nobody wanted, that gives up what is on its way
            self._expect(index + 1, self._demand.streak)

    def _expect(self, index: int, count: int) -> None:
        self._expected_units = index + count
        self._columns.expect(list(chain(*self._units[index : index + count])))


class LaterUnit:
    """The rows of one unit, decoded as far as they are asked for, out of `batches`."""

    def __init__(self, batches: Callable[[], Iterator[Batch]]) -> None:
        self._begin = batches
        self._batches: Iterator[Batch] | None = None
        self._batch: Batch | None = None
        self.asked_to_row = 0
        """The file's row after the last one that was asked for."""

    @property
    def was_asked_for(self) -> bool:
        return self._batches is not None

    def rows(self, start: int, stop: int) -> Iterator[Rows]:
        """Yield the rows at these places of the file, in one part or more; they come after all that
        were asked for before.
        """
        self.asked_to_row = stop
        if self._batches is None:
            self._batches = self._begin()
        while start < stop:
            while self._batch is None or self._batch[0] + len(self._batch[1]) <= start:
                self._batch = next(self._batches)
            first_row, rows = self._batch
            part = rows.slice(start - first_row, stop - start)
            start += len(part)
            yield part
