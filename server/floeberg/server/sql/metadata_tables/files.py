"""`files` and `entries`: a row a file of a snapshot, from the columns of its segments.

Only the columns that are asked for are made. A map or a list without entries is null: a segment
does not tell whether a writer left it out. Of delete files it has no split offsets, no sort order
and no file sequence number, which are null here.

Spec: "Manifests", "Data File Fields".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floeberg.protocol.arrow import arrow_schema, arrow_type
from floeberg.protocol.errors import CorruptManifest
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import ListType, MapType, NestedField, StructType
from floeberg.server.sql.metadata_tables.nested import bound_maps, count_maps, number_lists
from floeberg.server.sql.metadata_tables.readable_metrics import (
    READABLE_METRICS,
    readable_metrics,
    struct_of,
)
from floeberg.server.sql.metadata_tables.values import (
    ArrowArray,
    array_of,
    byte_strings,
    numbers,
    strings,
)

_ROWS_AT_ONCE = 16384
_CELLS_AT_ONCE = 1 << 22
_FORMATS = pa.array([format_.value.upper() for format_ in s.FORMATS])

_NUMBERS = {
    "status": s.STATUS,
    "snapshot_id": s.SNAPSHOT_ID,
    "sequence_number": s.SEQUENCE_NUMBER,
    "file_sequence_number": s.FILE_SEQUENCE_NUMBER,
    "content": s.CONTENT,
    "record_count": s.RECORD_COUNT,
    "file_size_in_bytes": s.SIZE_BYTES,
    "sort_order_id": s.SORT_ORDER_ID,
    "first_row_id": s.FIRST_ROW_ID,
    "content_offset": s.CONTENT_OFFSET,
    "content_size_in_bytes": s.CONTENT_SIZE_BYTES,
}
_COUNTS = {
    "column_sizes": s.COLUMN_SIZES,
    "value_counts": s.VALUE_COUNTS,
    "null_value_counts": s.NULL_VALUE_COUNTS,
    "nan_value_counts": s.NAN_VALUE_COUNTS,
}
_BOUNDS = {"lower_bounds": s.LOWER_BOUNDS, "upper_bounds": s.UPPER_BOUNDS}
_LISTS = {"split_offsets": s.SPLIT_OFFSETS, "equality_ids": s.EQUALITY_IDS}


class FileRows:
    """Makes rows of `files` or `entries` from segments: the columns of `schema` that are asked
    for, in its order."""

    def __init__(
        self, metadata: TableMetadata, schema: Schema, columns: Collection[str] | None
    ) -> None:
        self._metadata = metadata
        self._fields = [f for f in schema.fields if columns is None or f.name in columns]
        self.schema = arrow_schema(Schema(tuple(self._fields)))

    def batches(self, segment: Segment) -> Iterator[pa.RecordBatch]:
        """Yield a segment's entries in its order, many at a time.

        Raises `CorruptManifest` for a value that the type of its column does not hold.
        """
        widest = max((len(segment.column_ids(m)) for m in (*s.COUNTS, *s.BOUNDS)), default=0)
        step = max(min(_CELLS_AT_ONCE // max(widest, 1), _ROWS_AT_ONCE), 1)
        for start in range(0, len(segment), step):
            rows = slice(start, min(start + step, len(segment)))
            try:
                arrays = [self._array(field, segment, rows) for field in self._fields]
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as exc:
                raise CorruptManifest(
                    f"manifest {segment.location}: a value is none of its column's type: {exc}"
                ) from exc
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _array(self, field: NestedField, segment: Segment, rows: slice) -> ArrowArray:
        name, type_ = field.name, field.type
        if name in _NUMBERS:
            return numbers(segment.numbers(_NUMBERS[name]), rows, arrow_type(type_))
        match name, type_:
            case _, MapType() if name in _COUNTS:
                return count_maps(segment, _COUNTS[name], rows, type_)
            case _, MapType():
                return bound_maps(segment, _BOUNDS[name], rows, type_)
            case _, ListType():
                return number_lists(segment, _LISTS[name], rows, type_)
            case "file_path", _:
                return strings(segment.strings(s.LOCATION), rows, len(segment))
            case "referenced_data_file", _:
                return strings(segment.strings(s.REFERENCED_DATA_FILE), rows, len(segment))
            case "key_metadata", _:
                return byte_strings(segment.strings(s.KEY_METADATA), rows, len(segment))
            case "file_format", _:
                return pc.take(_FORMATS, numbers(segment.numbers(s.FORMAT), rows, pa.int64()))
            case "spec_id", _:
                return pa.repeat(pa.scalar(segment.spec_id, pa.int32()), rows.stop - rows.start)
            case "partition", StructType():
                return struct_of(partition_columns(segment, type_, rows), type_)
            case "data_file", StructType(fields):
                return struct_of([self._array(f, segment, rows) for f in fields], type_)
            case _:
                assert name == READABLE_METRICS
                return readable_metrics(segment, self._metadata, field, rows)


def partition_columns(segment: Segment, type_: StructType, rows: slice) -> list[ArrowArray]:
    """Return the partition tuples of some rows field by field, as `type_` has them, which are those
    of all specs: what a file's own spec has not is null."""
    places = np.arange(rows.start, rows.stop)
    arrays = []
    for field in type_.fields:
        column = segment.partition.get(field.field_id)
        values = [None] * len(places) if column is None else column.to_list(places)
        arrays.append(array_of(values, field.type))
    return arrays
