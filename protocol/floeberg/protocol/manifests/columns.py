"""Columns of a segment, and the flat buffer that holds them.

A buffer is a header, a directory of fixed records, a little JSON, and the columns' arrays, each
aligned to 64 bytes and little-endian, so that a file of it can be mapped and used where it lies.
The header has a format version and a checksum over all the rest. Numbers are as narrow as the
column allows; a column with one value for all rows is stored once. The same columns always give
the same bytes.

`Packer` writes a buffer, `Packed` reads one. What the columns mean is `manifests.segment`'s affair.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from floeberg.protocol.types import Json

Ints: TypeAlias = npt.NDArray[np.signedinteger]
Int64s: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]
Buffer: TypeAlias = bytes | memoryview
ColumnKey: TypeAlias = tuple[int, int]
"""A section of columns and an id in it."""

FORMAT_VERSION = 1
_MAGIC = b"FLOESEG\0"
_HEADER = struct.Struct("<8sIIQQI4x")  # magic, version, columns, rows, bytes in all, checksum
_CHECKSUM_AT = 32
_ALIGNMENT = 64
_RECORD = np.dtype(
    [
        ("section", "<u2"),
        ("kind", "u1"),
        ("is_constant", "u1"),
        ("id", "<i4"),
        ("rows", "<u4"),
        ("width", "<u4"),
        ("data", "<u8"),
        ("offsets", "<u8"),
        ("valid", "<u8"),
    ]
)
NUMBERS, FIXED, VARIABLE = 0, 1, 2
WIDTHS: Mapping[int, np.dtype[np.signedinteger]] = {
    1: np.dtype(np.int8),
    2: np.dtype(np.int16).newbyteorder("<"),
    4: np.dtype(np.int32).newbyteorder("<"),
    8: np.dtype(np.int64).newbyteorder("<"),
}
OFFSETS = np.dtype("<i4")


class DamagedBuffer(ValueError):
    """A buffer that no `Packer` of this version wrote: of another format, cut, or altered."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole numbers, shape (rows,); what stands where a row has none is zero.

    `valid` says which rows have a value; None stands for all of them. A column of one value is a
    view that repeats it.
    """

    values: Ints
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_constant(self) -> bool:
        """Say whether the column is stored as one value, which every row has."""
        return len(self.values) > 0 and not self.values.strides[0]

    def to_list(self, rows: Int64s | None = None) -> list[int | None]:
        """Return the values of all rows, or of those that `rows` names, None for none."""
        values = self.values if rows is None else self.values[rows]
        listed: list[int | None] = values.tolist()
        if self.valid is not None:
            valid = self.valid if rows is None else self.valid[rows]
            for i in np.flatnonzero(~valid).tolist():
                listed[i] = None
        return listed

    def take(self, rows: Int64s) -> Numbers:
        """Return the values of `rows`, in their order."""
        return Numbers(self.values[rows], None if self.valid is None else self.valid[rows])


@dataclass(frozen=True, slots=True)
class Strings:
    """Byte strings: all of one width, or each of its own.

    Of one width, `data` has the shape (rows, width) and `offsets` is None; else row i is
    `data[offsets[i]:offsets[i + 1]]`, and both are the buffers of an Arrow array of that type. What
    stands where a row has no value is zeros, or empty. `valid` is as with `Numbers`.
    """

    data: Bytes
    offsets: npt.NDArray[np.int32] | None
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.data) if self.offsets is None else len(self.offsets) - 1

    @property
    def width(self) -> int | None:
        """The bytes of every value, None where they differ."""
        return self.data.shape[1] if self.offsets is None else None

    def lengths(self) -> Int64s:
        """Return the bytes of each row's value, 0 for none."""
        if self.offsets is None:
            lengths = np.full(len(self), self.data.shape[1], dtype=np.int64)
            return lengths if self.valid is None else lengths * self.valid
        return np.diff(self.offsets).astype(np.int64)

    def lengths_of(self, rows: Int64s) -> Int64s:
        """Return the bytes of the values of `rows`, 0 for none."""
        if self.offsets is None:
            lengths = np.full(len(rows), self.data.shape[1], dtype=np.int64)
            return lengths if self.valid is None else lengths * self.valid[rows]
        lengths = self.offsets[1:][rows] - self.offsets[rows]
        return lengths.astype(np.int64)

    def to_list(self, rows: Int64s | None = None) -> list[bytes | None]:
        """Return the values of all rows, or of those that `rows` names, None for none."""
        places = np.arange(len(self)) if rows is None else rows
        listed: list[bytes | None]
        if self.offsets is None:
            width = self.data.shape[1]
            raw = self.data[places].tobytes()
            listed = [raw[i * width : (i + 1) * width] for i in range(len(places))]
        else:
            starts, ends = self.offsets[:-1][places].tolist(), self.offsets[1:][places].tolist()
            listed = [self.data[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
        if self.valid is not None:
            for i in np.flatnonzero(~self.valid[places]).tolist():
                listed[i] = None
        return listed

    def take(self, rows: Int64s) -> Strings:
        """Return the values of `rows`, in their order."""
        valid = None if self.valid is None else self.valid[rows]
        if self.offsets is None:
            return Strings(self.data[rows], None, valid)
        lengths = self.lengths_of(rows)
        offsets = np.zeros(len(rows) + 1, dtype=np.int32)
        np.cumsum(lengths, out=offsets[1:])
        shifts = np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return Strings(self.data[shifts + np.arange(len(shifts))], offsets, valid)


Column: TypeAlias = Numbers | Strings


def narrowest(low: int, high: int) -> np.dtype[np.signedinteger]:
    """Return the smallest type that holds `low` to `high`."""
    for width, dtype in WIDTHS.items():
        limit = 1 << (8 * width - 1)
        if -limit <= low and high < limit:
            return dtype
    raise OverflowError("a number is longer than 64 bits")


class Placed(NamedTuple):
    """A column of numbers in a buffer in the making: its record, and its values."""

    record: int
    values: Int64s


class Packer:
    """Collects the columns of one buffer, in the order in which they are given."""

    def __init__(self, rows: int, facts: Json) -> None:
        self._rows = rows
        self._facts = json.dumps(facts, separators=(",", ":")).encode()
        self._records: list[tuple[int, ...]] = []
        self._arrays: list[npt.NDArray[np.generic]] = []
        self._size = 0

    def numbers(
        self,
        key: ColumnKey,
        values: Int64s,
        valid: Mask | None = None,
        *,
        like: Placed | None = None,
    ) -> Placed:
        """Add a column; return its place, for others that are probably `like` it.

        One that equals another takes no room. A column without a value is left out.
        """
        valid, has_any = _normal(valid, len(values))
        if not has_any:
            return Placed(-1, values)
        if valid is not None:
            values = np.where(valid, values, 0)
        elif like is not None and _are_same(values, like.values):
            _, kind, is_constant, _, *place = self._records[like.record]
            self._records.append((key[0], kind, is_constant, key[1], *place))
            return like
        low, high = int(values.min()), int(values.max())
        dtype = narrowest(low, high)
        is_constant = low == high and valid is None
        stored = values[:1] if is_constant else values
        at = self._put(stored.astype(dtype))
        self._record(key, NUMBERS, is_constant, len(values), dtype.itemsize, at, 0, valid)
        return Placed(len(self._records) - 1, values)

    def strings(
        self, key: ColumnKey, lengths: Int64s, data: Bytes, valid: Mask | None = None
    ) -> None:
        """Add a column whose values lie in `data` one after the other, without gaps.

        `lengths` has the bytes of each, 0 where there is no value.
        """
        valid, has_any = _normal(valid, len(lengths))
        if not has_any:
            return
        sizes = lengths if valid is None else lengths[valid]
        width = int(sizes[0])
        if (sizes == width).all():
            self._fixed(key, data.reshape(len(sizes), width), len(lengths), valid)
            return
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        if offsets[-1] > np.iinfo(OFFSETS).max:
            raise OverflowError("a column holds more than 2 GiB of text")
        at, offsets_at = self._put(data), self._put(offsets.astype(OFFSETS))
        self._record(key, VARIABLE, False, len(lengths), len(data), at, offsets_at, valid)

    def _fixed(self, key: ColumnKey, values: Bytes, rows: int, valid: Mask | None) -> None:
        is_constant = valid is None and _are_equal(values)
        if is_constant:
            values = values[:1]
        elif valid is not None:
            spread = np.zeros((rows, values.shape[1]), dtype=np.uint8)
            spread[valid] = values
            values = spread
        width = values.shape[1]
        self._record(key, FIXED, is_constant, rows, width, self._put(values), 0, valid)

    def _record(
        self,
        key: ColumnKey,
        kind: int,
        is_constant: bool,
        rows: int,
        width: int,
        data: int,
        offsets: int,
        valid: Mask | None,
    ) -> None:
        bits = 0 if valid is None else self._put(np.packbits(valid))
        record = (key[0], kind, is_constant, key[1], rows, width, data, offsets, bits)
        self._records.append(record)

    def _put(self, array: npt.NDArray[np.generic]) -> int:
        """Keep an array; its place counts from the first and from 1, as 0 stands for none."""
        at = self._size
        self._arrays.append(array)
        self._size = _aligned(at + array.nbytes)
        return at + 1

    def finish(self) -> memoryview:
        """Return the buffer, read-only."""
        records = np.array(self._records, dtype=_RECORD)
        facts_at = _HEADER.size + records.nbytes
        base = _aligned(facts_at + 4 + len(self._facts))
        for name in ("data", "offsets", "valid"):
            places = records[name]
            places[places > 0] += base - 1
        out = np.empty(base + self._size, dtype=np.uint8)
        head = bytearray(base)
        head[_HEADER.size : facts_at] = records.tobytes()
        head[facts_at : facts_at + 4] = len(self._facts).to_bytes(4, "little")
        head[facts_at + 4 : facts_at + 4 + len(self._facts)] = self._facts
        _HEADER.pack_into(head, 0, _MAGIC, FORMAT_VERSION, len(records), self._rows, len(out), 0)
        out[:base] = head
        at = base
        for array in self._arrays:
            end, next_at = at + array.nbytes, _aligned(at + array.nbytes)
            out[at:end] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            out[end:next_at] = 0
            at = next_at
        checksum = _checksum(out.data).to_bytes(4, "little")
        out[_CHECKSUM_AT : _CHECKSUM_AT + 4] = np.frombuffer(checksum, dtype=np.uint8)
        out.flags.writeable = False
        return out.data


class Packed:
    """The columns of a buffer: views into it, which keep it alive. Safe to share."""

    def __init__(self, buffer: Buffer) -> None:
        """Raises `DamagedBuffer`. Reads the whole buffer once, for its checksum."""
        view = memoryview(buffer).cast("B")
        if len(view) < _HEADER.size:
            raise DamagedBuffer("it is cut short")
        magic, version, columns, rows, size, checksum = _HEADER.unpack_from(view)
        if magic != _MAGIC:
            raise DamagedBuffer("it is no segment")
        if version != FORMAT_VERSION:
            raise DamagedBuffer(f"it has format version {version} instead of {FORMAT_VERSION}")
        if size != len(view):
            raise DamagedBuffer(f"it has {len(view)} bytes, and says {size}")
        if checksum != _checksum(view):
            raise DamagedBuffer("its checksum is wrong")
        # whatever follows was written by a packer
        self.rows: int = rows
        self._view = view
        self.records: npt.NDArray[np.void] = np.frombuffer(view, _RECORD, columns, _HEADER.size)
        """A column's record each, in the order of columns."""
        keys = self.records["section"].tobytes() + self.records["id"].tobytes()
        self.ids: Mapping[int, tuple[int, ...]]
        """The ids of each section's columns, in their order."""
        self._places, self.ids = _places_and_ids(keys)
        self._facts_at = _HEADER.size + self.records.nbytes

    @property
    def buffer(self) -> memoryview:
        return self._view

    @cached_property
    def facts(self) -> Json:
        at = self._facts_at
        size = int.from_bytes(self._view[at : at + 4], "little")
        return json.loads(bytes(self._view[at + 4 : at + 4 + size]))

    def numbers(self, key: ColumnKey) -> Numbers | None:
        """Return a column of numbers, None when no row has a value."""
        column = self.column(key)
        assert column is None or isinstance(column, Numbers)
        return column

    def strings(self, key: ColumnKey) -> Strings | None:
        """Return a column of byte strings, None when no row has a value."""
        column = self.column(key)
        assert column is None or isinstance(column, Strings)
        return column

    def column(self, key: ColumnKey) -> Column | None:
        """Return a column of either kind."""
        place = self._places.get(key)
        if place is None:
            return None
        _, kind, is_constant, _, rows, width, data, offsets, bits = self.records[place].item()
        valid = None
        if bits:
            packed = np.frombuffer(self._view, np.uint8, (rows + 7) // 8, bits)
            valid = np.unpackbits(packed, count=rows).view(np.bool_)
        # not `broadcast_to`, which takes longer than all the rest
        step = 0 if is_constant else width
        if kind == NUMBERS:
            dtype = WIDTHS[width]
            values = np.ndarray((rows,), dtype, self._view, data, strides=(step,))
            return Numbers(values, valid)
        if kind == FIXED:
            matrix = np.ndarray((rows, width), np.uint8, self._view, data, strides=(step, 1))
            return Strings(matrix, None, valid)
        starts = np.frombuffer(self._view, OFFSETS, rows + 1, offsets)
        return Strings(np.frombuffer(self._view, np.uint8, width, data), starts, valid)


@lru_cache(maxsize=1024)
def _places_and_ids(
    keys: bytes,
) -> tuple[Mapping[ColumnKey, int], Mapping[int, tuple[int, ...]]]:
    """Return the place of each column's record, and the ids of each section's columns.

    `keys` are all sections and then all ids. Buffers of one table mostly have the same columns, and
    so the same dictionaries, which cost more than the columns of a few rows.
    """
    count = len(keys) // 6
    sections = np.frombuffer(keys, "<u2", count).tolist()
    columns = np.frombuffer(keys, "<i4", count, 2 * count).tolist()
    ids: dict[int, list[int]] = {}
    for section, column in zip(sections, columns, strict=True):
        ids.setdefault(section, []).append(column)
    places = {key: i for i, key in enumerate(zip(sections, columns, strict=True))}
    return places, {section: tuple(columns) for section, columns in ids.items()}


def _are_same(values: Int64s, others: Int64s) -> bool:
    """Say whether two columns of as many rows are the same."""
    # mostly the first few tell that they aren't
    return np.array_equal(values[:16], others[:16]) and np.array_equal(values, others)


def _are_equal(values: Bytes) -> bool:
    """Say whether all rows are the same."""
    first, middle, last = values[0], values[len(values) // 2], values[-1]
    # mostly they are not, and three of them tell
    if (first != last).any() or (first != middle).any():
        return False
    return bool((values == first).all())


def _normal(valid: Mask | None, rows: int) -> tuple[Mask | None, bool]:
    """Return the mask, None where it is true throughout, and whether any row has a value."""
    if valid is None:
        return None, rows > 0
    count = int(np.count_nonzero(valid))
    return (None if count == rows else valid), count > 0


def _checksum(view: memoryview) -> int:
    """Return a sum of all but the checksum itself."""
    # isal's runs at 10 GB/s, several times zlib's; damage by chance is what it is to find
    return isal_zlib.crc32(view[_CHECKSUM_AT + 4 :], isal_zlib.crc32(view[:_CHECKSUM_AT]))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
