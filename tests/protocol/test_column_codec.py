from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.column_codec import (
    MalformedColumns,
    NumberColumn,
    Reader,
    Table,
    TextColumn,
    Writer,
    table_of,
)

INT64 = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300)


def numbers(values: list[int | None]) -> NumberColumn:
    valid = np.array([v is not None for v in values], dtype=np.bool_)
    plain = np.array([v or 0 for v in values], dtype=np.int64)
    return NumberColumn(plain, None if valid.all() else valid)


def texts(values: list[bytes]) -> TextColumn:
    lengths = np.array([len(v) for v in values], dtype=np.int64)
    return TextColumn(lengths, np.frombuffer(b"".join(values), dtype=np.uint8))


def written(*tables: Table) -> bytes:
    writer = Writer()
    for table in tables:
        writer.table(table)
    return writer.finish()


@given(
    st.integers(0, 20).flatmap(
        lambda n: st.tuples(
            st.lists(INT64, min_size=n, max_size=n),
            st.lists(st.none() | INT64, min_size=n, max_size=n),
            st.lists(st.binary(max_size=5), min_size=n, max_size=n),
        )
    )
)
def test_columns_come_back(columns: tuple[list[int], list[int | None], list[bytes]]):
    every, some, text = columns
    table = table_of(
        len(every), [((0, 1), numbers([*every])), ((0, 2), numbers(some)), ((0, 3), texts(text))]
    )
    reader = Reader(memoryview(written(table, table)))

    for found in (reader.table(), reader.table()):
        assert found.rows == len(every)
        assert found.numbers((0, 1)).tolist() == every
        if any(v is not None for v in some):
            column = found.columns[0, 2]
            assert isinstance(column, NumberColumn)
            valid = [True] * len(some) if column.valid is None else column.valid.tolist()
            pairs = zip(column.values.tolist(), valid, strict=True)
            assert [v if ok else None for v, ok in pairs] == some
        else:
            assert (0, 2) not in found.columns
    reader.end()


def test_numbers_take_as_few_bytes_as_what_they_differ_by():
    for values, width in [([2**40] * 9, 0), ([2**40 + i for i in range(9)], 1), ([0, 256], 2)]:
        plain = written(table_of(len(values), [((0, 1), numbers([*values]))]))

        assert len(plain) == 6 + 7 + 9 + width * len(values)


@pytest.mark.parametrize(
    "raw",
    [
        struct.pack("<IH", (1 << 24) + 1, 0),
        struct.pack("<IH", 1, 1),
        struct.pack("<IHHiBqB", 1, 1, 0, 1, 4, 0, 0),
        struct.pack("<IHHiBqB", 1, 1, 0, 1, 0, 0, 3),
        struct.pack("<IHHiBqB", 1, 1, 0, 1, 1, -1, 0),
        struct.pack("<IHHiBqB", 1, 1, 0, 1, 1, 10, 0),
        struct.pack("<IHHiBqB", 1, 1, 1, 1, 0, 0, 0),
        struct.pack("<IHHiBqBHiBqB", 1, 2, 0, 1, 0, 1 << 60, 0, 1, 1, 0, 0, 0),
        struct.pack("<IHHiBqBHiBqB", 1, 2, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0),
        struct.pack("<IHHiBqBHiBqB", 1 << 24, 2, 0, 1, 0, 9, 0, 1, 1, 0, 0, 0),
    ],
)
def test_what_does_not_fit_is_refused(raw: bytes):
    with pytest.raises(MalformedColumns):
        Reader(memoryview(raw)).table()


def test_bytes_after_the_last_table_are_refused():
    reader = Reader(memoryview(written(Table(0)) + b"x"))
    reader.table()

    with pytest.raises(MalformedColumns):
        reader.end()
