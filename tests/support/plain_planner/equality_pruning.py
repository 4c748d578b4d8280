"""Whether an equality delete may match a row of a data file, one of each."""

from __future__ import annotations

from typing import Any

from floeberg.protocol.expressions.bounds import decode_bounds
from floeberg.protocol.files import DataFile, DeleteFile
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    DoubleType,
    FloatType,
    ListType,
    MapType,
    PrimitiveType,
    UuidType,
)


def may_match_a_row(
    delete: DeleteFile, data: DataFile, schema: Schema, *, may_be_imported: bool = False
) -> bool:
    for field_id in delete.equality_ids:
        field = schema.find(field_id)
        if field is None or not isinstance(field.type, PrimitiveType):
            continue
        if isinstance(field.type, FloatType | DoubleType | UuidType):
            continue
        above = [schema.find(i) for i in schema.path(field_id)[:-1]]
        if any(f is None or isinstance(f.type, ListType | MapType) for f in above):
            continue
        bounds: list[Any] = [
            decode_bounds(
                field.type,
                file.metrics.lower_bounds.get(field_id),
                file.metrics.upper_bounds.get(field_id),
                may_be_imported=may_be_imported,
            )
            for file in (delete, data)
        ]
        is_top_level = len(schema.path(field_id)) == 1
        no_nulls = [has_no_nulls(file, field_id, is_top_level) for file in (delete, data)]
        all_null = [is_all_null(file, field_id) for file in (delete, data)]
        if (all_null[0] and no_nulls[1]) or (all_null[1] and no_nulls[0]):
            return False
        if any(no_nulls) and (is_below(*bounds) or is_below(*reversed(bounds))):
            return False
    return True


def is_below(one: Any, other: Any) -> bool:
    return one.upper is not None and other.lower is not None and one.upper < other.lower


def has_no_nulls(file: DataFile | DeleteFile, field_id: int, is_top_level: bool) -> bool:
    if file.metrics.null_value_counts.get(field_id) != 0 or file.record_count < 0:
        return False
    values = file.metrics.value_counts.get(field_id)
    return is_top_level if values is None else values == file.record_count


def is_all_null(file: DataFile | DeleteFile, field_id: int) -> bool:
    counts = (file.metrics.null_value_counts, file.metrics.value_counts)
    return all(c.get(field_id) == file.record_count for c in counts) and file.record_count >= 0
