"""What a statement gives, as the rows of the schema that was told.

A client has got the schema before the statement ran, and each stream must have it. DuckDB's own
types are wider (a sum of longs is a decimal of 38 digits), zoned otherwise, or text (UUIDs): the
values are cast, and one that the type does not hold is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floeberg.protocol.errors import InternalError, SqlFailed
from floeberg.worker.arrow import ArrowArray
from floeberg.worker.reading.slicing import slice_batch

_TEXT_BYTES = 32
_NESTED_BYTES = 128
_ROWS = range(2048, 1 << 17)


class Answer:
    """Casts batches to `schema`, by the places of their columns, and cuts them to `batch_bytes`."""

    def __init__(self, schema: pa.Schema, batch_bytes: int) -> None:
        self._schema = schema
        self._batch_bytes = batch_bytes

    @property
    def rows_at_once(self) -> int:
        """About how many rows a batch of the told size has."""
        row_bytes = max(1, sum(_width(field.type) for field in self._schema))
        return min(max(self._batch_bytes // row_bytes, _ROWS.start), _ROWS.stop)

    def batches(self, found: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a batch of DuckDB's.

        Raises `SqlFailed` for a value that its column can't hold, and `InternalError` where the
        columns are not those that were told.
        """
        if found.num_columns != len(self._schema):
            raise InternalError(
                f"the statement gave {found.num_columns} columns, and {len(self._schema)} were told"
            )
        columns = [
            _cast(column, field, field.name)
            for column, field in zip(found.columns, self._schema, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        yield from slice_batch(batch, None, self._batch_bytes)


def _cast(column: ArrowArray, field: Any, name: str) -> ArrowArray:
    _check_nulls(column, field)
    try:
        return _as_type(column, field.type)
    except pa.ArrowNotImplementedError as exc:
        raise InternalError(
            f"column {name!r} came as {column.type}, and was told to be {field.type}"
        ) from exc
    except (pa.ArrowInvalid, ValueError) as exc:
        raise SqlFailed(f"column {name!r}: a value does not fit {field.type}") from exc


def _as_type(array: ArrowArray, type_: Any) -> ArrowArray:
    if array.type.equals(type_):
        return array
    if isinstance(type_, pa.UuidType):
        return _uuids(array, type_)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), type_)
    if not pa.types.is_nested(type_):
        return array.cast(type_)
    # Arrow's own cast knows no UUIDs, and takes the nulls below a null for nulls where none may be
    if array.type.id != type_.id or array.type.num_fields != type_.num_fields:
        raise pa.ArrowNotImplementedError("types of another shape")
    if pa.types.is_struct(type_):
        fields = [type_.field(at) for at in range(type_.num_fields)]
        parts = [
            _as_type(part, field.type) for part, field in zip(array.flatten(), fields, strict=True)
        ]
        for part, field in zip(parts, fields, strict=True):
            _check_nulls(part, field, array.null_count)
        # the stubs want names where fields are given
        return cast(Any, pa.StructArray).from_arrays(parts, fields=fields, mask=array.is_null())
    if pa.types.is_fixed_size_list(type_):
        return _of_one_size(array, type_)
    # a mask wants offsets that begin at 0, and so a part of an array is made a whole one
    offsets = np.array(array.offsets)
    begin, rows = int(offsets[0]), int(offsets[-1] - offsets[0])
    starts, nulls = pa.array(offsets - begin), array.is_null()
    if pa.types.is_map(type_):
        keys = _as_type(array.keys.slice(begin, rows), type_.key_type)
        items = _as_type(array.items.slice(begin, rows), type_.item_type)
        _check_nulls(items, type_.item_field)
        return cast(Any, pa.MapArray).from_arrays(starts, keys, items, type=type_, mask=nulls)
    element = type_.field(0)
    values = _as_type(array.values.slice(begin, rows), element.type)
    _check_nulls(values, element)
    return cast(Any, pa.ListArray).from_arrays(starts, values, type=type_, mask=nulls)


def _of_one_size(array: ArrowArray, type_: Any) -> ArrowArray:
    """Return lists that all have as many elements as the type says."""
    size = type_.list_size
    if array.type.list_size != size:
        raise pa.ArrowNotImplementedError("lists of another size")
    element = type_.field(0)
    values = _as_type(array.values.slice(array.offset * size, len(array) * size), element.type)
    _check_nulls(values, element, array.null_count * size)
    return cast(Any, pa.FixedSizeListArray).from_arrays(values, type=type_, mask=array.is_null())


def _check_nulls(part: ArrowArray, field: Any, allowed: int = 0) -> None:
    if not field.nullable and part.null_count > allowed:
        raise SqlFailed(f"column {field.name!r} was told to have no null, and has one")


def _uuids(array: ArrowArray, type_: pa.UuidType) -> ArrowArray:
    """Return UUIDs from their text."""
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), type_)
    if not pa.types.is_string(array.type):
        raise pa.ArrowNotImplementedError("no text")
    text = pc.replace_substring(pc.fill_null(array, "0" * 32), "-", "")
    raw = bytes.fromhex("".join(text.to_pylist()))
    if len(raw) != 16 * len(array):
        raise ValueError("text that is no UUID")
    storage: Any = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(array), [None, pa.py_buffer(raw)]
    )
    if array.null_count:
        storage = pc.if_else(array.is_valid(), storage, pa.scalar(None, pa.binary(16)))
    return cast(Any, type_).wrap_array(storage)


def _width(type_: Any) -> int:
    if pa.types.is_nested(type_):
        return _NESTED_BYTES
    try:
        return int(max(1, type_.bit_width // 8))
    except ValueError:
        return _TEXT_BYTES
