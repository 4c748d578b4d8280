"""The values of a statement's parameters, as literals in its tree."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias, cast
from uuid import UUID

import pyarrow as pa
from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.protocol.errors import UnsupportedSql

Parameter: TypeAlias = (
    bool | int | float | Decimal | str | bytes | date | time | datetime | UUID | None
)
"""A value as pyarrow's `as_py` gives it; None is NULL."""

_EXTENSIONS = (pa.UuidType, pa.JsonType, pa.Bool8Type)
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_MAX_DIGITS = 38


def value_of(scalar: pa.Scalar[Any]) -> Parameter:
    """Return the value of a parameter as it was bound; one of a dictionary, or run-end encoded, is
    what that holds.

    Raises `UnsupportedSql` for one that can't be had whole: a time beyond the years 1 to 9999 or
    beyond its day, nanoseconds, text that is not UTF-8; and for unions and extension types but
    UUIDs, JSON and booleans.
    """
    type_ = scalar.type
    try:
        if not scalar.is_valid:
            return None
        if isinstance(scalar, pa.DictionaryScalar | pa.RunEndEncodedScalar):
            return value_of(cast(Any, scalar).value)
        if pa.types.is_union(type_) or (
            isinstance(type_, pa.BaseExtensionType) and not isinstance(type_, _EXTENSIONS)
        ):
            raise UnsupportedSql(f"a parameter is of type {type_}; send the value without that")
        value: Parameter = _in_whole_units(scalar).as_py()
    except (ValueError, OverflowError, LookupError) as exc:
        raise UnsupportedSql(
            f"a parameter of type {type_} has a value that is not taken; send text in UTF-8,"
            " times within the years 1 to 9999 in whole microseconds, in a zone of the IANA"
            " database, times of day before 24:00, and dates without a time"
        ) from exc
    return value


def _in_whole_units(scalar: pa.Scalar[Any]) -> pa.Scalar[Any]:
    """Return a time in microseconds where it is finer. Raises `ValueError` where `as_py` would give
    another value than the scalar has."""
    type_ = scalar.type
    if pa.types.is_timestamp(type_) and type_.unit == "ns":
        return scalar.cast(pa.timestamp("us", type_.tz))
    if pa.types.is_date64(type_) and cast(Any, scalar).value % _DAY["ms"]:
        raise ValueError("a date with a time")
    if pa.types.is_time(type_):
        if not 0 <= cast(Any, scalar).value < _DAY[type_.unit]:
            raise ValueError("a time of no day")
        if type_.unit == "ns":
            return scalar.cast(pa.time64("us"))
    return scalar


def literal_of(value: Parameter) -> Node:
    """Return the literal that stands for `value`.

    Text is a literal without a type, which takes that of what it meets; so does a whole number, and
    a decimal has the digits it is written with. All others carry their type. Raises
    `UnsupportedSql` for values of other types, and for numbers of more than 38 digits.

    >>> literal_of(-7).sql(), literal_of("it's").sql(), literal_of(date(2024, 2, 29)).sql()
    ('(-7)', "'it''s'", "CAST('2024-02-29' AS DATE)")
    """
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return _signed(_digits(str(abs(value))), negative=value < 0)
        case float():
            if math.isfinite(value):
                # digits and an exponent: without one it would be a decimal
                text = f"{abs(value)!r}"
                if "e" not in text:
                    text += "e0"
                return _signed(exp.Literal.number(text), negative=math.copysign(1.0, value) < 0)
            return _cast(str(value), "DOUBLE")
        case Decimal():
            if not value.is_finite():
                raise UnsupportedSql(f"a parameter is the decimal {value}, which has no literal")
            # `abs` would round to the digits of Python's context
            return _signed(_digits(f"{value.copy_abs():f}"), negative=value.is_signed())
        case str():
            return exp.Literal.string(value)
        case bytes():
            return _cast("".join(f"\\x{byte:02X}" for byte in value), "BLOB")
        case datetime():
            if value.tzinfo is None:
                return _cast(value.isoformat(" "), "TIMESTAMP")
            return _cast(value.astimezone(UTC).isoformat(" "), "TIMESTAMPTZ")
        case date():
            return _cast(value.isoformat(), "DATE")
        case time():
            if value.tzinfo is not None:
                raise UnsupportedSql("a parameter is a time of day with a zone; send it without")
            return _cast(value.isoformat(), "TIME")
        case UUID():
            return _cast(str(value), "UUID")
        case _:
            raise UnsupportedSql(
                f"a parameter is of type {type(value).__name__}; send numbers, text, bytes,"
                " booleans, dates and times"
            )


def _digits(text: str) -> Node:
    if len(text) > _MAX_DIGITS:
        # the 0 of 0.5 counts as a digit, and a literal of more than there may be is a double
        text = text.removeprefix("0") if text.startswith("0.") else text
        if len(text.replace(".", "")) > _MAX_DIGITS:
            raise UnsupportedSql(
                f"a parameter is a number of more than {_MAX_DIGITS} digits; send fewer, or a"
                " double"
            )
    return exp.Literal.number(text)


def _signed(literal: Node, *, negative: bool) -> Node:
    # in brackets: `- -1` without them could become a comment
    return exp.Paren(this=exp.Neg(this=literal)) if negative else literal


def _cast(text: str, type_: str) -> Node:
    return exp.cast(exp.Literal.string(text), type_, dialect="duckdb")
