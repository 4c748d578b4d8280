from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol import values
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.bounds import UNBOUNDED, Bounds, decode_bounds, may_match
from floeberg.protocol.expressions.evaluation import is_true
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.model import BoundPredicate, Op
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    GeometryType,
    IntType,
    Json,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    Type,
    UuidType,
    Value,
)
from tests.support.iceberg_values import primitive_types, values_of

LONG = struct.Struct("<q")


def bound(type_: PrimitiveType, raw: Json) -> BoundPredicate:
    schema = Schema((NestedField(1, "x", type_),))
    found = bind(expression_from_json(raw), schema)
    assert isinstance(found, BoundPredicate)
    return found


@pytest.mark.parametrize(
    ("type_", "lower", "upper", "expected"),
    [
        (LongType(), LONG.pack(1), LONG.pack(5), Bounds(1, 5)),
        (LongType(), struct.pack("<i", 1), LONG.pack(5), Bounds(1, 5)),
        (LongType(), b"\x01", LONG.pack(5), Bounds(None, 5)),
        (LongType(), LONG.pack(5), LONG.pack(1), UNBOUNDED),
        (LongType(), None, None, UNBOUNDED),
        (DoubleType(), struct.pack("<f", 1.5), struct.pack("<d", float("nan")), Bounds(1.5, None)),
        (StringType(), b"", b"", Bounds("", "")),
        (StringType(), b"caf\xc3", b"d", Bounds(None, "d")),
        (DecimalType(20, 2), b"\x05\x8c", None, Bounds(Decimal("14.20"), None)),
        (FixedType(4), b"\x01\x02", b"\x01\x03", Bounds(b"\x01\x02", b"\x01\x03")),
        (UuidType(), b"\xf0" + bytes(15), b"\x10" + bytes(15), UNBOUNDED),
        (GeometryType(), bytes(16), bytes(16), UNBOUNDED),
    ],
)
def test_bounds_are_decoded_or_none_at_all(
    type_: Type, lower: bytes | None, upper: bytes | None, expected: Bounds
):
    assert decode_bounds(type_, lower, upper) == expected


@pytest.mark.parametrize(
    ("raw", "bounds", "expected"),
    [
        (["=", "x", 5], Bounds(5, 5), True),
        (["=", "x", 5], Bounds(6, None), False),
        (["=", "x", 5], Bounds(None, 4), False),
        (["=", "x", 5], Bounds(None, None), True),
        (["in", "x", [1, 9]], Bounds(2, 8), False),
        (["in", "x", [1, 9]], Bounds(None, 0), False),
        (["in", "x", [1, 5, 9]], Bounds(2, 8), True),
        (["<", "x", 5], Bounds(5, None), False),
        (["<=", "x", 5], Bounds(5, None), True),
        ([">", "x", 5], Bounds(None, 5), False),
        ([">=", "x", 5], Bounds(None, 5), True),
        (["!=", "x", 5], Bounds(5, 5), False),
        (["!=", "x", 5], Bounds(5, 6), True),
        (["!=", "x", 5], Bounds(5, None), True),
        (["not-in", "x", [4, 5]], Bounds(5, 5), False),
    ],
)
def test_a_comparison_is_decided_by_both_ends(raw: Json, bounds: Bounds, expected: bool):
    assert may_match(bound(IntType(), raw), bounds) is expected


@pytest.mark.parametrize(
    ("raw", "bounds", "expected"),
    [
        (["starts-with", "x", "ab"], Bounds("abc", "abd"), True),
        (["starts-with", "x", "ab"], Bounds("aa", "aaz"), False),
        (["starts-with", "x", "ab"], Bounds("ac", None), False),
        (["starts-with", "x", "ab"], Bounds("a", "a\uffff"), True),
        (["starts-with", "x", "abc"], Bounds(None, "ab"), False),
        (["not-starts-with", "x", "ab"], Bounds("abc", "abd"), False),
        (["not-starts-with", "x", "ab"], Bounds("a", "abd"), True),
        (["not-starts-with", "x", "ab"], Bounds("ab", None), True),
        (["!=", "x", "ab"], Bounds("ab", "ab"), True),
    ],
)
def test_a_prefix_is_decided_by_both_ends(raw: Json, bounds: Bounds, expected: bool):
    assert may_match(bound(StringType(), raw), bounds) is expected


