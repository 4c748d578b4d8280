"""Make one segment of several: the same entries, one segment's after another's.

What is done by columns costs about a millisecond a segment, however few its entries. Tables that
are written to every few seconds have thousands of manifests of a few entries each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import (
    Bytes,
    Column,
    ColumnKey,
    Int64s,
    Mask,
    Numbers,
    Packer,
    Placed,
    Strings,
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
    found = {key for segment in filled for key in segment.packed.keys}
    counts: Placed | None = None
    for key in _ordered(found, [field_id for field_id, _, _ in partition]):
        columns = [segment.packed.column(key) for segment in filled]
        if any(isinstance(column, Strings) for column in columns):
            lengths, data, valid = _strings(columns, filled)
            packer.strings(key, lengths, data, valid)
            continue
        # the items of lists have no rows in common with the entries
        absent = [0] * len(filled) if key[0] == s.ITEMS else list(map(len, filled))
        values, valid = _numbers(columns, absent)
        if key in _ZERO_WHERE_ABSENT:
            valid = None
        placed = packer.numbers(key, values, valid, like=counts if key[0] in s.COUNTS else None)
        if key == (s.OWN, s.RECORD_COUNT):
            counts = placed
    return Segment(packer.finish())


def _partition(segments: Sequence[Segment]) -> list[tuple[int, str, int]] | None:
    """Return the partition's fields, each of the one kind that any segment has of it."""
    if not segments:
        return []
    fields = [segment.partition for segment in segments]
    if len({tuple(by_id) for by_id in fields}) > 1:
        return None
    found = []
    for field_id in fields[0]:
        columns = [by_id[field_id] for by_id in fields]
        kinds = {(c.kind, c.scale, type(c.column)) for c in columns if c.column is not None}
        if len(kinds) > 1:
            return None
        kind, scale, _ = kinds.pop() if kinds else (PartitionKind.NULL, 0, None)
        found.append((field_id, str(kind), scale))
    return found


def _ordered(found: set[ColumnKey], partition: Sequence[int]) -> list[ColumnKey]:
    order: list[ColumnKey] = [(s.OWN, field_id) for field_id in _OWN]
    for field_id in _LISTS:
        order += [(s.OWN, field_id), (s.ITEMS, field_id)]
    order += [(s.PARTITION, field_id) for field_id in partition]
    order.append(_HAS_NO_PARTITION)
    for metric in (*s.COUNTS, *s.BOUNDS):
        order += sorted(key for key in found if key[0] == metric)
    return [key for key in order if key in found]


def _numbers(columns: Sequence[Column | None], absent: Sequence[int]) -> tuple[Int64s, Mask | None]:
    """Return the values and which rows have one; `absent` is how many rows have none where there is
    no column."""
    parts: list[Int64s] = []
    for column, rows in zip(columns, absent, strict=True):
        assert column is None or isinstance(column, Numbers)
        parts.append(np.zeros(rows, dtype=np.int64) if column is None else column.values)
    return np.concatenate(parts).astype(np.int64, copy=False), _valid(columns, absent)


def _strings(
    columns: Sequence[Column | None], segments: Sequence[Segment]
) -> tuple[Int64s, Bytes, Mask | None]:
    lengths: list[Int64s] = []
    data: list[Bytes] = []
    for column, segment in zip(columns, segments, strict=True):
        if column is None:
            lengths.append(np.zeros(len(segment), dtype=np.int64))
            continue
        assert isinstance(column, Strings)
        lengths.append(column.lengths())
        present = column.data
        if column.offsets is None and column.valid is not None:
            present = present[column.valid]
        data.append(present.reshape(-1))
    return (
        np.concatenate(lengths),
        np.concatenate(data) if data else np.zeros(0, dtype=np.uint8),
        _valid(columns, list(map(len, segments))),
    )


def _valid(columns: Sequence[Column | None], rows: Sequence[int]) -> Mask | None:
    if all(column is not None and column.valid is None for column in columns):
        return None
    parts: list[Mask] = []
    for column, count in zip(columns, rows, strict=True):
        if column is None:
            parts.append(np.zeros(count, dtype=np.bool_))
        elif column.valid is None:
            parts.append(np.ones(len(column), dtype=np.bool_))
        else:
            parts.append(column.valid)
    return np.concatenate(parts)
