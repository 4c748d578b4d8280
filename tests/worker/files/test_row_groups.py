"""Footers read here say what pyarrow says of them, and damage is a ValueError."""

from __future__ import annotations

import io
import random
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.worker.files.row_groups import (
    WINDOW_BYTES,
    RowGroup,
    chunk_rows,
    consecutive_runs,
    fetch_windows,
    read_row_groups,
    skippable_units,
)
from floeberg.worker.files.rows import CHUNK_BYTES, MAX_CHUNK_ROWS
from floeberg.worker.files.thrift import Fields, read_struct

TABLE = pa.table(
    {
        "i": pa.array([3, None, 5, 1], pa.int32()),
        "l": pa.array([2**40, -1, 0, None]),
        "f": pa.array([1.5, float("nan"), None, -2.0]),
        "b": pa.array([True, False, None, True]),
        "s": pa.array(["b", None, "a", "é"]),
        "fx": pa.array([b"\x00\x01", b"\xff\x00", None, b"\x7f\x7f"], pa.binary(2)),
        "d": pa.array(
            [Decimal("1.10"), None, Decimal("-3.00"), Decimal("0.00")], pa.decimal128(25, 2)
        ),
        "n": pa.array([None] * 4, pa.int64()),
        "st": pa.array([{"x": 1}, None, {"x": None}, {"x": 4}], pa.struct([("x", pa.int64())])),
    }
)


def written(**options: Any) -> tuple[bytes, bytes]:
    """Return a file and its footer."""
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=3, **options)
    file = sink.getvalue()
    length = int.from_bytes(file[-8:-4], "little")
    return file, file[-8 - length : -8]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"write_statistics": False}])
def test_agrees_with_pyarrow(options: dict[str, Any]) -> None:
    file, footer = written(**options)
    theirs = pq.read_metadata(io.BytesIO(file))

    groups = read_row_groups(footer, len(file), theirs.num_columns)

    assert [(g.first_row, g.num_rows) for g in groups] == [(0, 3), (3, 1)]
    for group in groups:
        for leaf in range(theirs.num_columns):
            column = theirs.row_group(group.index).column(leaf)
            start = column.dictionary_page_offset or column.data_page_offset
            assert group.ranges([leaf]) == [(start, column.total_compressed_size)]
            assert group.decoded_bytes([leaf]) == column.total_uncompressed_size
            ours, known = group.leaf(leaf), column.statistics
            assert ours.null_count == (known.null_count if known else None)
            has_bounds = known is not None and known.has_min_max
            assert ours.smallest == (known.min_raw if has_bounds else None)
            assert ours.largest == (known.max_raw if has_bounds else None)
    assert groups[0].start_byte == 4


