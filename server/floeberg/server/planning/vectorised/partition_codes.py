"""Number the partitions of some files, and find which of them other files are in.

Partitions of one spec are equal as `planning.partition_keys` has them: floats by their bits, null
to null, and a tuple that is missing to one of nulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from floeberg.protocol.manifests import Numbers, PartitionColumn, PartitionKind, Segment, Strings
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.types import Value
from floeberg.server.planning.partition_keys import normalised
from floeberg.server.planning.vectorised.lookups import NumberLookup, StringLookup
from floeberg.server.planning.vectorised.ordered import as_binary

_TABLE_ENTRIES: Final = 1 << 20

_Shape: TypeAlias = tuple[PartitionKind, int, bool]
"""Columns of one shape hold equal values as the same numbers, or the same bytes."""


class PartitionCodes:
    """The distinct partitions, under one spec, of rows of segments; never changes.

    `parts` are segments and rows of each. `codes` has the number of each row's partition, part
    after part; there are `count` of them.
    """

    def __init__(self, spec: PartitionSpec, parts: Sequence[tuple[Segment, Int64s]]) -> None:
        self._field_ids = tuple(f.field_id for f in spec.fields)
        self._fields: list[_FieldCodes] = []
        self._combined: list[_Pairs] = []
        rows = sum(len(rows) for _, rows in parts)
        self.codes = np.zeros(rows, dtype=np.int64)
        self.count = min(rows, 1)
        for field_id in self._field_ids:
            field = _FieldCodes([(s.partition.get(field_id), rows) for s, rows in parts])
            pairs = _Pairs(self.codes, field.codes, field.count)
            self.codes, self.count = pairs.codes, pairs.count
            self._fields.append(field)
            self._combined.append(pairs)

    def find(self, segment: Segment, rows: Int64s) -> Int64s:
        """Return the number of the partition that each of `rows` is in, -1 for none of them."""
        found = np.full(len(rows), min(self.count, 1) - 1, dtype=np.int64)
        for field_id, field, pairs in zip(
            self._field_ids, self._fields, self._combined, strict=True
        ):
            found = pairs.find(found, field.find(segment.partition.get(field_id), rows))
        return found


class _Pairs:
    """Distinct pairs of numbers of partitions by the fields before, and of one field's value."""

    def __init__(self, firsts: Int64s, seconds: Int64s, second_count: int) -> None:
        self._second_count = second_count
        keys = firsts * second_count + seconds
        distinct, codes = np.unique(keys, return_inverse=True)
        self.codes: Int64s = codes.astype(np.int64)
        self.count = len(distinct)
        self._lookup = NumberLookup(distinct)

    def find(self, firsts: Int64s, seconds: Int64s) -> Int64s:
        known = (firsts >= 0) & (seconds >= 0)
        return self._lookup.find(np.where(known, firsts * self._second_count + seconds, -1))


class _FieldCodes:
    """The distinct values of one partition field; the last of their numbers is null's.

    A segment that has no column of it, or no value, has null in each row.
    """

    def __init__(self, columns: Sequence[tuple[PartitionColumn | None, Int64s]]) -> None:
        self._columns = columns
        self._by_value: dict[Value | None, int] | None = None
        self._lookup: NumberLookup | StringLookup | None = None
        found = [(c, rows) for c, rows in columns if c is not None and c.column is not None]
        shapes = {_shape(c) for c, _ in found}
        self._shape = shapes.pop() if len(shapes) == 1 else None
        if self._shape is None:
            self._null = len(self._values()) - 1
        else:
            present = [(c.column, _valid_rows(c.column, rows)) for c, rows in found]
            self._lookup = _lookup_of(present)
            self._null = len(self._lookup)
        parts = [self.find(column, rows) for column, rows in columns]
        self.codes = np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    @property
    def count(self) -> int:
        return self._null + 1

    def find(self, column: PartitionColumn | None, rows: Int64s) -> Int64s:
        """Return the number of each row's value, -1 for one that is not among them."""
        if column is None or column.column is None:
            return np.full(len(rows), self._null)
        if _shape(column) != self._shape:
            values = self._values()
            listed = [values.get(normalised(v), -1) for v in column.to_list(rows)]
            return np.array(listed, dtype=np.int64)
        stored, lookup = column.column, self._lookup
        if isinstance(stored, Numbers) and stored.values.strides == (0,):
            # all rows have the same
            assert isinstance(lookup, NumberLookup)
            return np.full(len(rows), lookup.find(stored.values[:1])[0])
        found = np.full(len(rows), self._null)
        places = (
            np.arange(len(rows)) if stored.valid is None else np.flatnonzero(stored.valid[rows])
        )
        if isinstance(stored, Numbers):
            assert isinstance(lookup, NumberLookup)
            found[places] = lookup.find(stored.values[rows[places]])
        else:
            assert isinstance(lookup, StringLookup)
            found[places] = -1
            known, numbers = lookup.find(stored, rows[places])
            found[places[known]] = numbers
        return found

    def _values(self) -> dict[Value | None, int]:
        """Return the numbers of values as Python has them, for columns that differ in shape."""
        if self._by_value is None:
            listed = [
                normalised(value)
                for column, rows in self._columns
                for value in ([None] * len(rows) if column is None else column.to_list(rows))
            ]
            if self._shape is None:
                distinct = dict.fromkeys(value for value in listed if value is not None)
                self._by_value = {value: i for i, value in enumerate([*distinct, None])}
            else:
                self._by_value = {
                    None: self._null,
                    **dict(zip(listed, self.codes.tolist(), strict=True)),
                }
        return self._by_value


def _shape(column: PartitionColumn) -> _Shape:
    return column.kind, column.scale, isinstance(column.column, Numbers)


def _valid_rows(column: Numbers | Strings | None, rows: Int64s) -> Int64s:
    return rows if column is None or column.valid is None else rows[column.valid[rows]]


def _lookup_of(
    columns: Sequence[tuple[Numbers | Strings | None, Int64s]],
) -> NumberLookup | StringLookup:
    """Return a lookup of the values of some rows of columns, which are all of one kind."""
    numbers = [c.values[rows].astype(np.int64) for c, rows in columns if isinstance(c, Numbers)]
    if numbers:
        return NumberLookup(np.unique(np.concatenate(numbers)))
    strings = [as_binary(c).take(pa.array(rows)) for c, rows in columns if isinstance(c, Strings)]
    return StringLookup(pa.concat_arrays(strings).unique())
