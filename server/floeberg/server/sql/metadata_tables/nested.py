"""Maps and lists of files, from a segment's columns.

A segment has a column for each column of the table that anything is known of; a map has its
entries file by file, in the order of the columns' ids.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from floeberg.protocol.arrow import arrow_type
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests.columns import Int64s, Mask, Numbers, Strings
from floeberg.protocol.types import ListType, MapType
from floeberg.server.sql.metadata_tables.values import (
    ArrowArray,
    ArrowType,
    byte_strings,
    no_values,
    valid_rows,
)


def count_maps(segment: Segment, metric: int, rows: slice, type_: MapType) -> ArrowArray:
    """Return one of `COUNTS` of some rows, null where nothing is known."""
    found = [(i, c) for i in segment.column_ids(metric) if (c := segment.counts(metric, i))]
    if not found:
        return no_values(rows, arrow_type(type_))
    valid = _valid([column for _, column in found], rows)
    values = np.stack([column.values[rows].astype(np.int64) for _, column in found], axis=1)
    return _maps([i for i, _ in found], valid, pa.array(values[valid]), type_)


def bound_maps(segment: Segment, metric: int, rows: slice, type_: MapType) -> ArrowArray:
    """Return one of `BOUNDS` of some rows, null where nothing is known."""
    found = [(i, c) for i in segment.column_ids(metric) if (c := segment.bounds(metric, i))]
    if not found:
        return no_values(rows, arrow_type(type_))
    valid = _valid([column for _, column in found], rows)
    # column after column, and taken from there file by file
    stored = pa.concat_arrays([byte_strings(column, rows, len(segment)) for _, column in found])
    row, column_number = np.nonzero(valid)
    values = stored.take(pa.array(column_number * (rows.stop - rows.start) + row))
    return _maps([i for i, _ in found], valid, values, type_)


def number_lists(segment: Segment, field_id: int, rows: slice, type_: ListType) -> ArrowArray:
    """Return SPLIT_OFFSETS or EQUALITY_IDS of some rows, null for an empty one."""
    counts, items = segment.lists_of(field_id, np.arange(rows.start, rows.stop))
    target: ArrowType = arrow_type(type_)
    return pa.ListArray.from_arrays(
        _offsets(counts),
        pa.array(items.astype(np.int64), target.value_type),
        type=target,
        mask=_null_mask(counts),
    )


def _valid(columns: Sequence[Numbers | Strings], rows: slice) -> Mask:
    """Return which files have a value of which column, shape (rows, columns)."""
    return np.stack([valid_rows(column, rows) for column in columns], axis=1)


def _maps(ids: Sequence[int], valid: Mask, values: ArrowArray, type_: MapType) -> ArrowArray:
    counts = np.count_nonzero(valid, axis=1)
    keys = np.broadcast_to(np.array(ids, dtype=np.int32), valid.shape)[valid]
    target: ArrowType = arrow_type(type_)
    return pa.MapArray.from_arrays(
        _offsets(counts),
        pa.array(keys),
        values,
        type=target,
        mask=_null_mask(counts),
    )


def _offsets(counts: Int64s) -> ArrowArray:
    offsets = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.array(offsets)


def _null_mask(counts: Int64s) -> ArrowArray | None:
    is_empty = counts == 0
    return pa.array(is_empty) if is_empty.any() else None
