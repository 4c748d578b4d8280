"""A block's file gives back what was put in, or says that it is damaged."""

from __future__ import annotations

import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.worker.blocks.layout import (
    BLOCK_BYTES,
    HEADER_BYTES,
    DamagedBlock,
    Piece,
    checksum,
    decode_header,
    encode,
    merge,
)

KEY = bytes(range(32))
CONTENT = bytes(i * 7 % 251 for i in range(3000))


def piece(start: int, stop: int) -> Piece:
    return Piece(start, (memoryview(CONTENT)[start:stop],))


spans = st.lists(
    st.tuples(st.integers(0, 2999), st.integers(1, 700)).map(
        lambda span: (span[0], min(span[0] + span[1], 3000))
    ),
    max_size=12,
)


@given(spans)
def test_merged_pieces_hold_each_byte_once_and_in_order(spans: list[tuple[int, int]]) -> None:
    merged = merge(piece(start, stop) for start, stop in spans)

    assert all(one.end < other.offset for one, other in pairwise(merged))
    for one in merged:
        assert b"".join(one.parts) == CONTENT[one.offset : one.end]
    wanted = {i for start, stop in spans for i in range(start, stop)}
    assert {i for one in merged for i in range(one.offset, one.end)} == wanted


@given(spans)
def test_a_file_gives_back_what_was_put_in(spans: list[tuple[int, int]]) -> None:
    merged = merge(piece(start, stop) for start, stop in spans)

    raw = b"".join(encode(KEY, merged))

    runs = decode_header(raw[:HEADER_BYTES], KEY, len(raw))
    assert [(run.offset, run.end) for run in runs] == [(one.offset, one.end) for one in merged]
    for run in runs:
        data = raw[run.place : run.place + run.length]
        assert data == CONTENT[run.offset : run.end]
        assert checksum((data,)) == run.checksum


def test_of_more_pieces_than_a_file_has_room_for_the_longest_are_kept() -> None:
    pieces = [piece(i * 50, i * 50 + 1 + i) for i in range(40)]

    merged = merge(pieces)

    assert [one.offset for one in merged] == [i * 50 for i in range(8, 40)]
    raw = b"".join(encode(KEY, merged))
    assert len(decode_header(raw[:HEADER_BYTES], KEY, len(raw))) == 32


RAW = b"".join(encode(KEY, [piece(0, 1000), piece(1200, 2000)]))


@given(st.integers(0, HEADER_BYTES - 1), st.integers(0, 7))
def test_a_header_of_which_a_bit_is_flipped_is_damaged(place: int, bit: int) -> None:
    flipped = bytearray(RAW[:HEADER_BYTES])
    flipped[place] ^= 1 << bit

    with pytest.raises(DamagedBlock):
        decode_header(bytes(flipped), KEY, len(RAW))


@pytest.mark.parametrize("size", [0, 1, HEADER_BYTES, len(RAW) - 1, len(RAW) + 1])
def test_a_file_of_another_length_is_damaged(size: int) -> None:
    with pytest.raises(DamagedBlock):
        decode_header(RAW[:HEADER_BYTES][:size], KEY, size)


def test_another_blocks_file_is_damaged() -> None:
    with pytest.raises(DamagedBlock, match="another block"):
        decode_header(RAW[:HEADER_BYTES], bytes(32), len(RAW))


def with_checksum(header: bytearray) -> bytes:
    header[-4:] = zlib.crc32(header[:-4]).to_bytes(4, "little")
    return bytes(header)


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (0, b"ANOTHER!", "version"),
        (8, b"\2\0\0\0", "version"),
        (12, b"\xff\0\0\0", "version"),
        (12, b"\1\0\0\0", "as long as"),
        (48, (1100).to_bytes(4, "little"), "contradicts"),
        (60, BLOCK_BYTES.to_bytes(4, "little"), "contradicts"),
    ],
    ids=["magic", "version", "too many runs", "fewer runs", "out of order", "beyond the block"],
)
def test_a_header_that_was_not_written_so_is_damaged(place: int, value: bytes, says: str) -> None:
    header = bytearray(RAW[:HEADER_BYTES])
    header[place : place + len(value)] = value

    with pytest.raises(DamagedBlock, match=says):
        decode_header(with_checksum(header), KEY, len(RAW))
