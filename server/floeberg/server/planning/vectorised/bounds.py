"""The bounds of one column of a table, decoded for all entries of a segment.

Each row's bounds are what `expressions.bounds.decode_bounds` makes of its bytes, which explains the
rules: a bound that does not decode is none, and so are two that contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from floeberg.protocol.civil_time import NANOS_PER_DAY
from floeberg.protocol.expressions.model import Op
from floeberg.protocol.manifests import Strings
from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimeType,
    UuidType,
    Value,
)
from floeberg.protocol.values import unscaled_of
from floeberg.server.planning.vectorised.ordered import (
    ByteColumn,
    Mask,
    NumberColumn,
    OrderedColumn,
    as_binary,
    both,
)

_MICROS_PER_DAY = NANOS_PER_DAY // 1000
_INT64 = np.iinfo(np.int64)
_NARROW_PRECISION = 18
"""Decimals of up to so many digits have unscaled values of 64 bits."""


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Lower and upper bounds, inclusive. None where no row has one.

    They are `sound` when none was left out for what it says, which was looked at or was known.
    """

    lower: OrderedColumn | None
    upper: OrderedColumn | None
    sound: bool


def decode_columns(
    type_: PrimitiveType,
    lower: Strings | None,
    upper: Strings | None,
    *,
    may_be_imported: bool = False,
    known_sound: bool = False,
) -> ColumnBounds:
    """Return what two columns of bounds say of a column of `type_`; see `decode_bounds`.

    Those that are `known_sound` are not looked at, which takes most of the time.
    """
    low, high = _decoded(type_, lower), _decoded(type_, upper)
    as_stored = low, high
    if not known_sound:
        low, high = _consistent(_readable(type_, low), _readable(type_, high))
    sound = low is as_stored[0] and high is as_stored[1]
    if may_be_imported and isinstance(type_, TimestampType):
        ticks = 1_000_000 if type_.nanos else 1_000
        low = _in_either_unit(low, ticks, is_lower=True)
        high = _in_either_unit(high, ticks, is_lower=False)
    return ColumnBounds(low, high, sound)


def _consistent(
    low: OrderedColumn | None, high: OrderedColumn | None
) -> tuple[OrderedColumn | None, OrderedColumn | None]:
    """Leave out bounds that contradict each other."""
    if low is not None and high is not None:
        is_inverted = low.compare(Op.GT, high)
        if is_inverted.any():  # or seems to be, for what is not known
            compared = both(low.known, high.known)
            right = ~is_inverted if compared is None else ~(is_inverted & compared)
            low = replace(low, known=both(low.known, right))
            high = replace(high, known=both(high.known, right))
    return low, high


def _readable(type_: PrimitiveType, column: OrderedColumn | None) -> OrderedColumn | None:
    """Leave out NaN, which is never a bound, and text that is not UTF-8."""
    match column:
        case NumberColumn(values, known) if values.dtype.kind == "f":
            is_nan = np.isnan(values)
            return NumberColumn(values, both(known, ~is_nan)) if is_nan.any() else column
        case ByteColumn() if isinstance(type_, StringType):
            return _text(column)
        case _:
            return column


def stored_literal(type_: PrimitiveType, literal: Value) -> Any:
    """Return a literal of `type_` as columns of bounds compare with it."""
    match type_, literal:
        case DecimalType(), _ if not isinstance(literal, bool | int | float | str | bytes):
            return unscaled_of(literal, type_.scale)
        case StringType(), str():
            return literal.encode()
        case _:
            return literal


def _in_either_unit(
    column: OrderedColumn | None, ticks: int, *, is_lower: bool
) -> OrderedColumn | None:
    """Return bounds of values of which `column` may count ticks or milliseconds.

    What 64 bits do not hold lies beyond every literal, as no bound does.
    """
    if not isinstance(column, NumberColumn):
        return column
    values, limit = column.values, _INT64.max // ticks
    # a time before 1970 is earlier in milliseconds, one after it is later
    is_further = values < 0 if is_lower else values > 0
    fits = (values >= -limit) & (values <= limit)
    scaled = np.where(fits, values, 0) * ticks
    known = both(column.known, fits | ~is_further)
    return NumberColumn(np.where(is_further, scaled, values), known)


