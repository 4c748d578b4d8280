"""Avro records of one width, written as a matrix of bytes with a row for each record.

An Avro integer takes as many bytes as its size needs, so that usually nobody can tell where a
record's fields stand. Here the values of each field are all of one width, and whatever else makes
records differ in length (a null, one more element) is another layout. So a manifest of 16,000
entries is a few dozen assignments in numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tests.support.avro_container import long

Bytes: TypeAlias = npt.NDArray[np.uint8]
"""Of shape (rows, width)."""
Integers: TypeAlias = npt.NDArray[np.int64]


class Layout:
    """Where each field of a record stands: what is the same in all records, and slots by name."""

    def __init__(self) -> None:
        self._constant = bytearray()
        self._slots: list[tuple[str, slice]] = []

    def put(self, raw: bytes) -> None:
        """Add bytes that all records share."""
        self._constant += raw

    def slot(self, name: str, width: int) -> None:
        """Add a field of `width` bytes whose value each record has for itself; several fields may
        have the same name, and so the same value."""
        self._slots.append((name, slice(len(self._constant), len(self._constant) + width)))
        self._constant += bytes(width)

    def text(self, name: str, width: int) -> None:
        """Add a slot for a text, or bytes, of `width` bytes; its length comes first."""
        self.put(long(width))
        self.slot(name, width)

    def records(self, columns: Mapping[str, Bytes], rows: Integers) -> Bytes:
        """Return the records of those rows of the columns, in this order."""
        out = np.tile(np.frombuffer(bytes(self._constant), np.uint8), (len(rows), 1))
        for name, place in self._slots:
            out[:, place] = columns[name][rows]
        return out


def varints(values: Integers, width: int) -> Bytes:
    """Return Avro's coding of integers that all take `width` bytes; raises `ValueError` for others.

    >>> varints(np.array([64, 100]), 2).tolist()
    [[128, 1], [200, 1]]
    """
    coded = values.astype(np.uint64) << np.uint64(1)
    least = np.uint64(0 if width == 1 else 1 << 7 * (width - 1))
    if len(coded) and (coded.min() < least or coded.max() >> np.uint64(7 * width)):
        raise ValueError(f"{values.min()} to {values.max()} don't all take {width} bytes")
    out = np.empty((len(values), width), np.uint8)
    for i in range(width):
        more = 0x80 if i < width - 1 else 0
        out[:, i] = (coded >> np.uint64(7 * i)) & np.uint64(0x7F) | np.uint64(more)
    return out


def raw(values: npt.NDArray[np.generic]) -> Bytes:
    """Return the bytes of each value as they stand in memory: little-endian, texts as they are."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)


def big_endian(values: Integers, width: int) -> Bytes:
    """Return the last `width` bytes of each integer, the highest first."""
    return raw(values.astype(">i8"))[:, 8 - width :]


def digits(values: Integers, width: int) -> Bytes:
    """Return each number in decimal with leading zeros.

    >>> digits(np.array([7, 42]), 3).tobytes()
    b'007042'
    """
    powers = 10 ** np.arange(width - 1, -1, -1)
    return (values[:, None] // powers % 10 + ord("0")).astype(np.uint8)


def hexadecimal(octets: Bytes) -> Bytes:
    """Return each row in hexadecimal, twice as wide."""
    letters = np.frombuffer(b"0123456789abcdef", np.uint8)
    return letters[np.stack([octets >> 4, octets & 15], axis=2).reshape(len(octets), -1)]


def joined(parts: Sequence[bytes | Bytes], rows: int) -> Bytes:
    """Return texts put together from parts; plain bytes are the same in all rows."""
    columns = [
        np.tile(np.frombuffer(part, np.uint8), (rows, 1)) if isinstance(part, bytes) else part
        for part in parts
    ]
    return np.concatenate(columns, axis=1)
