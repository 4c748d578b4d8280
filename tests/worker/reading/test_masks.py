from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.worker.arrow import Rows
from floeberg.worker.reading.masks import both, kept_of, mask_of, places_of, true_of

FLAGS = st.lists(st.booleans(), min_size=1, max_size=200)


@given(
    flags=FLAGS,
    start=st.integers(0, 20),
    share=st.sampled_from([0.0, 0.02, 0.3, 0.95]),
    seed=st.integers(0, 99),
)
def test_keeps_the_marked_rows_of_every_column_whatever_part_of_a_mask_it_is_given(
    flags: list[bool], start: int, share: float, seed: int
) -> None:
    marks = np.array(flags) | (np.random.default_rng(seed).random(len(flags)) < share)
    mask = mask_of(np.concatenate([np.ones(start, dtype=np.bool_), marks])).slice(start)
    numbers = [None if n % 7 == 3 else n for n in range(len(marks))]
    rows = Rows([pa.array(numbers), pa.array([f"row {n}" for n in numbers])], len(marks))

    kept = kept_of(rows, mask)

    expected = [n for n, mark in zip(numbers, marks, strict=True) if mark]
    assert [column.to_pylist() for column in kept.columns] == [
        expected,
        [f"row {n}" for n in expected],
    ]
    assert places_of(mask).tolist() == np.flatnonzero(marks).tolist()
    assert len(kept_of(Rows([], len(marks)), mask)) == len(expected)


@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=40), st.integers(0, 5))
def test_unknown_is_not_true(results: list[bool | None], start: int) -> None:
    array = pa.array([None, True, False, True, None][:start] + results, pa.bool_()).slice(start)

    assert true_of(array).to_pylist() == [result is True for result in results]


@pytest.mark.parametrize(("one", "expected"), [(None, [True, False]), ([False, True], [False] * 2)])
def test_two_masks_keep_what_each_keeps(one: list[bool] | None, expected: list[bool]) -> None:
    found = both(None if one is None else mask_of(np.array(one)), mask_of(np.array([True, False])))

    assert found is not None
    assert found.to_pylist() == expected


def test_a_mask_that_keeps_all_is_none() -> None:
    assert both(None, mask_of(np.array([True, True]))) is None