def _decoded(type_: PrimitiveType, column: Strings | None) -> OrderedColumn | None:
    if column is None:
        return None
    match type_:
        case BooleanType():
            return _numbers(column, {1: lambda raw: (raw[:, 0] != 0).astype(np.int64)})
        case IntType() | DateType():
            return _numbers(column, {4: _int32})
        case LongType():
            return _numbers(column, {4: _int32, 8: _int64})
        case TimeType():
            return _numbers(column, {8: _int64})
        case TimestampType(zoned=True):
            return _numbers(column, {8: _int64})
        case TimestampType(nanos=nanos):
            return _timestamps(column, NANOS_PER_DAY if nanos else _MICROS_PER_DAY)
        case FloatType() | DoubleType():
            wide = {} if isinstance(type_, FloatType) else {8: _float64}
            return _numbers(column, {4: _float32, **wide}, np.dtype(np.float64))
        case DecimalType():
            return _decimals(column, type_.precision)
        case StringType() | BinaryType():
            return _strings(column, None)
        case UuidType():
            return _strings(column, lambda sizes: sizes == 16)
        case FixedType(length=length):
            return _strings(column, lambda sizes: sizes <= length)  # it may have been cut
        case _:
            return None


_Decode = Callable[[npt.NDArray[np.uint8]], npt.NDArray[Any]]


def _numbers(
    column: Strings, decoders: dict[int, _Decode], dtype: np.dtype[Any] | None = None
) -> NumberColumn:
    """Decode the values of each width by its decoder; those of another width are none.

    Whole numbers of one width stay as wide as they are: they compare with literals of any size.
    """
    width, rows = column.width, len(column)
    if width in decoders:
        decoded = decoders[width](column.data)
        return NumberColumn(decoded if dtype is None else decoded.astype(dtype), column.valid)
    dtype = dtype or np.dtype(np.int64)
    values, known = np.zeros(rows, dtype=dtype), np.zeros(rows, dtype=np.bool_)
    if column.offsets is None:
        return NumberColumn(values, known)
    sizes = column.lengths()
    for size, decode in decoders.items():
        is_it = sizes == size
        places = np.flatnonzero(is_it if column.valid is None else is_it & column.valid)
        if len(places):
            cells = column.offsets[places][:, None] + np.arange(size)
            values[places] = decode(column.data[cells])
            known[places] = True
    return NumberColumn(values, known)


def _int32(raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    return raw.view("<i4")[:, 0]


def _int64(raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    return raw.view("<i8")[:, 0]


def _float32(raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    return raw.view("<f4")[:, 0]


def _float64(raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    return raw.view("<f8")[:, 0]


def _timestamps(column: Strings, units_per_day: int) -> NumberColumn:
    """Decode timestamps, of which some may have been dates when their file was written."""
    found = _numbers(column, {8: _int64})
    dates = _numbers(column, {4: _int32}, np.dtype(np.int64))
    if found.known is None or not (dates.known is None or dates.known.any()):
        return found
    are_dates = np.ones(len(column), dtype=np.bool_) if dates.known is None else dates.known
    fits = np.abs(dates.values) <= _INT64.max // units_per_day
    values = np.where(are_dates & fits, dates.values, 0) * units_per_day
    known = np.where(are_dates, fits, found.known)
    return NumberColumn(np.where(are_dates, values, found.values), known)


def _decimals(column: Strings, precision: int) -> NumberColumn:
    limit = 10**precision
    if precision <= _NARROW_PRECISION and int(column.lengths().max(initial=0)) <= 8:
        found = _numbers(column, dict.fromkeys(range(1, 9), _big_endian))
        fits = (found.values > -limit) & (found.values < limit)
        return found if fits.all() else replace(found, known=both(found.known, fits))
    values = np.zeros(len(column), dtype=np.object_)
    known = np.zeros(len(column), dtype=np.bool_)
    for i, raw in enumerate(column.to_list()):
        if raw is not None and 1 <= len(raw) <= 64:
            values[i] = int.from_bytes(raw, "big", signed=True)
            known[i] = abs(values[i]) < limit
    return NumberColumn(values, known)


def _big_endian(raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    values = raw[:, 0].view(np.int8).astype(np.int64)
    for place in range(1, raw.shape[1]):
        values = values << 8 | raw[:, place]
    return values


def _text(column: ByteColumn) -> ByteColumn:
    raw = np.frombuffer(column.values.buffers()[2], np.uint8)
    if raw.max(initial=0) < 0x80:  # ASCII, as most is: a tenth of the time of the rest
        return column
    try:
        column.values.cast(pa.string())
    except pa.ArrowInvalid:  # not all of it is UTF-8
        texts = column.values.to_pylist()
        is_text = np.fromiter(map(_is_text, texts), np.bool_, len(texts))
        return replace(column, known=both(column.known, is_text))
    return column


def _is_text(raw: bytes) -> bool:
    try:
        return raw.decode() is not None
    except UnicodeDecodeError:
        return False


def _strings(column: Strings, fits: Callable[[npt.NDArray[np.int64]], Mask] | None) -> ByteColumn:
    known = column.valid if fits is None else both(column.valid, fits(column.lengths()))
    return ByteColumn(as_binary(column), known)
