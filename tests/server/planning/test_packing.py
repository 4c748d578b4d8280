from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.server.planning.packing import Weights

sizes_lists = st.lists(st.integers(0, 10**9), max_size=60)


@given(sizes=sizes_lists, groups=st.integers(1, 20))
def test_groups_have_all_tasks_and_none_is_empty(sizes, groups):
    counts = Weights(sizes).packed(groups)

    assert sum(counts) == len(sizes)
    assert len(counts) == min(groups, len(sizes))
    assert all(counts)


@given(sizes=st.lists(st.integers(1, 10**9), min_size=1, max_size=60), groups=st.integers(1, 20))
def test_no_group_is_larger_than_its_share_and_one_task(sizes, groups):
    counts = Weights(sizes).packed(groups)

    starts = [sum(counts[:i]) for i in range(len(counts))]
    largest = max(sum(sizes[s : s + n]) for s, n in zip(starts, counts, strict=True))
    assert largest <= sum(sizes) / len(counts) + max(sizes)


def test_equal_tasks_are_spread_evenly():
    assert Weights([10] * 10).packed(4) == [3, 2, 3, 2]


def test_a_large_task_stands_alone():
    assert Weights([1, 1, 1000, 1, 1]).packed(3) == [2, 1, 2]


def test_there_must_be_a_group():
    with pytest.raises(ValueError, match="0 groups"):
        Weights([1]).packed(0)
