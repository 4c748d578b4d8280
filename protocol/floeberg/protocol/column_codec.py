"""Columns as few bytes, for what travels: the columns of a `Segment`, without room to map them.

A table is columns over the same rows. Numbers are written as what they exceed the smallest by, in
as few bytes as hold it, and the bytes of a place together, since those are alike: all that a
compression finds hard to see. Text stands as it is, which it sees well.

    table    rows, 4 bytes | columns, 2 bytes | columns
    column   section, 2 bytes | id, 4 bytes | form, 1 byte: 1 for text, 2 for rows without a value
             | one bit a row, where rows have none | numbers or text
    numbers  smallest, 8 bytes | width, 1 byte: 0, 1, 2, 4, 8 | rows x width bytes
    text     lengths, as numbers | bytes

Numbers are little-endian. A column of items (see `manifests.segment`) has as many rows as the
counts that stand before it add up to.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from floeberg.protocol.manifests.columns import Bytes, ColumnKey, Int64s, Mask
from floeberg.protocol.manifests.segment import ITEMS, OWN

MAX_ROWS = 1 << 24
"""More than any plan has: a column of one value takes no bytes, so they bound nothing."""

_TABLE = struct.Struct("<IH")
_COLUMN = struct.Struct("<HiB")
_NUMBERS = struct.Struct("<qB")
_TEXT, _HAS_NONE = 1, 2
_ALL_BITS = (1 << 64) - 1
_WIDTHS: Mapping[int, np.dtype[np.unsignedinteger]] = {
    1: np.dtype(np.uint8),
    2: np.dtype("<u2"),
    4: np.dtype("<u4"),
    8: np.dtype("<u8"),
}


class MalformedColumns(ValueError):
    """Bytes that `Writer` did not write."""


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """Whole numbers, shape (rows,); `valid` says which rows have one, None stands for all."""

    values: Int64s
    valid: Mask | None = None


@dataclass(frozen=True, slots=True)
class TextColumn:
    """Byte strings that lie in `data` one after the other, with `lengths` of 0 where none is."""

    lengths: Int64s
    data: Bytes
    valid: Mask | None = None

    def starts(self) -> Int64s:
        return np.cumsum(self.lengths) - self.lengths


AnyColumn: TypeAlias = NumberColumn | TextColumn


@dataclass(frozen=True, slots=True)
class Table:
    rows: int
    columns: dict[ColumnKey, AnyColumn] = field(default_factory=dict)

    def numbers(self, key: ColumnKey) -> Int64s:
        """Return a column of numbers that every row has. Raises `MalformedColumns`."""
        column = self.columns.get(key)
        if column is None and not self.rows:
            return np.zeros(0, dtype=np.int64)
        if not isinstance(column, NumberColumn) or column.valid is not None:
            raise MalformedColumns(f"a table without all numbers of {key}")
        return column.values

    def lists(self, key: ColumnKey) -> tuple[Int64s, Int64s]:
        """Return the counts and the items of lists; there are none where there is no column."""
        if key not in self.columns:
            return np.broadcast_to(np.int64(0), self.rows), np.zeros(0, dtype=np.int64)
        counts = self.numbers(key)
        items = self.columns.get((ITEMS, key[1]))
        if not isinstance(items, NumberColumn) or items.valid is not None:
            raise MalformedColumns("lists without items")
        return counts, items.values


# --- writing --------------------------------------------------------------------------------------


class Writer:
    """Collects the bytes of tables."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def table(self, table: Table) -> None:
        self.rows(PackedTable(table), 0, table.rows)

    def rows(self, table: PackedTable, first: int, stop: int) -> None:
        """Add a table of the rows from `first` up to `stop` of another."""
        self._parts += table.rows(first, stop)

    def finish(self) -> bytes:
        return b"".join(self._parts)


