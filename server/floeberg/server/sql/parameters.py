"""The values of a statement's parameters, as literals in its tree."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

import pyarrow as pa
from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.protocol.errors import UnsupportedSql

Parameter: TypeAlias = (
    bool | int | float | Decimal | str | bytes | date | time | datetime | UUID | None
)
"""A value as pyarrow's `as_py` gives it; None is NULL."""


def value_of(scalar: pa.Scalar[Any]) -> Parameter:
    """Return the value of a parameter as it was bound. Raises `UnsupportedSql` for one that can't
    be had whole: a time beyond the years 1 to 9999, nanoseconds, text that is not UTF-8."""
    type_ = scalar.type
    try:
        if pa.types.is_timestamp(type_) and type_.unit == "ns":
            scalar = scalar.cast(pa.timestamp("us", type_.tz))
        elif pa.types.is_time64(type_) and type_.unit == "ns":
            scalar = scalar.cast(pa.time64("us"))
        value: Parameter = scalar.as_py()
    except (ValueError, OverflowError, LookupError) as exc:
        raise UnsupportedSql(
            f"a parameter of type {type_} has a value that is not taken; send text in UTF-8, and"
            " times within the years 1 to 9999 in whole microseconds, in a zone of the IANA"
            " database"
        ) from exc
    return value


def literal_of(value: Parameter) -> Node:
    """Return the literal that stands for `value`.

    Text is a literal without a type, which takes that of what it meets; so does a whole number, and
    a decimal has the digits it is written with. All others carry their type. Raises
    `UnsupportedSql` for values of other types.

    >>> literal_of(-7).sql(), literal_of("it's").sql(), literal_of(date(2024, 2, 29)).sql()
    ('(-7)', "'it''s'", "CAST('2024-02-29' AS DATE)")
    """
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return _signed(exp.Literal.number(str(abs(value))), negative=value < 0)
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
            return _signed(exp.Literal.number(f"{abs(value):f}"), negative=value.is_signed())
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


def _signed(literal: Node, *, negative: bool) -> Node:
    # in brackets: `- -1` without them could become a comment
    return exp.Paren(this=exp.Neg(this=literal)) if negative else literal


def _cast(text: str, type_: str) -> Node:
    return exp.cast(exp.Literal.string(text), type_, dialect="duckdb")
