"""What is said of a literal that does not fit; `test_binding` has those that do."""

from __future__ import annotations

import math
import re

import pytest

from floeberg.protocol.errors import BadLiteral
from floeberg.protocol.expressions import as_expression
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.literals import type_literal, type_prefix
from floeberg.protocol.schema import Schema
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
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimeType,
    UnknownType,
    UuidType,
)

TIMESTAMPS = ["'2024-01-31'", "'2024-01-31T22:31:08'", "'2024-01-31T22:31:08.123456'"]
WITH_OFFSETS = ["'2024-01-31T22:31:08Z'", "'2024-01-31T22:31:08.123456+01:00'"]
EXAMPLES: list[tuple[PrimitiveType, list[str]]] = [
    (BooleanType(), ["true", "false"]),
    (IntType(), ["42"]),
    (LongType(), ["42"]),
    (FloatType(), ["1.5", "'NaN'", "'Infinity'", "'-Infinity'"]),
    (DoubleType(), ["1.5", "'NaN'", "'Infinity'", "'-Infinity'"]),
    (DecimalType(9, 2), ["14.20", "'14.20'"]),
    (DateType(), ["'2024-01-31'"]),
    (TimeType(), ["'22:31:08'", "'22:31:08.123456'"]),
    (TimestampType(), TIMESTAMPS),
    (TimestampType(nanos=True), TIMESTAMPS),
    (TimestampType(zoned=True), WITH_OFFSETS),
    (TimestampType(zoned=True, nanos=True), WITH_OFFSETS),
    (StringType(), ["'eu'"]),
    (UuidType(), ["'f79c3e09-677c-4bbd-a479-3f349cb785e7'"]),
    (FixedType(3), ["X'00ff00'"]),
    (FixedType(8), ["X'00ff00ff00ff00ff'"]),
    (BinaryType(), ["X'00ff'"]),
]


@pytest.mark.parametrize(("type_", "examples"), EXAMPLES, ids=str)
def test_a_bad_literal_is_told_with_its_value_the_type_and_examples(
    type_: PrimitiveType, examples: list[str]
):
    wrong = 2024 if isinstance(type_, StringType) else "2024x"

    with pytest.raises(BadLiteral) as raised:
        type_literal(wrong, type_, "c")

    message = str(raised.value)
    assert message.startswith(f"literal {wrong!r} does not fit {type_} column 'c': write ")
    for example in examples:
        assert example in message
        # and the examples are good ones
        bind(as_expression(f"c = {example}"), Schema((NestedField(1, "c", type_),)))


@pytest.mark.parametrize(
    ("literal", "type_", "why"),
    [
        ("2024", TimestampType(), "write a date, such as '2024-01-31', or a timestamp without"),
        ("2024", DateType(), "write a date"),
        ("2024-02-30", DateType(), "there is no date 2024-02-30; write a date"),
        ("25:00", TimeType(), "there is no time 25:00:00; write a time of day"),
        ("2024-01-31T00:00:00Z", TimestampType(), "the column has no zone; write a date"),
        ("2024-01-31T00:00:00", TimestampType(zoned=True), "the offset is missing; write"),
        ("2024-01-31T00:00+19:00", TimestampType(zoned=True), "there is no offset +19:00; write"),
        (math.nan, IntType(), "it is not finite; write a number"),
        (math.inf, DecimalType(9, 2), "it is not finite; write a number"),
        ("00ff", FixedType(3), "it has 2 bytes; write 3 bytes in hexadecimal"),
        (b"ab", UuidType(), "it has 2 bytes, and a uuid has 16; write a uuid"),
        ("\ud800", StringType(), "it holds half of a surrogate pair"),
        (1, UnknownType(), "such a column can only be tested for null, with IS NULL"),
    ],
)
def test_what_is_wrong_besides_the_form_is_told_first(
    literal: float | str | bytes, type_: PrimitiveType, why: str
):
    with pytest.raises(BadLiteral, match=f": {re.escape(why)}"):
        type_literal(literal, type_, "c")


def test_a_long_fixed_has_a_short_example():
    with pytest.raises(BadLiteral, match="write 500 bytes in hexadecimal, such as X'00ff00ff00ff"):
        type_literal("x", FixedType(500), "c")


def test_a_prefix_of_a_fixed_may_have_any_length():
    assert type_prefix("00", FixedType(3), "c") == b"\0"
    with pytest.raises(BadLiteral, match=r"fixed\[3\] column 'c': write bytes in hexadecimal"):
        type_prefix("x", FixedType(3), "c")
