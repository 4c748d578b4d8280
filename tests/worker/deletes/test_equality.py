"""A row is deleted when it equals a deleted key in each column, null and NaN included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.worker.deletes.equality import KeySet
from floeberg.worker.deletes.hashing import Hashes

COLUMNS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(0, 3)),
    (pa.string(), st.sampled_from(["", "a", "b"])),
    (pa.float64(), st.sampled_from([math.nan, 1.0, math.inf])),
    (pa.decimal128(9, 2), st.sampled_from([Decimal("1.00"), Decimal("1.01")])),
    (pa.binary(2), st.sampled_from([b"ab", b"\x00\xff"])),
    (pa.bool_(), st.booleans()),
    (pa.null(), st.none()),
    (pa.float32(), st.sampled_from([math.nan, 0.5])),
    (pa.date32(), st.integers(-1, 1)),
    (pa.binary(9), st.sampled_from([b"abcdefghi", b"abcdefghj"])),
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


def all_alike(columns: Sequence[Any]) -> Hashes:
    return np.zeros(len(columns[0]), dtype=np.uint64)


@settings(max_examples=300)
@given(tables(), st.sampled_from([{}, {"few_keys": 0}, {"few_keys": 0, "hash_rows": all_alike}]))
def test_matches_what_a_comparison_of_every_pair_matches(
    table: tuple[list[pa.DataType], list[tuple[Any, ...]], list[tuple[Any, ...]]],
    ways: dict[str, Any],
) -> None:
    types, keys, rows = table

    matched = KeySet(arrays(types, keys), **ways).matches(arrays(types, rows))

    expected = [
        any(all(same(a, b) for a, b in zip(row, key, strict=True)) for key in keys) for row in rows
    ]
    assert matched.tolist() == expected


texts = st.text(max_size=3) | st.text("ab", min_size=6, max_size=20)


@given(st.lists(st.none() | texts), st.lists(st.none() | texts), st.integers(0, 3))
def test_texts_of_any_length_match(
    keys: list[str | None], rows: list[str | None], skipped: int
) -> None:
    column = pa.array(rows, pa.string()).slice(min(skipped, len(rows)))

    matched = KeySet([pa.array(keys, pa.string())], few_keys=0).matches([column])

    assert matched.tolist() == [row in keys for row in column.to_pylist()]


def test_zeros_of_either_sign_are_different_keys() -> None:
    for ways in ({}, {"few_keys": 0}):
        assert KeySet([pa.array([0.0])], **ways).matches([pa.array([0.0, -0.0])]).tolist() == [
            True,
            False,
        ]


def test_many_keys_of_several_columns_do_not_collide() -> None:
    numbers = np.arange(50_000)  # more than are few
    keys = [pa.array(numbers), pa.array(numbers * 7), pa.array(numbers % 11)]
    rows = [pa.array(numbers), pa.array(numbers * 7), pa.array((numbers + numbers % 2) % 11)]

    matched = KeySet(keys).matches(rows)

    assert np.array_equal(matched, numbers % 2 == 0)


def test_a_slice_of_a_column_matches_as_its_own() -> None:
    column = pa.array([1, 2, None, 3])

    matched = KeySet([pa.array([3, None])]).matches([column.slice(1)])

    assert matched.tolist() == [False, True, True]
