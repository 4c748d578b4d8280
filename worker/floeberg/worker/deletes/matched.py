"""Which rows of a data file equality deletes have matched, kept for the next scan of the file.

Neither the file nor the deletes ever change. So rows that were found once are deleted by their
positions from then on, and the key columns need not be decoded again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from floeberg.worker.deletes.positions import NO_POSITIONS, Positions


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """The sorted positions of the rows that are gone from one data file."""

    positions: Positions

    @property
    def size_bytes(self) -> int:
        return self.positions.nbytes + 200


class Matching:
    """Collects what is matched while a file of `num_rows` rows is read, and hands it to `keep`
    once all of its rows were looked at, from the first to the last."""

    def __init__(self, num_rows: int, keep: Callable[[MatchedRows], None]) -> None:
        self._num_rows = num_rows
        self._keep = keep
        self._next_row = 0
        self._parts: list[Positions] = []

    def add(self, first_row: int, matched: npt.NDArray[np.bool_]) -> None:
        """Take which of the rows from `first_row` on are matched; rows that were passed over leave
        nothing to be kept."""
        if first_row != self._next_row:
            return
        self._next_row += len(matched)
        found = np.flatnonzero(matched)
        if len(found):
            self._parts.append(found + first_row)
        if self._next_row == self._num_rows:
            parts, self._parts = self._parts, []
            self._keep(MatchedRows(np.concatenate(parts) if parts else NO_POSITIONS))
