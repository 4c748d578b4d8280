"""Compare tables as multisets of rows, by the values that they hold.

Columns are matched by name. Floats are equal bit by bit, except that every NaN is the same; maps
are multisets of entries; timestamps and times are compared as instants, exactly; extension values
by their storage.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Hashable
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa

ArrowArray: TypeAlias = Any
"""A pyarrow array of any type: its stubs know what only arrays of one type have."""

_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def row_multiset(table: pa.Table) -> Counter[Hashable]:
    """Return how often each row occurs; a row is its values in the order of the columns' names."""
    columns = [canonical_values(table.column(name)) for name in sorted(table.column_names)]
    if not columns:
        return Counter({(): table.num_rows}) if table.num_rows else Counter()
    return Counter(zip(*columns, strict=True))


def assert_same_rows(actual: pa.Table, expected: pa.Table) -> None:
    """Fail unless both tables hold the same columns and, in any order, the same rows."""
    assert sorted(actual.column_names) == sorted(expected.column_names)
    assert actual.num_rows == expected.num_rows, "number of rows"
    ours, theirs = row_multiset(actual), row_multiset(expected)
    extra, missing = ours - theirs, theirs - ours
    assert not extra, f"rows that should not be there, such as {list(extra)[:3]};" + (
        f" missing, such as {list(missing)[:3]}"
    )


def canonical_values(array: ArrowArray) -> list[Hashable]:
    """Return the values of `array` in a form that compares and hashes by value; null is None."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in canonical_values(chunk)]
    t: Any = array.type
    if isinstance(array, pa.ExtensionArray):
        return canonical_values(array.storage)
    if pa.types.is_dictionary(t):
        return canonical_values(array.dictionary_decode())
    if pa.types.is_struct(t):
        names = [t.field(i).name for i in range(t.num_fields)]
        children = [canonical_values(array.field(i)) for i in range(t.num_fields)]
        rows: list[Hashable] = (
            [frozenset(zip(names, row, strict=True)) for row in zip(*children, strict=True)]
            if children
            else [frozenset()] * len(array)
        )
        return _with_nulls(array, rows)
    if pa.types.is_map(t):
        keys, items = canonical_values(array.keys), canonical_values(array.items)
        entries = list(zip(keys, items, strict=True))
        return _with_nulls(
            array, [frozenset(Counter(entries[a:b]).items()) for a, b in _spans(array)]
        )
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        values = canonical_values(array.values)
        return _with_nulls(array, [tuple(values[a:b]) for a, b in _spans(array)])
    if pa.types.is_floating(t):
        return [None if v is None else _float(v) for v in array.to_pylist()]
    if pa.types.is_timestamp(t) or pa.types.is_time(t):
        factor = _NANOS[t.unit]
        width = pa.int32() if t.bit_width == 32 else pa.int64()
        return [None if v is None else v * factor for v in array.view(width).to_pylist()]
    return list(array.to_pylist())


def _float(value: float) -> Hashable:
    return "NaN" if value != value else struct.pack("<d", value)


def _spans(array: ArrowArray) -> list[tuple[int, int]]:
    offsets = array.offsets.to_pylist()
    return list(pairwise(offsets))


def _with_nulls(array: ArrowArray, values: list[Hashable]) -> list[Hashable]:
    valid = array.is_valid().to_pylist()
    return [v if ok else None for v, ok in zip(values, valid, strict=True)]
