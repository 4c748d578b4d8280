"""Deletion vectors: the deleted positions of one data file, as a Roaring bitmap inside a Puffin
file.

A vector is read straight from its place in the file, without the Puffin footer. Its blob: the
length of what follows (4 bytes, big-endian), a magic number, the bitmap, and a CRC-32 of magic and
bitmap (big-endian).
Spec: "Deletion Vectors"; Puffin spec, "deletion-vector-v1".
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap64

from floeberg.process.storage.ranges import Range
from floeberg.protocol.errors import CorruptDeletes, MissingFile
from floeberg.protocol.files import DeleteFile
from floeberg.protocol.storage import Storage
from floeberg.worker.deletes.positions import Positions

_MAGIC = bytes((0xD1, 0xD3, 0x39, 0x64))
_LENGTH_BYTES = 4
_CRC_BYTES = 4
_LAST_POSITION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """The sorted positions that one vector deletes."""

    positions: Positions

    @property
    def size_bytes(self) -> int:
        return self.positions.nbytes


def load_deletion_vector(storage: Storage, file: DeleteFile, verify_crc: bool) -> DeletionVector:
    """Read the vector that `file` places. Raises `CorruptDeletes` and `MissingFile`."""
    place = vector_range(file)
    if place is None:
        raise CorruptDeletes(
            f"the deletion vector in {file.location} has no content offset and size in its manifest"
        )
    start, length = place
    where = f"the deletion vector at byte {start} of {file.location}"
    try:
        [blob] = storage.read_ranges(file.location, [place])
    except MissingFile as exc:
        raise MissingFile(file.location, "deletion vector file") from exc
    if len(blob) != length:
        raise CorruptDeletes(f"{where} has {len(blob)} bytes; its manifest says {length}")
    positions = decode_vector(blob, where, verify_crc)
    if len(positions) != file.record_count:
        raise CorruptDeletes(
            f"{where} deletes {len(positions)} rows; its manifest says {file.record_count}"
        )
    return DeletionVector(positions)


def vector_range(file: DeleteFile) -> Range | None:
    """Return where the vector lies; None where its manifest does not say."""
    if file.content_offset is None or file.content_size_bytes is None:
        return None
    return file.content_offset, file.content_size_bytes


def decode_vector(blob: bytes, where: str, verify_crc: bool) -> Positions:
    """Return the sorted positions in a `deletion-vector-v1` blob; `CorruptDeletes` says what is
    wrong with it.
    """
    if len(blob) < _LENGTH_BYTES + len(_MAGIC) + _CRC_BYTES:
        raise CorruptDeletes(f"{where} is cut off: {len(blob)} bytes")
    length = int.from_bytes(blob[:_LENGTH_BYTES], "big")
    if length != len(blob) - _LENGTH_BYTES - _CRC_BYTES:
        raise CorruptDeletes(f"{where} says it holds {length} bytes in a blob of {len(blob)}")
    content = blob[_LENGTH_BYTES:-_CRC_BYTES]
    if not content.startswith(_MAGIC):
        raise CorruptDeletes(f"{where} does not start with the magic number of vectors")
    if verify_crc and zlib.crc32(content) != int.from_bytes(blob[-_CRC_BYTES:], "big"):
        raise CorruptDeletes(f"{where} has a wrong checksum")
    return _positions(content[len(_MAGIC) :], where)


def _positions(bitmap: bytes, where: str) -> Positions:
    try:
        positions = np.asarray(BitMap64.deserialize(bitmap).to_array(), dtype=np.uint64)
    except (ValueError, IndexError) as exc:
        raise CorruptDeletes(f"{where} holds no valid Roaring bitmap: {exc}") from exc
    if len(positions) and positions[-1] > _LAST_POSITION:
        raise CorruptDeletes(f"{where} names position {positions[-1]}")
    return positions.astype(np.int64)
