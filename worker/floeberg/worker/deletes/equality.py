"""Equality deletes: rows whose key columns equal a deleted key.

A null equals a null and NaN equals NaN, whatever a comparison in a filter would say. A set of keys
is built once and asked a chunk at a time; integers that lie near each other are looked up in a
table (`integers`), all others by hashes. Arrow's own set operations hash all keys anew for every
chunk: for a million that takes ten times as long as reading the rows, so they only narrow down the
rows where keys are few.
Spec: "Equality Delete Files".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floeberg.worker.arrow import ArrowArray
from floeberg.worker.deletes.hashing import Hashes, hash_rows, same_rows
from floeberg.worker.deletes.integers import IntegerKeys, are_integers
from floeberg.worker.projection.conversion import decode_layout

_SLOTS_PER_KEY = 8
FEW_KEYS = 10_000
"""So many values are hashed anew for each chunk in a fraction of the time that the rows take."""


class KeySet:
    """A set of deleted keys of one or several columns.

    Columns are given in the order of the equality ids, in the table's types, on both sides. Frozen
    once built: may be shared between threads.
    """

    def __init__(
        self,
        columns: Sequence[ArrowArray],
        *,
        few_keys: int = FEW_KEYS,
        hash_rows: Callable[[Sequence[ArrowArray]], Hashes] = hash_rows,
    ) -> None:
        columns = [decode_layout(column) for column in columns]
        is_integer = len(columns) == 1 and are_integers(columns[0])
        self._integers = IntegerKeys(columns[0]) if is_integer else None
        self._hash_rows = hash_rows
        hashes = hash_rows(columns)
        order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[order]
        self._columns = _taken(columns, order)
        # a hash's first bits choose its slot; most rows of a table are in none that is taken
        bits = max(1, (len(hashes) * _SLOTS_PER_KEY).bit_length())
        self._shift = np.uint64(64 - bits)
        self._slots = np.zeros(1 << bits, dtype=np.bool_)
        self._slots[hashes >> self._shift] = True
        self._few = [c.unique() for c in columns] if len(hashes) <= few_keys else []

    def matches(self, columns: Sequence[ArrowArray]) -> npt.NDArray[np.bool_]:
        """Return which rows have a deleted key."""
        columns = [decode_layout(column) for column in columns]
        if self._integers is not None:
            matched = self._integers.matches(columns[0])
            if matched is not None:
                return matched
        if not self._few:
            return self._matches(columns)
        is_candidate = self._are_values_known(columns)
        matched = np.zeros(len(is_candidate), dtype=np.bool_)
        rows = np.flatnonzero(is_candidate)
        if len(rows):
            matched[rows] = self._matches(_taken(columns, rows))
        return matched

    def _are_values_known(self, columns: Sequence[ArrowArray]) -> npt.NDArray[np.bool_]:
        """Return in which rows each value is some key's: all that are deleted, and maybe more."""
        found: ArrowArray = pa.scalar(True)
        for column, values in zip(columns, self._few, strict=True):
            found = pc.and_(found, pc.is_in(column, value_set=values))
        known: npt.NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
        return known

    def _matches(self, columns: Sequence[ArrowArray]) -> npt.NDArray[np.bool_]:
        hashes = self._hash_rows(columns)
        matched = np.zeros(len(hashes), dtype=np.bool_)
        rows = np.flatnonzero(self._slots[hashes >> self._shift])
        places = np.searchsorted(self._hashes, hashes[rows])
        while len(rows):
            rows, places = self._of_same_hash(hashes, rows, places)
            same = same_rows(_taken(columns, rows), _taken(self._columns, places))
            matched[rows[same]] = True
            # another key may have the same hash: it is next to this one
            rows, places = rows[~same], places[~same] + 1
        return matched

    def _of_same_hash(
        self, hashes: Hashes, rows: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return those of the pairs of a row and a key whose hashes are equal."""
        is_key = places < len(self._hashes)
        rows, places = rows[is_key], places[is_key]
        is_same = self._hashes[places] == hashes[rows]
        return rows[is_same], places[is_same]

    @property
    def size_bytes(self) -> int:
        columns: int = sum(column.nbytes for column in self._columns)
        integers = 0 if self._integers is None else self._integers.size_bytes
        return columns + self._hashes.nbytes + self._slots.nbytes + integers


def _taken(columns: Sequence[ArrowArray], rows: npt.NDArray[np.int64]) -> list[ArrowArray]:
    indices = pa.array(rows)
    return [column.take(indices) for column in columns]
