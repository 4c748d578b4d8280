"""What a literal means to the column that it is compared with.

A caller's literal has a JSON type at best; the column decides. A literal that lies between two
values of the column's type (2.5 for integers, 1.005 for two digits after the point, a nanosecond
for microseconds), or beyond all of them, is not rounded: it becomes a `Gap`, from which binding
makes the comparison that is exactly right. Only floats round, to the nearest value of their width,
because that is what writing 0.1 means for them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import TypeAlias

from floeberg.protocol import civil_time, values
from floeberg.protocol.civil_time import WrongForm
from floeberg.protocol.errors import BadLiteral
from floeberg.protocol.expressions.model import RawLiteral
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


@dataclass(frozen=True, slots=True)
class Exact:
    """A literal that the type holds. Never -0.0, which compares as 0.0 does."""

    value: Value


@dataclass(frozen=True, slots=True)
class Gap:
    """A literal that the type does not hold, by its neighbours: None where the type has no value on
    that side."""

    below: Value | None
    above: Value | None


TypedLiteral: TypeAlias = Exact | Gap

_FLOAT_TEXT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,6})?", re.ASCII)
_DECIMAL_TEXT = _FLOAT_TEXT
_FLOAT_NAMES = {
    "nan": math.nan,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-infinity": -math.inf,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
}
_FLOAT_MAX = 3.4028234663852886e38
_DOUBLE_MAX = 1.7976931348623157e308
_WIDE = Context(prec=200)


def type_literal(raw: RawLiteral, type_: PrimitiveType, column: str) -> TypedLiteral:
    """Return what `raw` means for a column of `type_`.

    Numbers are taken for every numeric type, and decimals and floats as text too; booleans are not
    numbers. Dates, times and timestamps are ISO 8601 text: with an offset for zoned timestamps, and
    without one for the others, where a bare date is its midnight. uuids are text in any case; fixed
    and binary are hexadecimal text or bytes. Raises `BadLiteral` for anything else; `column` is for
    its message.

    >>> type_literal(2.5, IntType(), "n"), type_literal("1969-12-31", DateType(), "day")
    (Gap(below=2, above=3), Exact(value=-1))
    """
    try:
        match type_:
            case BooleanType():
                return Exact(_boolean(raw))
            case IntType():
                return _integer(raw, values.INT_MIN, values.INT_MAX)
            case LongType():
                return _integer(raw, values.LONG_MIN, values.LONG_MAX)
            case FloatType():
                return _float(raw, single=True)
            case DoubleType():
                return _float(raw, single=False)
            case DecimalType():
                return _decimal(raw, type_)
            case DateType() | TimeType() | TimestampType():
                return _temporal(raw, type_)
            case StringType():
                return Exact(_text(raw))
            case UuidType() | FixedType() | BinaryType():
                return Exact(_bytes(raw, type_))
            case _:
                raise ValueError("such a column can only be tested for null, with IS NULL")
    except ValueError as exc:
        raise BadLiteral(raw, str(type_), _remedy(exc, type_), column) from exc


def type_prefix(raw: RawLiteral, type_: PrimitiveType, column: str) -> Value:
    """Return what `raw` means as the prefix of starts-with: text for strings, bytes of any length
    for bytes."""
    try:
        if isinstance(type_, StringType):
            return _text(raw)
        return _bytes(raw, BinaryType())
    except ValueError as exc:
        form = StringType() if isinstance(type_, StringType) else BinaryType()
        raise BadLiteral(raw, str(type_), _remedy(exc, form), column) from exc


def _remedy(wrong: ValueError, type_: PrimitiveType) -> str:
    """Return what is wrong, where it is more than the form, and the form with an example."""
    form = _form(type_)
    if isinstance(wrong, WrongForm) or not form:
        return form or str(wrong)
    return f"{wrong}; {form}"


def _form(type_: PrimitiveType) -> str:
    """Return how a literal of a type is written, in the text of filters; "" where there is none."""
    match type_:
        case BooleanType():
            return "write true or false, without quotes"
        case IntType() | LongType():
            return "write a number without quotes, such as 42"
        case FloatType() | DoubleType():
            return "write a number, such as 1.5, or 'NaN', 'Infinity' or '-Infinity' in quotes"
        case DecimalType():
            return "write a number, such as 14.20, or the same in quotes, '14.20'"
        case DateType():
            return "write a date, such as '2024-01-31'"
        case TimeType():
            return "write a time of day, such as '22:31:08' or '22:31:08.123456'"
        case TimestampType(zoned=True):
            return (
                "write a timestamp with its offset from UTC, such as '2024-01-31T22:31:08Z' or"
                " '2024-01-31T22:31:08.123456+01:00'"
            )
        case TimestampType():
            return (
                "write a date, such as '2024-01-31', or a timestamp without an offset, such as"
                " '2024-01-31T22:31:08' or '2024-01-31T22:31:08.123456'"
            )
        case StringType():
            return "write text in quotes, such as 'eu'"
        case UuidType():
            return "write a uuid in quotes, such as 'f79c3e09-677c-4bbd-a479-3f349cb785e7'"
        case FixedType(length):
            shown = ("00ff" * 4)[: 2 * length] + ("…" if length > 8 else "")
            return f"write {length} bytes in hexadecimal, such as X'{shown}' (in JSON \"{shown}\")"
        case BinaryType():
            return "write bytes in hexadecimal, such as X'00ff' (in JSON \"00ff\")"
        case _:
            return ""


def _boolean(raw: RawLiteral) -> bool:
    if not isinstance(raw, bool):
        raise WrongForm
    return raw


def _number(raw: RawLiteral) -> int | float | Decimal:
    if isinstance(raw, bool) or not isinstance(raw, int | float | Decimal):
        raise WrongForm
    return raw


def _integer(raw: RawLiteral, low: int, high: int) -> TypedLiteral:
    number = _number(raw)
    if not _is_finite(number):
        raise ValueError("it is not finite")
    if number > high:
        return Gap(high, None)
    if number < low:
        return Gap(None, low)
    below = math.floor(number)
    return Exact(below) if below == number else Gap(below, below + 1)


def _is_finite(number: int | float | Decimal) -> bool:
    # `math.isfinite` goes through a float: large integers don't fit, large decimals are infinite
    match number:
        case int():
            return True
        case float():
            return math.isfinite(number)
        case Decimal():
            return number.is_finite()


def _float(raw: RawLiteral, *, single: bool) -> TypedLiteral:
    number = _float_from_text(raw) if isinstance(raw, str) else _number(raw)
    largest = _FLOAT_MAX if single else _DOUBLE_MAX
    try:
        value = float(number)
        if single:
            value = values.to_float32(value)
    except OverflowError:
        value = math.inf if number > 0 else -math.inf
    if math.isinf(value) and not (isinstance(number, float) and math.isinf(number)):
        # finite, but beyond the largest: it is not infinity
        return Gap(largest, math.inf) if value > 0 else Gap(-math.inf, -largest)
    return Exact(0.0 if value == 0 else value)


def _float_from_text(text: str) -> float | Decimal:
    if (named := _FLOAT_NAMES.get(text.lower())) is not None:
        return named
    if not _FLOAT_TEXT.fullmatch(text):
        raise WrongForm
    return Decimal(text)


def _decimal(raw: RawLiteral, type_: DecimalType) -> TypedLiteral:
    if isinstance(raw, str):
        if not _DECIMAL_TEXT.fullmatch(raw):
            raise WrongForm
        number = Decimal(raw)
    elif isinstance(raw, float):
        number = Decimal(
            repr(raw)
        )  # the digits that were written, not the binary fraction behind them
    else:
        number = Decimal(_number(raw))
    if not number.is_finite():
        raise ValueError("it is not finite")
    largest = 10**type_.precision - 1
    # a minus sign before a Decimal would round it to 28 digits
    highest, lowest = (values.decimal_of(n, type_.scale) for n in (largest, -largest))
    if number > highest:
        return Gap(highest, None)
    if number < lowest:
        return Gap(None, lowest)
    unit = Decimal(1).scaleb(-type_.scale)
    below = number.quantize(unit, ROUND_FLOOR, _WIDE)
    below = values.decimal_of(values.unscaled_of(below, type_.scale), type_.scale)
    if below == number:
        return Exact(below)
    # the neighbours of a number within the range are within it too, at its ends at the latest
    return Gap(below, _WIDE.add(below, unit))


def _temporal(raw: RawLiteral, type_: DateType | TimeType | TimestampType) -> TypedLiteral:
    if not isinstance(raw, str):
        raise WrongForm
    match type_:
        case DateType():
            return _within(civil_time.parse_date(raw), values.INT_MIN, values.INT_MAX)
        case TimeType():
            return _in_units(civil_time.parse_time(raw), 1000)
        case TimestampType():
            return _in_units(_instant(raw, type_.zoned), 1 if type_.nanos else 1000)


def _instant(text: str, zoned: bool) -> int:
    if not zoned and ":" not in text:
        return civil_time.parse_date(text) * civil_time.NANOS_PER_DAY
    instant = civil_time.parse_timestamp(text)
    if zoned and not instant.zoned:
        raise ValueError("the offset is missing")
    if instant.zoned and not zoned:
        raise ValueError("the column has no zone")
    return instant.nanos


def _in_units(nanos: int, nanos_per_unit: int) -> TypedLiteral:
    below, rest = divmod(nanos, nanos_per_unit)
    typed = _within(below, values.LONG_MIN, values.LONG_MAX)
    if rest == 0 or isinstance(typed, Gap):
        return typed
    return Gap(below, below + 1)


def _within(value: int, low: int, high: int) -> TypedLiteral:
    if value > high:
        return Gap(high, None)
    return Gap(None, low) if value < low else Exact(value)


def _text(raw: RawLiteral) -> str:
    if not isinstance(raw, str):
        raise WrongForm
    try:
        raw.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair, which no text does") from None
    return raw


def _bytes(raw: RawLiteral, type_: UuidType | FixedType | BinaryType) -> bytes:
    if isinstance(raw, str):
        from_text = values.uuid_from_text if isinstance(type_, UuidType) else values.bytes_from_hex
        try:
            raw = from_text(raw)
        except ValueError:
            raise WrongForm from None
    if not isinstance(raw, bytes):
        raise WrongForm
    match type_:
        case UuidType() if len(raw) != 16:
            raise ValueError(f"it has {len(raw)} bytes, and a uuid has 16")
        case FixedType(length) if len(raw) != length:
            raise ValueError(f"it has {len(raw)} bytes")
        case _:
            return raw
