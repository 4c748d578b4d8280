"""A column compared with a constant, as a filter that says of every row just what SQL does.

DuckDB brings both sides to a common type first. Where that changes no value of the column, the
comparison is one of the column's own type, and floeberg's filters can say it; where it might round,
overflow or fail, or depends on more than the two, there is no filter. NaN compares by IEEE's rule,
as in all of SQL here: it is not less, equal or greater than anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from floeberg.protocol import civil_time
from floeberg.protocol.expressions.model import (
    FALSE,
    And,
    Expression,
    Op,
    Or,
    Predicate,
    RawLiteral,
)
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
    StringType,
    TimestampType,
    TimeType,
    UuidType,
)
from floeberg.server.sql.columns import Column
from floeberg.server.sql.constants import (
    MAX_DIGITS,
    Bytes,
    Constant,
    Day,
    Float,
    Null,
    Number,
    Stamp,
    Text,
    Truth,
    Uuid,
    as_bytes,
    as_day,
    as_double,
    as_single,
    as_stamp,
    as_time,
    as_uuid,
)
from floeberg.server.sql.instants import Zone

FLIPPED = {
    Op.EQ: Op.EQ,
    Op.NE: Op.NE,
    Op.LT: Op.GT,
    Op.LE: Op.GE,
    Op.GT: Op.LT,
    Op.GE: Op.LE,
}
"""The operator with its sides changed."""

OPPOSITE = {
    Op.EQ: Op.NE,
    Op.NE: Op.EQ,
    Op.LT: Op.GE,
    Op.LE: Op.GT,
    Op.GT: Op.LE,
    Op.GE: Op.LT,
}
"""The operator that is true where the other is false, but for NaN."""

_NANOS_PER_DAY = civil_time.NANOS_PER_DAY


def compare(
    column: Column, op: Op, constant: Constant, zone: Zone, *, negated: bool = False
) -> Expression | None:
    """Return the filter that is true just where `column op constant` is true, or where it is false
    if `negated`; or None."""
    name = column.name
    if isinstance(constant, Null):
        return FALSE
    match column.type:
        case DoubleType():
            double = as_double(constant)
            return None if double is None else _float(name, op, double.value, negated)
        case FloatType():
            return _single(name, op, constant, negated)
        case _:
            return _ordered(column, OPPOSITE[op] if negated else op, constant, zone)


def is_nan(column: Column, constant: Constant) -> bool:
    """Say whether a constant is NaN where it meets a column."""
    double = as_double(constant) if isinstance(column.type, FloatType | DoubleType) else None
    return double is not None and bool(np.isnan(double.value))


def _ordered(column: Column, op: Op, constant: Constant, zone: Zone) -> Expression | None:
    """Compare a column of a type without NaN."""
    name = column.name
    match column.type:
        case BooleanType():
            if isinstance(constant, Truth) and op in (Op.EQ, Op.NE):
                return _is(name, op, constant.value)
            return None
        case IntType():
            return _integer(name, op, constant, digits=10, is_double_exact=True)
        case LongType():
            return _integer(name, op, constant, digits=19, is_double_exact=False)
        case DecimalType() as type_:
            return _decimal(name, op, constant, type_)
        case DateType():
            return _date(name, op, constant)
        case TimeType():
            time = as_time(constant)
            return None if time is None else _is(name, op, civil_time.format_time(time.micros))
        case TimestampType() as type_:
            return _stamp(name, op, constant, type_, zone)
        case StringType():
            return _is(name, op, constant.value) if isinstance(constant, Text) else None
        case UuidType():
            uuid = as_uuid(constant)
            return None if uuid is None else _is(name, op, uuid.value)
        case BinaryType():
            raw = as_bytes(constant)
            return None if raw is None else _is(name, op, raw.value)
        case FixedType(length):
            raw = as_bytes(constant)
            if raw is None or len(raw.value) != length:
                return None
            return _is(name, op, raw.value)
        case _:
            return None


def compare_day(
    column: Column, op: Op, constant: Constant, *, negated: bool = False
) -> Expression | None:
    """Return the filter that is true just where `CAST(column AS DATE) op constant` is true, or
    where it is false if `negated`; or None."""
    # of a zoned one, the session's zone decides; of nanoseconds, DuckDB rounds to the epoch
    if column.type != TimestampType():
        return None
    if isinstance(constant, Null):
        return FALSE
    day = as_day(constant)
    if day is None:
        return None
    name = column.name
    starts, ends = (
        _written(days * _NANOS_PER_DAY, TimestampType()) for days in (day.days, day.days + 1)
    )
    match OPPOSITE[op] if negated else op:
        case Op.LT:
            return _is(name, Op.LT, starts)
        case Op.LE:
            return _is(name, Op.LT, ends)
        case Op.GT:
            return _is(name, Op.GE, ends)
        case Op.GE:
            return _is(name, Op.GE, starts)
        case Op.EQ:
            return And((_is(name, Op.GE, starts), _is(name, Op.LT, ends)))
        case _:
            return Or((_is(name, Op.LT, starts), _is(name, Op.GE, ends)))


def can_be_listed(constants: Sequence[Constant]) -> bool:
    """Say whether comparing with each by itself is what comparing with all of them is, in IN and
    BETWEEN: these bring all their constants to one type first."""
    kinds = {type(c) for c in constants} - {Null}
    if kinds <= {Text} or kinds in ({Text, Day}, {Text, Uuid}, {Text, Bytes}):
        typed = {c.typed for c in constants if isinstance(c, Text)}
        return len(typed) < 2 and not (len(kinds) > 1 and True in typed)
    if kinds == {Number}:
        whole = max(c.whole for c in constants if isinstance(c, Number))
        scale = max(c.scale for c in constants if isinstance(c, Number))
        return max(whole, 19) + scale <= MAX_DIGITS
    if kinds == {Float}:
        return len({c.single for c in constants if isinstance(c, Float)}) == 1
    if kinds == {Day, Stamp}:
        # the days become timestamps, and are where they were
        return not any(c.zoned or c.nanos for c in constants if isinstance(c, Stamp))
    if kinds == {Stamp}:
        return len({(c.zoned, c.nanos) for c in constants if isinstance(c, Stamp)}) == 1
    return len(kinds) == 1


def _is(name: str, op: Op, literal: RawLiteral) -> Predicate:
    return Predicate(op, name, (literal,))


# --- numbers --------------------------------------------------------------------------------------


def _integer(
    name: str, op: Op, constant: Constant, *, digits: int, is_double_exact: bool
) -> Expression | None:
    match constant:
        case Number(value, whole, scale):
            # both become decimals, if the constant is one
            if scale and max(digits, whole) + scale > MAX_DIGITS:
                return None
            return _whole(name, op, value)
        case Float(value, single=False) if is_double_exact and np.isfinite(value):
            return _whole(name, op, value)
        case Text(text, typed=False) if re.fullmatch(r"-?\d{1,19}", text, re.ASCII):
            bits = 31 if digits == 10 else 63
            # DuckDB fails for text that does not fit
            if not -(1 << bits) <= int(text) < 1 << bits:
                return None
            return _is(name, op, int(text))
        case _:
            return None


def _whole(name: str, op: Op, value: int | Decimal | float) -> Expression:
    """Return the comparison of whole numbers with `value`, as one with a whole number."""
    below = math.floor(value)
    if below == value:
        # beyond 64 bits, one is as good as another
        return _is(name, op, max(-(1 << 64), min(1 << 64, below)))
    match op:
        case Op.EQ:
            return FALSE
        case Op.NE:
            return Predicate(Op.NOT_NULL, name)
        case Op.LT | Op.LE:
            return _whole(name, Op.LE, below)
        case _:
            return _whole(name, Op.GT, below)


def _decimal(name: str, op: Op, constant: Constant, type_: DecimalType) -> Expression | None:
    if not 0 <= type_.scale <= type_.precision:
        return None  # none of DuckDB's
    whole_digits = type_.precision - type_.scale
    match constant:
        case Number(value, _, scale):
            whole = constant.decimal_whole()
            if max(whole_digits, whole) + max(type_.scale, scale) > MAX_DIGITS:
                return None
            return _is(name, op, value)
        case Text(text, typed=False):
            found = re.fullmatch(r"-?(\d{1,38})(?:\.(\d{1,38}))?", text, re.ASCII)
            if found is None or len(found[1]) > whole_digits:
                return None
            # DuckDB would round what is longer
            if len(found[2] or "") > type_.scale:
                return None
            return _is(name, op, Decimal(text))
        case _:
            return None


def _float(name: str, op: Op, value: float, negated: bool) -> Expression:
    if np.isnan(value):
        return Predicate(Op.NOT_NULL, name) if (op is Op.NE) is not negated else FALSE
    if not negated:
        return _is(name, op, value)
    opposite = _is(name, OPPOSITE[op], value)
    return opposite if op in (Op.EQ, Op.NE) else Or((opposite, Predicate(Op.IS_NAN, name)))


def _single(name: str, op: Op, constant: Constant, negated: bool) -> Expression | None:
    single = as_single(constant)
    if single is not None:
        return _float(name, op, single.value, negated)
    if not isinstance(constant, Float):
        return None
    # the column becomes double, of which its own values are some; numpy would compare as singles
    value = constant.value
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if np.isinf(near) and not np.isinf(value):
        return None
    if np.isnan(value) or float(near) == value:
        return _float(name, op, float(near), negated)
    match op:
        case Op.EQ | Op.NE:
            return Predicate(Op.NOT_NULL, name) if (op is Op.NE) is not negated else FALSE
        case Op.LT | Op.LE:
            below = near if float(near) < value else np.nextafter(near, np.float32(-np.inf))
            return _float(name, Op.LE, float(below), negated)
        case _:
            above = near if float(near) > value else np.nextafter(near, np.float32(np.inf))
            return _float(name, Op.GE, float(above), negated)


# --- days and times -------------------------------------------------------------------------------


def _date(name: str, op: Op, constant: Constant) -> Expression | None:
    if not (isinstance(constant, Stamp) and not constant.zoned):
        day = as_day(constant)
        return None if day is None else _is(name, op, civil_time.format_date(day.days))
    # the column becomes a timestamp, at midnight
    if constant.nanos:
        return None  # which fails for days that are far
    days, rest = divmod(constant.value, _NANOS_PER_DAY)
    if rest == 0:
        return _is(name, op, civil_time.format_date(days))
    match op:
        case Op.EQ:
            return FALSE
        case Op.NE:
            return Predicate(Op.NOT_NULL, name)
        case Op.LT | Op.LE:
            return _is(name, Op.LE, civil_time.format_date(days))
        case _:
            return _is(name, Op.GT, civil_time.format_date(days))


def _written(nanos: int, type_: TimestampType) -> str:
    value = nanos if type_.nanos else nanos // 1000
    return civil_time.format_timestamp(value, nanos=type_.nanos, zoned=type_.zoned)


def _stamp(
    name: str, op: Op, constant: Constant, type_: TimestampType, zone: Zone
) -> Expression | None:
    if type_.nanos and type_.zoned and not isinstance(constant, Text):
        return None
    if isinstance(constant, Stamp):
        # where the constant's type is the wider one, the column is changed
        if constant.zoned and not type_.zoned:
            return None
        if constant.nanos and not type_.nanos:
            return None
    stamp = as_stamp(constant, zone, zoned=type_.zoned, nanos=type_.nanos)
    return None if stamp is None else _is(name, op, _written(stamp.value, type_))
