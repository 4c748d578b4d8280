"""Make one segment of several: the same entries, one segment's after another's.

What is done by columns costs about a millisecond a segment, however few its entries. Tables that
are written to every few seconds have thousands of manifests of a few entries each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import (
    FIXED,
    NUMBERS,
    OFFSETS,
    VARIABLE,
    WIDTHS,
    Bytes,
    ColumnKey,
    Int64s,
    Mask,
    Packer,
    Placed,
)
from floeberg.protocol.manifests.segment import PartitionKind, Segment

# in the order in which they are packed elsewhere, so that the same entries give the same bytes
_OWN = (
    s.STATUS,
    s.SNAPSHOT_ID,
    s.SEQUENCE_NUMBER,
    s.LOCATION,
    s.FORMAT,
    s.SIZE_BYTES,
    s.KEY_METADATA,
    s.RECORD_COUNT,
    s.CONTENT,
    s.FILE_SEQUENCE_NUMBER,
    s.SORT_ORDER_ID,
    s.FIRST_ROW_ID,
    s.CONTENT_OFFSET,
    s.CONTENT_SIZE_BYTES,
    s.REFERENCED_DATA_FILE,
)
_LISTS = (s.SPLIT_OFFSETS, s.EQUALITY_IDS)
_HAS_NO_PARTITION = (s.OWN, s.HAS_NO_PARTITION)
_LOW = 0xFFFF_FFFF
# where these are absent, it is because they are zero for all entries
_ZERO_WHERE_ABSENT = frozenset({_HAS_NO_PARTITION, *((s.OWN, field_id) for field_id in _LISTS)})


def concat_segments(segments: Sequence[Segment]) -> Segment | None:
    """Return one segment of all entries of `segments`, at least one, of one spec and content.

    Row i of the second one is row `len(segments[0]) + i` of it, and so on; its location is that of
    the first. Returns None when their partition tuples cannot be columns together, because they
    have other fields, or values of another kind.
    """
    first = segments[0]
    filled = [segment for segment in segments if len(segment)]
    partition = _partition(filled)
    if partition is None:
        return None
    facts = {
        "location": first.location,
        "spec_id": first.spec_id,
        "content": int(first.content),
        "partition": [list(field) for field in partition],
    }
    packer = Packer(sum(map(len, filled)), facts)
    joined = _Joined(filled)
    counts: Placed | None = None
    for key in _ordered(joined.by_key, [field_id for field_id, _, _ in partition]):
        column = joined.column(key)
        if column.is_numbers.all():
            valid = None if key in _ZERO_WHERE_ABSENT else column.valid()
            like = counts if key[0] in s.COUNTS else None
            placed = packer.numbers(key, column.numbers(), valid, like=like)
            if key == (s.OWN, s.RECORD_COUNT):
                counts = placed
        elif not column.is_numbers.any():
            lengths, data = column.strings()
            packer.strings(key, lengths, data, column.valid())
        else:
            return None  # decimals, of which 64 bits hold some
    return Segment(packer.finish())


def _partition(segments: Sequence[Segment]) -> list[tuple[int, str, int]] | None:
    """Return the partition's fields, each of the one kind that any segment has of it."""
    fields = [segment.partition_fields for segment in segments]
    if len({tuple(field_id for field_id, _, _ in of_one) for of_one in fields}) > 1:
        return None
    found = []
    for of_all in zip(*fields, strict=True):
        kinds = {(kind, scale) for _, kind, scale in of_all if kind != PartitionKind.NULL}
        if len(kinds) > 1:
            return None
        found.append((of_all[0][0], *(kinds.pop() if kinds else (str(PartitionKind.NULL), 0))))
    return found


def _ordered(found: Mapping[ColumnKey, object], partition: Sequence[int]) -> list[ColumnKey]:
    order: list[ColumnKey] = [(s.OWN, field_id) for field_id in _OWN]
    for field_id in _LISTS:
        order += [(s.OWN, field_id), (s.ITEMS, field_id)]
    order += [(s.PARTITION, field_id) for field_id in partition]
    order.append(_HAS_NO_PARTITION)
    for metric in (*s.COUNTS, *s.BOUNDS):
        order += sorted(key for key in found if key[0] == metric)
    return [key for key in order if key in found]


