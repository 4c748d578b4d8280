"""Puffin files that hold deletion vectors.

Spec: "Deletion Vectors", and the Puffin spec's `deletion-vector-v1` blob.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyroaring import BitMap

_MAGIC = b"PFA1"
_VECTOR_MAGIC = b"\xd1\xd3\x39\x64"


@dataclass(frozen=True)
class Vector:
    """Where a vector lies in its Puffin file, and how many positions it holds."""

    referenced_data_file: str
    offset: int
    length: int
    cardinality: int


def vector_blob(positions: Sequence[int]) -> bytes:
    """Return the blob: big-endian length, magic, the 64-bit roaring bitmap in portable form,
    big-endian CRC-32.

    >>> blob = vector_blob([1, 5, 2**33])
    >>> read_vector_blob(blob) == [1, 5, 2**33]
    True
    """
    by_key: dict[int, BitMap] = {}
    for position in positions:
        by_key.setdefault(position >> 32, BitMap()).add(position & 0xFFFFFFFF)
    body = struct.pack("<q", len(by_key))
    for key in sorted(by_key):
        bitmap = by_key[key]
        bitmap.run_optimize()
        body += struct.pack("<I", key) + bitmap.serialize()
    checked = _VECTOR_MAGIC + body
    return struct.pack(">i", len(checked)) + checked + struct.pack(">I", zlib.crc32(checked))


def read_vector_blob(blob: bytes) -> list[int]:
    """Return the positions of a blob that `vector_blob` made."""
    count = struct.unpack_from("<q", blob, 8)[0]
    positions: list[int] = []
    at = 16
    for _ in range(count):
        key = struct.unpack_from("<I", blob, at)[0]
        bitmap = BitMap.deserialize(blob[at + 4 : -4])
        at += 4 + len(bitmap.serialize())
        positions += [(key << 32) | low for low in bitmap]
    return positions


def write_puffin(path: Path, vectors: Mapping[str, Sequence[int]]) -> tuple[int, list[Vector]]:
    """Write a Puffin file with a vector a data file location; return its size and their places."""
    content = bytearray(_MAGIC)
    blobs = []
    places = []
    for location, positions in vectors.items():
        blob = vector_blob(positions)
        cardinality = len(set(positions))
        places.append(Vector(location, len(content), len(blob), cardinality))
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [2147483645],
                # not known before the commit, so the spec asks for -1
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(blob),
                "properties": {
                    "referenced-data-file": location,
                    "cardinality": str(cardinality),
                },
            }
        )
        content += blob
    payload = json.dumps(
        {"blobs": blobs, "properties": {"created-by": "floeberg test lake"}}
    ).encode()
    content += _MAGIC + payload + struct.pack("<ii", len(payload), 0) + _MAGIC
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return len(content), places