def test_a_damaged_footer_is_refused_or_read() -> None:
    file, footer = written()
    chance = random.Random(1)

    for _ in range(2000):
        damaged = bytearray(footer)
        for _ in range(chance.choice([1, 1, 4])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        cut = damaged[: chance.randrange(len(damaged))] if chance.random() < 0.2 else damaged
        try:
            groups = read_row_groups(bytes(cut), len(file), TABLE.num_columns)
            for group in groups:
                for leaf in range(TABLE.num_columns):
                    group.leaf(leaf)
                    if not group.is_encrypted([leaf]):
                        group.ranges([leaf])
        except ValueError:
            continue


def test_every_cut_of_a_struct_is_refused() -> None:
    _, footer = written()

    for length in range(len(footer)):
        with pytest.raises(ValueError, match="cut short"):
            read_struct(footer[:length], {4: {1: {3: {12: {}}}}})


def test_every_kind_of_value_is_read_and_passed_over() -> None:
    fields = bytes.fromhex(
        "15 02"  # 1: the integer 1
        "11 12"  # 2: true; 3: false
        "17 000000000000f03f"  # 4: the double 1.0
        "19 32 01 02 01"  # 5: a list of three booleans
        "1b 01 85 01 61 04"  # 6: a map of one entry
        "1c 15 06 00"  # 7: a struct with the field 1: 3
        "03 10 7f"  # 8: the byte 127, its id written out
        "00"
    )
    wanted = {1: None, 2: None, 3: None, 4: None, 5: None, 7: {1: None}, 8: None}

    assert read_struct(fields, wanted) == {
        1: 1,
        2: True,
        3: False,
        4: 1.0,
        5: [True, False, True],
        7: {1: 3},
        8: 127,
    }
    assert read_struct(fields, {}) == {}


def group(index: int, first_row: int, size: int) -> RowGroup:
    metadata = {1: 2, 6: size, 7: size, 9: 4 + index * size}
    return RowGroup(index, first_row, 10, 1 << 40, [{3: metadata}], frozenset())


def test_runs_are_of_neighbours() -> None:
    groups = [group(i, i * 10, 1) for i in (0, 1, 3, 4, 6)]

    runs = consecutive_runs(groups)

    assert [[g.index for g in run] for run in runs] == [[0, 1], [3, 4], [6]]


def test_units_are_row_groups_or_small_neighbours() -> None:
    half = CHUNK_BYTES // 2
    sizes = [half, half, 1, 3 * half, 1, 1, 1]
    groups = [group(i, i * 10, size) for i, size in enumerate(sizes)]
    del groups[5]

    units = skippable_units(groups, [0])

    assert [[g.index for g in unit] for unit in units] == [[0, 1], [2], [3], [4], [6]]
    many = [group(i, i * 10, 0) for i in range(MAX_CHUNK_ROWS // 10 + 1)]
    assert [len(unit) for unit in skippable_units(many, [0])] == [MAX_CHUNK_ROWS // 10, 1]


def test_a_chunk_has_so_many_bytes_or_rows() -> None:
    assert chunk_rows([group(0, 0, CHUNK_BYTES), group(1, 10, CHUNK_BYTES)], [0]) == 10
    assert chunk_rows([group(0, 0, CHUNK_BYTES * 100)], [0]) == 1


@pytest.mark.parametrize(
    ("columns", "expected"),
    [(1, 1 << 17), (6, CHUNK_BYTES // 48), (19, 1 << 15)],
)
def test_a_chunk_of_columns_that_encode_well_is_bounded_by_their_width(
    columns: int, expected: int
) -> None:
    table = pa.table({f"n{i}": pa.repeat(pa.scalar(i), 200_000) for i in range(columns)})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    file = sink.getvalue()
    length = int.from_bytes(file[-8:-4], "little")

    groups = read_row_groups(file[-8 - length : -8], len(file), columns)

    assert groups[0].decoded_bytes(range(columns)) < CHUNK_BYTES // 8
    assert chunk_rows(groups, range(columns)) == expected


def test_a_chunk_of_lists_is_bounded_by_their_elements() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": pa.array([list(range(100))] * 5_000)}), sink)
    file = sink.getvalue()
    length = int.from_bytes(file[-8:-4], "little")

    groups = read_row_groups(file[-8 - length : -8], len(file), 1)

    assert groups[0].arrow_bytes([0]) == 4_000_000


def test_windows_hold_whole_row_groups() -> None:
    third = WINDOW_BYTES // 3
    groups = [group(i, i * 10, size) for i, size in enumerate([third, third, third, third])]

    windows = fetch_windows(groups, [0])

    assert [len(window) for window in windows] == [3, 1]
    assert sum(length for _, length in windows[0]) <= WINDOW_BYTES
    assert fetch_windows(groups, []) == []


@given(
    sizes=st.lists(
        st.one_of(st.integers(0, 1 << 20), st.integers(0, 100 << 20)), min_size=1, max_size=40
    )
)
def test_a_large_row_group_is_cut_into_the_same_share_of_every_column(sizes: list[int]) -> None:
    starts = [4, *accumulate(sizes, initial=4)]
    columns: list[Fields] = [
        {3: {1: 2, 6: size, 7: size, 9: start}}
        for start, size in zip(starts[1:], sizes, strict=False)
    ]
    large = RowGroup(0, 0, 10, 1 << 40, columns, frozenset())

    windows = fetch_windows([large], range(len(columns)))

    read = {i for window in windows for i in window}
    assert sum(length for _, length in read) == sum(sizes)
    for column, size in zip(large.ranges(range(len(columns))), sizes, strict=True):
        ends = column[0]
        for share, window in enumerate(windows):
            inside = [(s, n) for s, n in window if n and column[0] <= s < column[0] + size]
            for start, length in inside:
                assert start == ends  # in order, without a gap
                # what is read in this window and not before
                assert (start - column[0] + 1) * len(windows) >= size * share
                ends = start + length
        assert ends == column[0] + size
    if sum(sizes) > WINDOW_BYTES:
        assert all(sum(n for _, n in window) <= 2 * WINDOW_BYTES for window in windows)


def test_bounds_of_bytes_count_only_where_the_file_states_their_order() -> None:
    statistics = {5: b"z", 6: b"a", 1: b"Z", 2: b"A", 3: 0}
    metadata = {1: 6, 6: 1, 7: 1, 9: 4, 12: statistics}
    unordered = RowGroup(0, 0, 1, 100, [{3: metadata}], frozenset())
    ordered = RowGroup(0, 0, 1, 100, [{3: metadata}], frozenset({0}))

    assert unordered.leaf(0).smallest is None
    assert (ordered.leaf(0).smallest, ordered.leaf(0).largest) == (b"a", b"z")


def test_a_column_outside_of_the_file_is_refused() -> None:
    outside = RowGroup(0, 0, 1, 10, [{3: {1: 2, 6: 1, 7: 8, 9: 4}}], frozenset())

    with pytest.raises(ValueError, match="outside of the file"):
        outside.ranges([0])
