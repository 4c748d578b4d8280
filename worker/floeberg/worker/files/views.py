"""Arrow's view types, replaced by types that Arrow can filter.

pyarrow gives a column back in the type that its writer had, from the Arrow schema in the file's
footer; but its kernels for choosing rows know no views, nor structs that hold one.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat

from floeberg.worker.arrow import ArrowField, ArrowType


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return `batch` with text, bytes and lists in types that are no views, at any depth."""
    if not batch.num_columns:
        return batch  # a cast would forget its rows
    return batch.cast(schema_without_views(batch.schema))


def schema_without_views(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a batch without views; an equal one when there are none."""
    return pa.schema([_field(field) for field in schema])


def _field(field: ArrowField) -> ArrowField:
    return field.with_type(_type(field.type))


def _type(type_: ArrowType) -> ArrowType:
    if pat.is_string_view(type_):
        return pa.large_string()  # a view has no bound on its bytes
    if pat.is_binary_view(type_):
        return pa.large_binary()
    # lists of the other width: for the same one, Arrow's cast leaves out the last offset
    if pat.is_list_view(type_):
        return pa.large_list(_field(type_.value_field))
    if pat.is_large_list_view(type_):
        return pa.list_(_field(type_.value_field))
    if not pat.is_nested(type_):
        return type_
    if isinstance(type_, pa.BaseExtensionType):
        return type_
    if pat.is_struct(type_):
        return pa.struct([_field(type_.field(i)) for i in range(type_.num_fields)])
    if pat.is_map(type_):
        return pa.map_(_field(type_.key_field), _field(type_.item_field), type_.keys_sorted)
    if pat.is_fixed_size_list(type_):
        return pa.list_(_field(type_.value_field), type_.list_size)
    if pat.is_large_list(type_):
        return pa.large_list(_field(type_.value_field))
    return pa.list_(_field(type_.value_field)) if pat.is_list(type_) else type_