@pytest.mark.parametrize("raw", [["!=", "x", 0], ["not-in", "x", [0, 1]]])
def test_a_float_beside_its_bounds_may_be_nan(raw: Json):
    assert may_match(bound(DoubleType(), raw), Bounds(0.0, 0.0))


def test_both_zeros_are_one():
    assert may_match(bound(DoubleType(), ["=", "x", 0.0]), Bounds(-0.0, -0.0))
    assert may_match(bound(DoubleType(), ["=", "x", "-0.0"]), Bounds(0.0, 0.0))
    assert not may_match(bound(DoubleType(), [">", "x", "-0.0"]), Bounds(-0.0, 0.0))


@st.composite
def columns(draw: st.DrawFn) -> tuple[PrimitiveType, list[Any]]:
    type_ = draw(primitive_types)
    column = st.lists(values_of(type_), min_size=1, max_size=4)
    return type_, draw(column)


def cut_bounds(type_: PrimitiveType, column: list[Any], width: int) -> Bounds:
    """Bounds as a writer makes them: NaN left out, text cut and rounded outwards."""
    ordered = sorted(v for v in column if v == v)
    if not ordered:
        return UNBOUNDED
    lower, upper = ordered[0], ordered[-1]
    if isinstance(type_, StringType):
        cut = upper[:width]
        rounded = cut[:-1] + chr(ord(cut[-1]) + 1) if cut and ord(cut[-1]) < 0xD7FF else None
        return Bounds(lower[:width], upper if len(upper) <= width else rounded)
    if isinstance(type_, BinaryType | FixedType):
        return Bounds(lower[:width], upper if len(upper) <= width else None)
    return Bounds(lower, upper)


@given(columns(), st.integers(1, 4), st.sampled_from(list(Op)), st.data())
def test_bounds_keep_every_column_with_a_matching_value(
    column: tuple[PrimitiveType, list[Any]], width: int, op: Op, data: st.DataObject
):
    type_, members = column
    if op in (Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN):
        return
    literal: Value = data.draw(st.sampled_from(members) | values_of(type_))
    if literal != literal:
        return
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        if not isinstance(literal, str | bytes) or isinstance(type_, UuidType):
            return
        literal = literal[: data.draw(st.integers(0, 4))]
    predicate = BoundPredicate(op, 1, "x", type_, (literal,))

    if any(is_true(predicate, {1: v}) for v in members):
        assert may_match(predicate, cut_bounds(type_, members, width))


@given(columns())
def test_bounds_survive_their_bytes(column: tuple[PrimitiveType, list[Any]]):
    type_, members = column
    if any(v != v for v in members):
        return
    lower, upper = min(members), max(members)

    decoded = decode_bounds(type_, values.to_bytes(type_, lower), values.to_bytes(type_, upper))

    assert decoded == Bounds(lower, upper)


@given(st.integers(-(2**40), 2**40), st.integers(0, 2**30))
def test_imported_timestamps_are_found_whichever_unit_their_bounds_are_in(first: int, span: int):
    """Spark's import writes the bounds of TIMESTAMP_MILLIS columns as it finds them."""
    milliseconds = (first, first + span)
    raw = [LONG.pack(t) for t in milliseconds]

    bounds = decode_bounds(TimestampType(), *raw, may_be_imported=True)

    for unit in (1, 1000):
        for time in milliseconds:
            equal = BoundPredicate(Op.EQ, 1, "x", TimestampType(), (time * unit,))
            assert may_match(equal, bounds)
    assert decode_bounds(LongType(), *raw, may_be_imported=True) == Bounds(*milliseconds)
