"""Equality deletes: rows whose key columns equal a deleted key.

A null equals a null and NaN equals NaN, whatever a comparison in a filter would say. A key is found
by hashing each of its columns: never a row at a time.
Spec: "Equality Delete Files".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from floeberg.worker.arrow import ArrowArray
from floeberg.worker.projection.conversion import decode_layout

_ABSENT = -1


class KeySet:
    """A set of deleted keys of one or several columns.

    Columns are given in the order of the equality ids, in the table's types, on both sides. Frozen
    once built: may be shared between threads.
    """

    def __init__(self, columns: Sequence[ArrowArray]) -> None:
        self._columns: list[_KeyColumn] = []
        codes: npt.NDArray[np.int64] | None = None
        for column in columns:
            part = _KeyColumn(decode_layout(column), codes)
            codes = part.own_codes
            self._columns.append(part)

    def matches(self, columns: Sequence[ArrowArray]) -> npt.NDArray[np.bool_]:
        """Return which rows have a deleted key."""
        codes: npt.NDArray[np.int64] | None = None
        for part, column in zip(self._columns, columns, strict=True):
            codes = part.encode(decode_layout(column), codes)
        assert codes is not None, "a key has at least one column"
        found: npt.NDArray[np.bool_] = codes != _ABSENT
        return found

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self._columns)


class _KeyColumn:
    """Numbers the distinct beginnings of keys, up to and with one column.

    A beginning is the pair of the number that the columns before gave it and this column's value.
    """

    def __init__(self, column: ArrowArray, before: npt.NDArray[np.int64] | None) -> None:
        self._values = column.unique()
        values = _index_in(column, self._values)
        if before is None:
            self._pairs: npt.NDArray[np.int64] | None = None
            self.own_codes = values
        else:
            self._pairs, self.own_codes = np.unique(self._pair(before, values), return_inverse=True)

    def encode(
        self, column: ArrowArray, before: npt.NDArray[np.int64] | None
    ) -> npt.NDArray[np.int64]:
        """Return each row's number, -1 where its key begins like none of the set."""
        values = _index_in(column, self._values)
        if before is None or self._pairs is None:
            return values
        pairs = self._pair(before, values)
        places = np.searchsorted(self._pairs, pairs)
        places[places == len(self._pairs)] = 0
        is_known = (before != _ABSENT) & (values != _ABSENT) & (len(self._pairs) > 0)
        if len(self._pairs):
            is_known &= self._pairs[places] == pairs
        return np.where(is_known, places, _ABSENT)

    def _pair(
        self, before: npt.NDArray[np.int64], values: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        # both are below the number of keys, so that the product stays far below 2^63
        return before * max(len(self._values), 1) + values

    @property
    def size_bytes(self) -> int:
        pairs = self._pairs.nbytes if self._pairs is not None else 0
        values: int = self._values.nbytes
        return values + pairs + self.own_codes.nbytes


def _index_in(column: ArrowArray, values: ArrowArray) -> npt.NDArray[np.int64]:
    """Return the place of each value of `column` in `values`, -1 where it has none; nulls and NaN
    have one.
    """
    found: ArrowArray = pc.index_in(column, value_set=values)
    places: npt.NDArray[np.int32] = found.fill_null(_ABSENT).to_numpy(zero_copy_only=False)
    return places.astype(np.int64)
