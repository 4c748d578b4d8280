from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.manifests.columns import DamagedBuffer, Numbers, Packed, Packer, Strings

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
OPTIONAL_NUMBERS = st.lists(st.none() | st.integers(-300, 300) | INT64, min_size=1, max_size=40)
OPTIONAL_STRINGS = st.one_of(
    st.lists(st.none() | st.binary(max_size=20), min_size=1, max_size=40),
    st.lists(st.none() | st.binary(min_size=3, max_size=3), min_size=1, max_size=40),
)


def packed_numbers(values: list[int | None]) -> bytes:
    packer = Packer(len(values), {})
    numbers = np.array([v or 0 for v in values], dtype=np.int64)
    packer.numbers((1, 2), numbers, np.array([v is not None for v in values]))
    return bytes(packer.finish())


def packed_strings(values: list[bytes | None]) -> bytes:
    packer = Packer(len(values), {"a": "fact"})
    lengths = np.array([len(v or b"") for v in values], dtype=np.int64)
    data = np.frombuffer(b"".join(v or b"" for v in values), dtype=np.uint8)
    packer.strings((1, 2), lengths, data, np.array([v is not None for v in values]))
    return bytes(packer.finish())


@given(values=OPTIONAL_NUMBERS)
def test_numbers_come_back(values):
    column = Packed(packed_numbers(values)).numbers((1, 2))

    if column is None:
        assert set(values) == {None}
    else:
        assert column.to_list() == values
        assert column.to_list(np.array([0, len(values) - 1])) == [values[0], values[-1]]


@given(values=OPTIONAL_STRINGS)
def test_byte_strings_come_back(values):
    column = Packed(packed_strings(values)).strings((1, 2))

    if column is None:
        assert set(values) == {None}
    else:
        assert column.to_list() == values
        assert column.to_list(np.array([0, len(values) - 1])) == [values[0], values[-1]]
        assert column.lengths().tolist() == [len(v or b"") for v in values]


@pytest.mark.parametrize(("low", "high", "width"), [(-128, 127, 1), (0, 128, 2), (0, 1 << 40, 8)])
def test_numbers_are_as_narrow_as_they_can_be(low, high, width):
    column = Packed(packed_numbers([low, high])).numbers((1, 2))

    assert isinstance(column, Numbers)
    assert column.values.itemsize == width


def test_a_constant_takes_the_room_of_one():
    sizes = [len(packed_numbers([7] * rows)) for rows in (1, 100_000)]
    texts = [len(packed_strings([b"parquet"] * rows)) for rows in (1, 100_000)]

    assert sizes[0] == sizes[1]
    assert texts[0] == texts[1]


def test_a_column_like_another_takes_no_room():
    values = np.arange(10_000, dtype=np.int64)
    alone, both = Packer(len(values), {}), Packer(len(values), {})
    alone.numbers((0, 1), values)
    both.numbers((0, 2), values.copy(), like=both.numbers((0, 1), values))

    assert len(both.finish()) - len(alone.finish()) < 100
    found = Packed(both.finish())
    assert found.numbers((0, 2)) is not None
    assert found.ids == {0: (1, 2)}


def test_columns_cannot_be_written_to():
    for values in ([1, 2, 3], [1, 1, 1]):
        column = Packed(packed_numbers(values)).numbers((1, 2))
        assert column is not None
        with pytest.raises(ValueError, match="read-only"):
            column.values[0] = 9


def test_every_column_begins_at_a_multiple_of_64_bytes_of_a_mapped_file(tmp_path: Path):
    path = tmp_path / "columns"
    path.write_bytes(packed_strings([b"a", b"bc", None]))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        column = Packed(memoryview(mapped)).strings((1, 2))

        assert isinstance(column, Strings)
        assert column.to_list() == [b"a", b"bc", None]
        start = np.frombuffer(mapped, dtype=np.uint8).ctypes.data
        assert (column.data.ctypes.data - start) % 64 == 0
        del column


def test_any_altered_bit_is_noticed():
    raw = packed_strings([b"one", b"three", None])

    for at in range(len(raw)):
        for bit in range(8):
            altered = bytearray(raw)
            altered[at] ^= 1 << bit
            with pytest.raises(DamagedBuffer):
                Packed(bytes(altered))


def test_any_cut_is_noticed():
    raw = packed_numbers([1, 2, 300])

    for size in range(len(raw)):
        with pytest.raises(DamagedBuffer):
            Packed(raw[:size])
    with pytest.raises(DamagedBuffer):
        Packed(raw + b"\0")


def test_another_version_is_named():
    raw = bytearray(packed_numbers([1]))
    raw[8] = 99

    with pytest.raises(DamagedBuffer, match="version 99"):
        Packed(bytes(raw))
