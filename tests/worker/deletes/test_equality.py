"""A row is deleted when it equals a deleted key in each column, null and NaN included."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.worker.deletes.equality import KeySet

COLUMNS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(0, 3)),
    (pa.string(), st.sampled_from(["", "a", "b"])),
    (pa.float64(), st.sampled_from([math.nan, 1.0, math.inf])),
    (pa.decimal128(9, 2), st.sampled_from([Decimal("1.00"), Decimal("1.01")])),
    (pa.binary(2), st.sampled_from([b"ab", b"\x00\xff"])),
    (pa.bool_(), st.booleans()),
    (pa.timestamp("us", "UTC"), st.integers(-1, 1)),
]


@st.composite
def tables(
    draw: st.DrawFn,
) -> tuple[list[pa.DataType], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    chosen = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | values for _, values in chosen))
    keys, rows = draw(st.lists(row, max_size=6)), draw(st.lists(row, max_size=6))
    return [type_ for type_, _ in chosen], keys, rows


def arrays(types: list[pa.DataType], rows: list[tuple[Any, ...]]) -> list[Any]:
    return [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(types)]


def same(a: Any, b: Any) -> bool:
    both_nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
    return a is b or both_nan or (a is not None and b is not None and bool(a == b))


@settings(max_examples=300)
@given(tables())
def test_matches_what_a_comparison_of_every_pair_matches(
    table: tuple[list[pa.DataType], list[tuple[Any, ...]], list[tuple[Any, ...]]],
) -> None:
    types, keys, rows = table

    matched = KeySet(arrays(types, keys)).matches(arrays(types, rows))

    expected = [
        any(all(same(a, b) for a, b in zip(row, key, strict=True)) for key in keys) for row in rows
    ]
    assert matched.tolist() == expected


def test_many_keys_of_several_columns_do_not_collide() -> None:
    numbers = np.arange(50_000)
    keys = [pa.array(numbers), pa.array(numbers * 7), pa.array(numbers % 11)]
    rows = [pa.array(numbers), pa.array(numbers * 7), pa.array((numbers + numbers % 2) % 11)]

    matched = KeySet(keys).matches(rows)

    assert np.array_equal(matched, numbers % 2 == 0)


def test_a_slice_of_a_column_matches_as_its_own() -> None:
    column = pa.array([1, 2, None, 3])

    matched = KeySet([pa.array([3, None])]).matches([column.slice(1)])

    assert matched.tolist() == [False, True, True]
