"""Arrow arrays of Iceberg's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from floeberg.protocol.arrow import arrow_type
from floeberg.protocol.manifests.columns import Mask, Numbers, Strings
from floeberg.protocol.manifests.segment import as_arrow
from floeberg.protocol.types import (
    BinaryType,
    DateType,
    DoubleType,
    FloatType,
    IntType,
    LongType,
    StringType,
    TimestampType,
    TimeType,
    Type,
    UnknownType,
    Value,
)
from floeberg.protocol.values import from_bytes

# Any: the stubs give every type of array a class of its own, and which one is known at run time
ArrowArray: TypeAlias = Any
ArrowType: TypeAlias = Any


def array_of(values: Sequence[Value | None], type_: Type) -> ArrowArray:
    """Return an array of values as `protocol.types.Value` has them, None for null."""
    target: ArrowType = arrow_type(type_)
    if isinstance(type_, UnknownType):
        return pa.nulls(len(values), target)
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, pa.array(values, target.storage_type))
    return pa.array(values, target)


def no_values(rows: slice, target: ArrowType) -> ArrowArray:
    return pa.nulls(rows.stop - rows.start, target)


def numbers(column: Numbers | None, rows: slice, target: ArrowType) -> ArrowArray:
    """Return some rows of a column of whole numbers, all null where there is no column."""
    if column is None:
        return no_values(rows, target)
    mask = None if column.valid is None else ~column.valid[rows]
    return pa.array(column.values[rows].astype(np.int64), target, mask=mask)


def strings(column: Strings | None, rows: slice, total_rows: int) -> ArrowArray:
    """Return some of the `total_rows` of a column as text, which is not looked at."""
    return as_arrow(column, total_rows).slice(rows.start, rows.stop - rows.start)


def byte_strings(column: Strings | None, rows: slice, total_rows: int) -> ArrowArray:
    return strings(column, rows, total_rows).cast(pa.binary())


def valid_rows(column: Numbers | Strings, rows: slice) -> Mask:
    """Return which of some rows of a column have a value."""
    if column.valid is None:
        return np.ones(rows.stop - rows.start, dtype=np.bool_)
    return column.valid[rows]


_FIXED: dict[type[Type], dict[int, str]] = {
    IntType: {4: "<i4"},
    DateType: {4: "<i4"},
    LongType: {4: "<i4", 8: "<i8"},
    TimeType: {8: "<i8"},
    TimestampType: {8: "<i8"},
    FloatType: {4: "<f4"},
    DoubleType: {4: "<f4", 8: "<f8"},
}


def bounds(column: Strings | None, type_: Type, rows: slice, total_rows: int) -> ArrowArray:
    """Return bounds in Appendix D's binary form as values of `type_`, null for those that are none:
    an older type of the column may have had others."""
    if column is None:
        return no_values(rows, arrow_type(type_))
    layout = None if column.width is None else _FIXED.get(type(type_), {}).get(column.width)
    if layout is not None:
        return _of_one_width(column, layout, arrow_type(type_), rows)
    stored = byte_strings(column, rows, total_rows)
    if isinstance(type_, BinaryType):
        return stored
    if isinstance(type_, StringType):
        try:
            return stored.cast(pa.string())
        except pa.ArrowInvalid:
            pass  # one of them is no text: they are looked at one by one
    return array_of([_bound(raw, type_) for raw in stored.to_pylist()], type_)


def _of_one_width(column: Strings, layout: str, target: ArrowType, rows: slice) -> ArrowArray:
    values: npt.NDArray[Any] = np.ascontiguousarray(column.data[rows]).view(layout).ravel()
    mask = None if column.valid is None else ~column.valid[rows]
    return pa.array(values, mask=mask).cast(target)


def _bound(raw: bytes | None, type_: Type) -> Value | None:
    try:
        return None if raw is None else from_bytes(type_, raw)
    except ValueError:
        return None