class _Joined:
    """The buffers of segments one after the other, and where in them each column's parts are."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        buffers = [np.frombuffer(segment.buffer, np.uint8) for segment in segments]
        # each is a multiple of what its arrays are aligned to, so all stay aligned
        self.bytes: Bytes = np.concatenate([np.zeros(0, dtype=np.uint8), *buffers])
        self.rows = np.array([len(segment) for segment in segments], dtype=np.int64)
        sizes = np.array([len(buffer) for buffer in buffers], dtype=np.int64)
        self._bases = np.cumsum(sizes) - sizes
        self.by_key = dict(self._columns(segments))

    def _columns(self, segments: Sequence[Segment]) -> Iterator[tuple[ColumnKey, _Column]]:
        if not segments:
            return
        tables = [segment.packed.records for segment in segments]
        records = np.concatenate(tables)
        owners = np.repeat(np.arange(len(segments)), [len(table) for table in tables])
        keys = records["section"].astype(np.int64) << 32 | records["id"].astype(np.int64) & _LOW
        order = np.argsort(keys, kind="stable")
        starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        for at in np.split(order, starts[1:]):
            parts = records[at]
            key = int(parts["section"][0]), int(parts["id"][0])
            yield key, _Column(self, parts, owners[at], self._bases[owners[at]], key[0] == s.ITEMS)

    def column(self, key: ColumnKey) -> _Column:
        return self.by_key[key]


class _Column:
    """One column of several segments, of which some may lack it."""

    def __init__(
        self,
        joined: _Joined,
        parts: npt.NDArray[np.void],
        owners: Int64s,
        bases: Int64s,
        is_of_items: bool,
    ) -> None:
        self._bytes = joined.bytes
        self._parts = parts
        self._bases = bases
        self.is_numbers: Mask = parts["kind"] == NUMBERS
        self._rows = parts["rows"].astype(np.int64)
        # items of lists have no rows in common with entries: where there are none, there are none
        rows = joined.rows
        if is_of_items:
            rows = np.zeros_like(rows)
            rows[owners] = self._rows
        self._count = int(rows.sum())
        before = np.cumsum(self._rows) - self._rows
        self._within = np.arange(int(self._rows.sum())) - self._spread(before)
        self._places = self._spread((np.cumsum(rows) - rows)[owners]) + self._within
        # which value stands in each row: of a column of one value, always the first
        self._steps = np.where(self._spread(parts["is_constant"] != 0), 0, self._within)

    def _spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what each part has for each of its rows."""
        return np.repeat(values, self._rows)

    def _at(self, name: str) -> Int64s:
        """Return where each part's array lies, for each of its rows."""
        return self._spread(self._bases + self._parts[name].astype(np.int64))

    def numbers(self) -> Int64s:
        """Return the values, 0 where there is none, shape (rows,)."""
        found = np.zeros(self._count, dtype=np.int64)
        starts, widths = self._at("data"), self._spread(self._parts["width"])
        for width, dtype in WIDTHS.items():
            of_width = widths == width
            if of_width.any():
                values = self._bytes.view(dtype)
                wanted = starts[of_width] // width + self._steps[of_width]
                found[self._places[of_width]] = values[wanted]
        return found

    def strings(self) -> tuple[Int64s, Bytes]:
        """Return the bytes of each row, 0 for none, and the values without gaps."""
        lengths = np.zeros(self._count, dtype=np.int64)
        starts = np.zeros(self._count, dtype=np.int64)
        at, kinds = self._at("data"), self._spread(self._parts["kind"])
        fixed, variable = kinds == FIXED, kinds == VARIABLE
        widths = self._spread(self._parts["width"].astype(np.int64))[fixed]
        lengths[self._places[fixed]] = widths
        starts[self._places[fixed]] = at[fixed] + self._steps[fixed] * widths
        offsets = self._bytes.view(OFFSETS)
        rows = self._at("offsets")[variable] // OFFSETS.itemsize + self._within[variable]
        lengths[self._places[variable]] = offsets[rows + 1] - offsets[rows]
        starts[self._places[variable]] = at[variable] + offsets[rows]
        valid = self.valid()
        if valid is not None:
            lengths[~valid] = 0
        return lengths, self._bytes[_ranges(starts, lengths)]

    def valid(self) -> Mask | None:
        """Return which rows have a value, None for all of them."""
        masked = self._spread(self._parts["valid"] != 0)
        if len(self._places) == self._count and not masked.any():
            return None
        found = np.zeros(self._count, dtype=np.bool_)
        found[self._places] = True
        within = self._within[masked]
        bits = self._bytes[self._at("valid")[masked] + within // 8]
        found[self._places[masked]] = (bits >> (7 - within % 8).astype(np.uint8)) & 1
        return found


def _ranges(starts: Int64s, counts: Int64s) -> Int64s:
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    found: Int64s = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return found
