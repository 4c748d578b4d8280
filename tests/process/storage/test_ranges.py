import os
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from floeberg.process.storage.ranges import coalesce, cut

OBJECT = os.urandom(400)
ranges_lists = st.lists(st.tuples(st.integers(0, 450), st.integers(0, 60)), max_size=12)


@given(ranges=ranges_lists, gap=st.integers(0, 50), request=st.integers(1, 200))
def test_joined_ranges_give_the_same_bytes(ranges, gap, request):
    fetched = coalesce(ranges, gap, request)

    parts = [OBJECT[start : start + length] for start, length in fetched]
    assert cut(ranges, fetched, parts) == [OBJECT[s : s + n] for s, n in ranges]


@given(ranges=ranges_lists, gap=st.integers(0, 50), request=st.integers(1, 200))
def test_requests_are_sorted_apart_and_no_longer_than_they_may(ranges, gap, request):
    fetched = coalesce(ranges, gap, request)

    assert all(length > 0 for _, length in fetched)
    for (start, length), (next_start, _) in pairwise(fetched):
        assert start + length <= next_start
    # what is read needlessly lies between two ranges, and is short
    wanted = {b for s, n in ranges for b in range(s, s + n)}
    needless = sum(length for _, length in fetched) - len(wanted)
    assert needless <= gap * max(len(ranges) - 1, 0)


def test_a_long_range_stays_one_request():
    assert coalesce([(0, 500), (100, 10)], gap_bytes=10, request_bytes=100) == [(0, 500)]
    assert coalesce([(0, 60), (60, 60)], gap_bytes=10, request_bytes=100) == [(0, 60), (60, 60)]