class PackedTable:
    """A table of which any rows that follow one another are written without much work.

    What numbers are counted from, and how many bytes they take, is settled once for all rows; of a
    column with one value throughout, nothing is left to do.
    """

    def __init__(self, table: Table) -> None:
        self._columns = len(table.columns)
        self._pieces: list[bytes | _PackedColumn] = []
        for key, column in table.columns.items():
            packed = _PackedColumn(key, column)
            if key[0] == ITEMS:
                packed.places = _upto(table.numbers((OWN, key[1])))
            self._append(packed if packed.varies else packed.head)

    def _append(self, piece: bytes | _PackedColumn) -> None:
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, bytes) and isinstance(piece, bytes):
            self._pieces[-1] = last + piece
        else:
            self._pieces.append(piece)

    def rows(self, first: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes of the rows from `first` up to `stop`, piece by piece."""
        if stop == first:
            yield _TABLE.pack(0, 0)
            return
        yield _TABLE.pack(stop - first, self._columns)
        for piece in self._pieces:
            if isinstance(piece, bytes):
                yield piece
            else:
                yield from piece.rows(first, stop)


class _PackedColumn:
    """A column whose `head` says of it all but what `varies` from row to row."""

    def __init__(self, key: ColumnKey, column: AnyColumn) -> None:
        self._valid = column.valid
        form = _TEXT * isinstance(column, TextColumn) + _HAS_NONE * (column.valid is not None)
        match column:
            case NumberColumn(values, valid):
                numbers, self._above = _packed_numbers(values, valid)
                self._text: tuple[Int64s, Bytes] | None = None
            case TextColumn(lengths, data):
                numbers, self._above = _packed_numbers(lengths, None)
                self._text = _upto(lengths), data
        self.head = _COLUMN.pack(*key, form)
        self._numbers = numbers
        if self._valid is None:
            self.head, self._numbers = self.head + numbers, b""
        self.places: Int64s | None = None
        """Where the items of each row begin in a column of items, and where the last ends."""

    @property
    def varies(self) -> bool:
        return not (self._valid is None and self._above is None and self._text is None)

    def rows(self, first: int, stop: int) -> Iterator[bytes]:
        if self.places is not None:
            first, stop = int(self.places[first]), int(self.places[stop])
        yield self.head
        if self._valid is not None:
            yield np.packbits(self._valid[first:stop]).tobytes()
            yield self._numbers
        if self._above is not None:
            above = self._above[first:stop]
            yield above.view(np.uint8).reshape(len(above), above.itemsize).T.tobytes()
        if self._text is not None:
            starts, data = self._text
            yield data[starts[first] : starts[stop]].tobytes()


def _packed_numbers(
    values: Int64s, valid: Mask | None
) -> tuple[bytes, npt.NDArray[np.unsignedinteger] | None]:
    """Return the head of numbers, and what each exceeds the smallest by; None where all are it."""
    if valid is None and len(values) and not values.strides[0]:  # one value, repeated
        return _NUMBERS.pack(int(values[0]), 0), None
    present = values if valid is None else values[valid]
    low, high = (int(present.min()), int(present.max())) if len(present) else (0, 0)
    width = _width(high - low)
    head = _NUMBERS.pack(low, width)
    if not width:
        return head, None
    if valid is not None:
        values = np.where(valid, values, low)
    # differences of any two fit 64 bits without a sign
    above = values.view(np.uint64) - np.uint64(low & _ALL_BITS)
    return head, above.astype(_WIDTHS[width], copy=False)


def repeated(value: int, rows: int) -> Int64s:
    """Return a column of one value, which is stored once."""
    # `broadcast_to` takes ten times as long
    return np.ndarray((rows,), np.int64, np.array([value], dtype=np.int64), strides=(0,))


def _width(span: int) -> int:
    return 0 if span == 0 else next(w for w in _WIDTHS if span < 1 << 8 * w)


def _upto(counts: Int64s) -> Int64s:
    """Return how many come before each row, and all; shape (rows + 1,)."""
    upto = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=upto[1:])
    return upto


# --- reading --------------------------------------------------------------------------------------


class Reader:
    """Reads tables one after the other; raises `MalformedColumns` for whatever does not fit."""

    def __init__(self, raw: memoryview) -> None:
        self._raw = raw
        self._at = 0

    def table(self) -> Table:
        rows, columns = self._unpack(_TABLE)
        if rows > MAX_ROWS:
            raise MalformedColumns(f"a table of {rows} rows; at most {MAX_ROWS} are read")
        table = Table(rows)
        for _ in range(columns):
            section, column_id, form = self._unpack(_COLUMN)
            key = section, column_id
            if form > (_TEXT | _HAS_NONE) or key in table.columns:
                raise MalformedColumns("a column of no known form, or one that stands twice")
            length = self._items(table, column_id) if section == ITEMS else rows
            table.columns[key] = self._column(form, length)
        return table

    def end(self) -> None:
        if self._at != len(self._raw):
            raise MalformedColumns("bytes after the last table")

    def _items(self, table: Table, column_id: int) -> int:
        counts = table.numbers((OWN, column_id))
        if len(counts) and counts.min() < 0:
            raise MalformedColumns("lists of less than no items")
        return self._total(counts)

    def _column(self, form: int, rows: int) -> AnyColumn:
        valid = None
        if form & _HAS_NONE:
            bits = np.frombuffer(self._take((rows + 7) // 8), np.uint8)
            valid = np.unpackbits(bits, count=rows).view(np.bool_)
        numbers = self._numbers(rows)
        if not form & _TEXT:
            return NumberColumn(numbers, valid)
        if len(numbers) and numbers.min() < 0:
            raise MalformedColumns("text of less than no bytes")
        if valid is not None and (numbers * ~valid).any():
            raise MalformedColumns("text where there is none")
        data = np.frombuffer(self._take(self._total(numbers, len(self._raw))), np.uint8)
        return TextColumn(numbers, data, valid)

    def _total(self, counts: Int64s, most: int = MAX_ROWS) -> int:
        """Add up counts, none of them negative."""
        if len(counts) and counts.max() > most:
            raise MalformedColumns("more items than there can be")
        total = int(counts.sum())
        if total > most:
            raise MalformedColumns("more items than there can be")
        return total

    def _numbers(self, rows: int) -> Int64s:
        low, width = self._unpack(_NUMBERS)
        if width == 0:
            return np.broadcast_to(np.int64(low), (rows,))
        if width not in _WIDTHS:
            raise MalformedColumns(f"numbers of {width} bytes")
        planes = np.frombuffer(self._take(rows * width), np.uint8).reshape(width, rows)
        above = np.ascontiguousarray(planes.T).reshape(-1).view(_WIDTHS[width]).astype(np.uint64)
        above += np.uint64(low & _ALL_BITS)
        return above.view(np.int64)

    def _unpack(self, form: struct.Struct) -> tuple[int, ...]:
        return form.unpack(self._take(form.size))

    def _take(self, size: int) -> memoryview:
        end = self._at + size
        if end > len(self._raw):
            raise MalformedColumns("a table that is cut short")
        found = self._raw[self._at : end]
        self._at = end
        return found


def table_of(rows: int, columns: Iterable[tuple[ColumnKey, AnyColumn | None]]) -> Table:
    """Return a table of the columns that are not None and have a value in any row."""
    return Table(
        rows,
        {
            key: column
            for key, column in columns
            if column is not None and rows and (column.valid is None or column.valid.any())
        },
    )
