from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.files import DataFile, FileFormat
from floeberg.protocol.splitting import (
    DEFAULT_SPLIT_SIZE_BYTES,
    split,
    split_rows,
    split_size_of,
)
from tests.support.planned import planned_files


def parquet(size_bytes: int, *offsets: int, format: FileFormat = FileFormat.PARQUET) -> DataFile:
    return DataFile("s3://b/f", format, 1, size_bytes, 0, split_offsets=offsets)


def test_row_groups_share_a_range_up_to_the_split_size():
    file = parquet(100, 4, 20, 40, 60, 80)

    assert split(file, 45) == [(0, 40), (40, 40), (80, 20)]


def test_a_row_group_larger_than_the_split_size_is_not_cut():
    assert split(parquet(100, 4, 90), 10) == [(0, 90), (90, 10)]


def test_a_file_within_the_split_size_stays_whole():
    assert split(parquet(100, 4, 50), 100) == ((0, 100),)


def test_size_0_never_splits():
    assert split(parquet(100, 4, 50), 0) == ((0, 100),)


def test_offsets_that_cannot_be_right_are_passed_over():
    for offsets in [(), (4,), (50, 4), (4, 4), (4, 100), (-1, 50)]:
        assert split(parquet(100, *offsets), 10) == ((0, 100),)


def test_only_parquet_is_split():
    assert split(parquet(100, 4, 50, format=FileFormat.AVRO), 10) == ((0, 100),)


@given(
    offsets=st.lists(st.integers(0, 999), unique=True).map(sorted),
    size_bytes=st.integers(1, 1200),
)
def test_ranges_cover_the_file_exactly_once_and_begin_at_offsets(offsets, size_bytes):
    ranges = split(parquet(1000, *offsets), size_bytes)

    assert ranges[0][0] == 0
    assert [start + length for start, length in ranges] == [*[s for s, _ in ranges[1:]], 1000]
    assert {start for start, _ in ranges[1:]} <= set(offsets)
    for start, length in ranges:
        inner = [o for o in offsets[1:] if start < o < start + length]
        assert length <= size_bytes or not inner


def test_the_size_is_the_scans_then_the_tables_then_icebergs():
    table = {"read.split.target-size": "1024"}

    assert split_size_of(10, table) == 10
    assert split_size_of(0, table) == 0
    assert split_size_of(None, table) == 1024
    assert split_size_of(None, {}) == DEFAULT_SPLIT_SIZE_BYTES
    assert split_size_of(None, {"read.split.target-size": "large"}) == DEFAULT_SPLIT_SIZE_BYTES


# --- many files at once --------------------------------------------------------------------------

some_files = st.builds(
    lambda size, offsets, format_: parquet(size, *offsets, format=format_),
    st.integers(0, 300),
    st.lists(st.integers(-1, 310), max_size=8).flatmap(
        lambda offsets: st.sampled_from([sorted(set(offsets)), sorted(set(offsets)), offsets])
    ),
    st.sampled_from([FileFormat.PARQUET, FileFormat.PARQUET, FileFormat.AVRO]),
)


def split_at_once(parts: list[list[DataFile]], size_bytes: int) -> list[tuple[int, int, int]]:
    planned = [planned_files(files) for files in parts]
    ranges = split_rows([(part.segment, part.rows) for part in planned], size_bytes)
    return list(zip(*(column.tolist() for column in ranges), strict=True))


def split_singly(parts: list[list[DataFile]], size_bytes: int) -> list[tuple[int, int, int]]:
    files = [file for part in parts for file in part]
    return [(i, *range_) for i, file in enumerate(files) for range_ in split(file, size_bytes)]


@given(st.lists(st.lists(some_files, max_size=30), max_size=3), st.integers(0, 400))
def test_many_files_at_once_have_the_ranges_of_each(parts, size_bytes):
    assert split_at_once(parts, size_bytes) == split_singly(parts, size_bytes)


@given(st.lists(some_files, min_size=60, max_size=60), st.integers(1, 100))
def test_so_have_files_of_which_a_few_have_most_row_groups(files, size_bytes):
    files[30] = parquet(5000, *range(0, 5000, 7))
    files[31] = parquet(2**63 - 1, 4, 2**62, 2**63 - 2)

    assert split_at_once([files], size_bytes) == split_singly([files], size_bytes)


def test_only_the_rows_that_are_named_are_divided():
    part = planned_files([parquet(100, 4, 50), parquet(90, 4, 60), parquet(80, 4, 70)])

    ranges = split_rows([(part.segment, np.array([0, 2]))], 60)

    assert [column.tolist() for column in ranges] == [
        [0, 0, 1, 1],
        [0, 50, 0, 70],
        [50, 50, 70, 10],
    ]
