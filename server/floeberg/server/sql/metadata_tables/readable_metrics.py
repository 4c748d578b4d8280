"""What is known of the columns of each file, under the columns' names and as values.

Of every column of the table that is not nested, lists' elements and fields of structs too, in the
order of their dotted names; the bytes of bounds are read as the type that the column has now.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from floeberg.protocol.arrow import arrow_type
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests.segment import COUNTS, LOWER_BOUNDS, UPPER_BOUNDS
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.types import (
    BinaryType,
    GeographyType,
    GeometryType,
    LongType,
    NestedField,
    StructType,
    Type,
    UnknownType,
    VariantType,
    is_nested,
    walk,
)
from floeberg.server.sql.metadata_tables.values import ArrowArray, bounds, numbers

READABLE_METRICS = "readable_metrics"
_COUNT_NAMES = ("column_size", "value_count", "null_value_count", "nan_value_count")
# beyond the ids that specs give to partition fields
_FIRST_ID = 1_000_000


def readable_metrics_field(metadata: TableMetadata) -> NestedField:
    ids = iter(range(_FIRST_ID, 2_000_000_000))
    whole_id = next(ids)
    columns = tuple(
        NestedField(next(ids), name, _metrics_type(column.type, ids), required=True)
        for name, column in _columns(metadata)
    )
    return NestedField(whole_id, READABLE_METRICS, StructType(columns))


def readable_metrics(
    segment: Segment, metadata: TableMetadata, field: NestedField, rows: slice
) -> ArrowArray:
    """Return what `field`, from `readable_metrics_field`, has for some rows of a segment."""
    assert isinstance(field.type, StructType)
    arrays: list[ArrowArray] = []
    for (_, column), told in zip(_columns(metadata), field.type.fields, strict=True):
        known = [numbers(segment.counts(m, column.field_id), rows, pa.int64()) for m in COUNTS]
        for metric in (LOWER_BOUNDS, UPPER_BOUNDS):
            stored = segment.bounds(metric, column.field_id)
            known.append(bounds(stored, _bound_type(column.type), rows, len(segment)))
        arrays.append(struct_of(known, told.type))
    return struct_of(arrays, field.type)


def struct_of(arrays: list[ArrowArray], type_: Type) -> ArrowArray:
    """Return structs, none of them null, of what their fields hold. There is at least one field."""
    target = arrow_type(type_)
    assert isinstance(target, pa.StructType)
    fields = [target.field(i) for i in range(target.num_fields)]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _columns(metadata: TableMetadata) -> Iterator[tuple[str, NestedField]]:
    schema = metadata.schema()
    named = ((schema.name_of(field.field_id), field) for field in walk(schema.as_struct()))
    for name, field in sorted(named, key=lambda each: each[0]):
        if not is_nested(field.type) and not isinstance(field.type, UnknownType | VariantType):
            yield name, field


def _bound_type(type_: Type) -> Type:
    """Return the type of a column's bounds: of a geometry's those are no geometries."""
    return BinaryType() if isinstance(type_, GeometryType | GeographyType) else type_


def _metrics_type(type_: Type, ids: Iterator[int]) -> StructType:
    counts = [NestedField(next(ids), name, LongType()) for name in _COUNT_NAMES]
    bound = _bound_type(type_)
    extremes = [NestedField(next(ids), name, bound) for name in ("lower_bound", "upper_bound")]
    return StructType((*counts, *extremes))
