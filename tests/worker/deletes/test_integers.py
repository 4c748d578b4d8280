"""Integers are looked up by their place between a chunk's bounds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.worker.deletes.equality import KeySet
from floeberg.worker.deletes.integers import IntegerKeys, are_integers

LONG = 2**63
NUMBERS = st.none() | st.integers(-20, 20) | st.sampled_from([-LONG, 1 - LONG, LONG - 2, LONG - 1])
TYPES = [pa.int64(), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.time64("us")]


@given(st.lists(NUMBERS), st.lists(NUMBERS), st.sampled_from(TYPES), st.integers(0, 3))
def test_matches_what_is_among_the_keys(
    keys: list[int | None], rows: list[int | None], type_: Any, skipped: int
) -> None:
    column = pa.array(rows, pa.int64()).slice(min(skipped, len(rows)))
    expected = [row in keys for row in column.to_pylist()]
    keys_of_type: Any = pa.array(keys, pa.int64()).view(type_)
    column_of_type: Any = column.view(type_)

    found = IntegerKeys(keys_of_type).matches(column_of_type)

    assert found is None or found.tolist() == expected
    assert KeySet([keys_of_type]).matches([column_of_type]).tolist() == expected


@pytest.mark.parametrize("type_", [pa.int32(), pa.date32()])
def test_matches_values_of_four_bytes(type_: Any) -> None:
    keys = IntegerKeys(pa.array([-(2**31), 0, 7, 2**31 - 1], pa.int32()).view(type_))

    found = keys.matches(pa.array([7, None, -1, 0], pa.int32()).view(type_))

    assert found is not None
    assert found.tolist() == [True, False, False, True]


def test_says_nothing_of_values_far_apart_that_keys_lie_between() -> None:
    keys = IntegerKeys(pa.array([5]))

    assert keys.matches(pa.array([0, 1 << 40])) is None
    alone = keys.matches(pa.array([6, 1 << 40]))
    assert alone is not None
    assert alone.tolist() == [False, False]


@pytest.mark.parametrize("type_", [pa.float64(), pa.string(), pa.bool_(), pa.decimal128(9, 2)])
def test_other_types_are_not_integers(type_: Any) -> None:
    assert not are_integers(pa.array([], type_))
