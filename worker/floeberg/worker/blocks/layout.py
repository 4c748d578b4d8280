"""The file of one block: which of the block's bytes are kept, and these bytes.

A block is a megabyte of an object, from a multiple of a megabyte on. Of each, what was asked for is
kept, in runs of neighbouring bytes with a checksum each. A header of fixed length says whose block
it is, and of each run where it begins, how long it is and its checksum; it ends with a checksum of
its own.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

BLOCK_BYTES = 1 << 20
HEADER_BYTES = 512

_MAGIC = b"FLOEBLCK"
_VERSION = 1
_HEAD = struct.Struct("<8sII32s")
_RUN = struct.Struct("<III")
_CHECKSUM_AT = HEADER_BYTES - 4
_MOST_RUNS = 32


class DamagedBlock(Exception):
    """A file is not, or not any more, what was written."""


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes of a block from `offset` on, at `place` in its file."""

    offset: int
    length: int
    checksum: int
    place: int

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a block from `offset` on, in parts that follow each other."""

    offset: int
    parts: tuple[memoryview, ...]

    @property
    def length(self) -> int:
        return sum(map(len, self.parts))

    @property
    def end(self) -> int:
        return self.offset + self.length

    def after(self, offset: int) -> Piece:
        """Return what of it comes from the block's byte `offset` on."""
        skipped, left = offset - self.offset, []
        for part in self.parts:
            if skipped < len(part):
                left.append(part[max(skipped, 0) :])
            skipped -= len(part)
        return Piece(max(offset, self.offset), tuple(left))


def merge(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces in order, those that touch or overlap as one; the longest, where there are
    more than a file has room for."""
    merged: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: piece.offset):
        last = merged[-1] if merged else None
        if last is None or piece.offset > last.end:
            merged.append(piece)
        elif piece.end > last.end:
            merged[-1] = Piece(last.offset, last.parts + piece.after(last.end).parts)
    if len(merged) > _MOST_RUNS:
        longest = sorted(merged, key=lambda piece: piece.length, reverse=True)[:_MOST_RUNS]
        merged = sorted(longest, key=lambda piece: piece.offset)
    return merged


def encode(key: bytes, pieces: Sequence[Piece]) -> list[bytes | memoryview]:
    """Return the file, in parts, of the block `key` of which `pieces`, merged, are kept."""
    head = _HEAD.pack(_MAGIC, _VERSION, len(pieces), key)
    for piece in pieces:
        head += _RUN.pack(piece.offset, piece.length, checksum(piece.parts))
    head = head.ljust(_CHECKSUM_AT, b"\0")
    return [head + _checksum_of(head), *(part for piece in pieces for part in piece.parts)]


def decode_header(header: bytes, key: bytes, file_bytes: int) -> list[Run]:
    """Return the runs in a file of `file_bytes` that begins with `header`; raises `DamagedBlock`
    where it is not one of the block `key`."""
    if len(header) != HEADER_BYTES:
        raise DamagedBlock("it is cut short")
    if _checksum_of(header[:_CHECKSUM_AT]) != header[_CHECKSUM_AT:]:
        raise DamagedBlock("its header is damaged")
    magic, version, count, found = _HEAD.unpack_from(header)
    if magic != _MAGIC or version != _VERSION or count > _MOST_RUNS:
        raise DamagedBlock("it is of another version")
    if found != key:
        raise DamagedBlock("it holds another block")
    runs: list[Run] = []
    place = HEADER_BYTES
    for i in range(count):
        offset, length, sum_ = _RUN.unpack_from(header, _HEAD.size + i * _RUN.size)
        runs.append(Run(offset, length, sum_, place))
        place += length
    if place != file_bytes:
        raise DamagedBlock("it is not as long as its header says")
    in_order = all(run.end < after.offset for run, after in pairwise(runs))
    if not in_order or any(run.end > BLOCK_BYTES for run in runs):
        raise DamagedBlock("its header contradicts itself")
    return runs


def checksum(parts: Iterable[bytes | memoryview]) -> int:
    """Return the checksum of parts that follow each other."""
    sum_ = 0
    for part in parts:
        sum_ = zlib.crc32(part, sum_)
    return sum_


def _checksum_of(head: bytes) -> bytes:
    return zlib.crc32(head).to_bytes(4, "little")
