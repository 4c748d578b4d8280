from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given

from floeberg.protocol.errors import AmbiguousColumn, BadFilter, BadLiteral, UnknownColumn
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.evaluation import evaluate, is_true
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.model import (
    FALSE,
    MAX_DEPTH,
    TRUE,
    And,
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    RawLiteral,
)
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeometryType,
    IntType,
    Json,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
    Value,
    VariantType,
)
from tests.support import filter_strategies as filters

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


def schema_of(type_: Type, name: str = "x", required: bool = False) -> Schema:
    return Schema((NestedField(1, name, type_, required),))


def bound(type_: Type, raw: Json) -> BoundExpression:
    return bind(expression_from_json(raw), schema_of(type_))


def predicate(type_: PrimitiveType, op: Op, *literals: Value) -> BoundPredicate:
    return BoundPredicate(op, 1, "x", type_, literals)


@given(filters.expressions, filters.rows())
def test_binding_keeps_what_a_filter_is_true_of(expression: Expression, row: filters.Row):
    bound = bind(expression, filters.SCHEMA)

    assert is_true(bound, row) is (filters.meaning(expression, row) is True)


@given(filters.expressions, filters.rows())
def test_a_filter_and_its_opposite_are_never_true_together(
    expression: Expression, row: filters.Row
):
    outcomes = [is_true(bind(e, filters.SCHEMA), row) for e in (expression, Not(expression))]

    assert outcomes.count(True) == (filters.meaning(expression, row) is not None)


# --- literals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        (IntType(), 7, 7),
        (IntType(), 7.0, 7),
        (IntType(), Decimal("7.00"), 7),
        (LongType(), 2**40, 2**40),
        (FloatType(), 0.1, 0.10000000149011612),
        (FloatType(), "1.30", 1.2999999523162842),
        (DoubleType(), "1.30", 1.3),
        (DoubleType(), Decimal("0.1"), 0.1),
        (DoubleType(), 3, 3.0),
        (DoubleType(), "Infinity", math.inf),
        (DoubleType(), "-Infinity", -math.inf),
        (DecimalType(9, 2), "14.2", Decimal("14.20")),
        (DecimalType(9, 2), 14.2, Decimal("14.20")),
        (DecimalType(9, 2), 14, Decimal("14.00")),
        (DecimalType(9, 2), "1e3", Decimal("1000.00")),
        (
            DecimalType(38, 10),
            "1800000000000000000000.0000000001",
            Decimal("1800000000000000000000.0000000001"),
        ),
        (DateType(), "1969-12-31", -1),
        (TimeType(), "12:00:00", 43_200_000_000),
        (TimeType(), "12:00", 43_200_000_000),
        (TimestampType(), "1970-01-01T00:00:01", 1_000_000),
        (TimestampType(), "1970-01-02", 86_400_000_000),
        (TimestampType(nanos=True), "1970-01-01T00:00:00.000000002", 2),
        (TimestampType(zoned=True), "1970-01-01T01:00:00+01:00", 0),
        (TimestampType(zoned=True), "1970-01-01T00:00:00Z", 0),
        (StringType(), "2017-11-16", "2017-11-16"),
        (
            UuidType(),
            "F79C3E09-677C-4BBD-A479-3F349CB785E7",
            b"\xf7\x9c>\tg|K\xbd\xa4y?4\x9c\xb7\x85\xe7",
        ),
        (FixedType(2), "00fF", b"\x00\xff"),
        (BinaryType(), "", b""),
        (BinaryType(), b"\x01", b"\x01"),
    ],
)
def test_a_literal_takes_the_columns_type(type_: PrimitiveType, raw: RawLiteral, value: Value):
    found = bind(Predicate(Op.EQ, "x", (raw,)), schema_of(type_))

    assert repr(found) == repr(predicate(type_, Op.EQ, value))


@pytest.mark.parametrize(
    ("type_", "raw"),
    [
        (IntType(), "NaN"),
        (IntType(), "not a number"),
        (IntType(), "7"),
        (IntType(), True),
        (IntType(), math.nan),
        (IntType(), math.inf),
        (IntType(), Decimal("sNaN")),
        (LongType(), b"7"),
        (DoubleType(), True),
        (DoubleType(), "seven"),
        (DoubleType(), "1_0"),
        (DecimalType(9, 2), "NaN"),
        (DecimalType(9, 2), math.inf),
        (DecimalType(9, 2), False),
        (DateType(), 19000),
        (DateType(), "2021-02-29"),
        (DateType(), "2021-02-28T00:00:00"),
        (TimeType(), 1),
        (TimeType(), "25:00:00"),
        (TimestampType(), 1_000_000),
        (TimestampType(), "1970-01-01T00:00:00+00:00"),
        (TimestampType(zoned=True), "1970-01-01T00:00:00"),
        (TimestampType(zoned=True), "1970-01-01"),
        (StringType(), 7),
        (StringType(), b"x"),
        (StringType(), "\ud83e"),
        (UuidType(), "f79c3e09"),
        (UuidType(), b"123"),
        (FixedType(2), "00"),
        (FixedType(2), "xyz1"),
        (BinaryType(), "abc"),
        (BinaryType(), 7),
    ],
)
def test_a_literal_of_the_wrong_type_is_refused_with_its_column(
    type_: PrimitiveType, raw: RawLiteral
):
    with pytest.raises(BadLiteral, match="column 'x'"):
        bind(Predicate(Op.LT, "x", (raw,)), schema_of(type_))


@pytest.mark.parametrize(
    ("type_", "raw", "folded"),
    [
        (IntType(), ["=", "x", 2**31], FALSE),
        (IntType(), ["!=", "x", 2**31], predicate(IntType(), Op.NOT_NULL)),
        (IntType(), ["<", "x", 2**31], predicate(IntType(), Op.NOT_NULL)),
        (IntType(), [">", "x", 2**31], FALSE),
        (IntType(), ["not", ["<", "x", 2**31]], FALSE),
        (IntType(), ["not", [">", "x", 2**31]], predicate(IntType(), Op.NOT_NULL)),
        (IntType(), [">=", "x", -(2**40)], predicate(IntType(), Op.NOT_NULL)),
        (IntType(), ["<=", "x", 2.5], predicate(IntType(), Op.LE, 2)),
        (IntType(), [">", "x", -2.5], predicate(IntType(), Op.GE, -2)),
        (IntType(), ["in", "x", [1, 2**40]], predicate(IntType(), Op.EQ, 1)),
        (IntType(), ["in", "x", [2**40]], FALSE),
        (IntType(), ["not-in", "x", [2**40]], predicate(IntType(), Op.NOT_NULL)),
        (LongType(), ["<", "x", 2**63], predicate(LongType(), Op.NOT_NULL)),
        (LongType(), ["<", "x", 10**400], predicate(LongType(), Op.NOT_NULL)),
        (LongType(), ["in", "x", [1, -(10**400)]], predicate(LongType(), Op.EQ, 1)),
        (LongType(), [">", "x", Decimal("1e400")], FALSE),
        (DecimalType(4, 2), ["=", "x", "1.005"], FALSE),
        (
            DecimalType(4, 2),
            ["<", "x", "1.005"],
            predicate(DecimalType(4, 2), Op.LE, Decimal("1.00")),
        ),
        (
            DecimalType(4, 2),
            [">", "x", "-1.005"],
            predicate(DecimalType(4, 2), Op.GE, Decimal("-1.00")),
        ),
        (DecimalType(4, 2), [">", "x", "99.995"], FALSE),
        (DecimalType(4, 2), ["<", "x", "1e999999"], predicate(DecimalType(4, 2), Op.NOT_NULL)),
        (
            DecimalType(38, 38),
            ["!=", "x", -1],
            predicate(DecimalType(38, 38), Op.NOT_NULL),
        ),
        (
            DecimalType(38, 0),
            [">", "x", -(10**38)],
            predicate(DecimalType(38, 0), Op.NOT_NULL),
        ),
        (
            DecimalType(38, 38),
            ["=", "x", "-0.99999999999999999999999999999999999999"],
            predicate(
                DecimalType(38, 38), Op.EQ, Decimal("-0.99999999999999999999999999999999999999")
            ),
        ),
        (FloatType(), ["<", "x", 1e300], predicate(FloatType(), Op.LE, 3.4028234663852886e38)),
        (FloatType(), [">", "x", 1e300], predicate(FloatType(), Op.GE, math.inf)),
        (DoubleType(), ["=", "x", 10**400], FALSE),
        (DoubleType(), ["<", "x", "NaN"], FALSE),
        (DoubleType(), ["=", "x", "nan"], FALSE),
        (DoubleType(), ["!=", "x", "NaN"], predicate(DoubleType(), Op.NOT_NULL)),
        (DoubleType(), ["not", ["<", "x", "NaN"]], predicate(DoubleType(), Op.NOT_NULL)),
        (DoubleType(), ["in", "x", ["NaN", 1]], predicate(DoubleType(), Op.EQ, 1.0)),
        (DoubleType(), ["not-in", "x", ["NaN"]], predicate(DoubleType(), Op.NOT_NULL)),
        (DoubleType(), ["=", "x", "-0.0"], predicate(DoubleType(), Op.EQ, 0.0)),
        (TimestampType(), ["=", "x", "1970-01-01T00:00:00.000000001"], FALSE),
        (
            TimestampType(),
            ["<", "x", "1970-01-01T00:00:00.000000001"],
            predicate(TimestampType(), Op.LE, 0),
        ),
        (
            TimestampType(nanos=True),
            ["<", "x", "2300-01-01"],
            predicate(TimestampType(nanos=True), Op.NOT_NULL),
        ),
        (StringType(), ["in", "x", []], FALSE),
        (StringType(), ["not-in", "x", []], TRUE),
        (StringType(), ["starts-with", "x", ""], predicate(StringType(), Op.NOT_NULL)),
        (StringType(), ["not-starts-with", "x", ""], FALSE),
        (FixedType(1), ["starts-with", "x", "0000"], FALSE),
        (UnknownType(), ["is-null", "x"], TRUE),
        (UnknownType(), ["not-null", "x"], FALSE),
    ],
)
def test_what_no_value_can_change_is_folded(type_: Type, raw: Json, folded: BoundExpression):
    found = bound(type_, raw)

    assert found == folded
    assert repr(found) == repr(folded)


def test_a_required_column_needs_no_null_test():
    schema = schema_of(IntType(), required=True)

    assert bind(Predicate(Op.IS_NULL, "x"), schema) == FALSE
    assert bind(Predicate(Op.LT, "x", (2**40,)), schema) == TRUE


def test_a_required_field_of_an_optional_struct_may_still_be_null():
    schema = schema_of(StructType((NestedField(2, "y", IntType(), required=True),)))

    assert bind(Predicate(Op.IS_NULL, "x.y"), schema) == BoundPredicate(
        Op.IS_NULL, 2, "x.y", IntType()
    )


# --- not -----------------------------------------------------------------------------------------


def test_the_opposite_of_an_order_on_floats_takes_in_nan():
    assert bound(DoubleType(), ["not", ["<", "x", 5]]) == BoundOr(
        (predicate(DoubleType(), Op.GE, 5.0), predicate(DoubleType(), Op.IS_NAN))
    )
    assert bound(IntType(), ["not", ["<", "x", 5]]) == predicate(IntType(), Op.GE, 5)


def test_not_goes_through_and_and_or():
    raw = ["not", ["and", ["=", "x", 1], ["or", ["is-null", "x"], ["not", [">", "x", 5]]]]]

    assert bound(IntType(), raw) == BoundOr(
        (
            predicate(IntType(), Op.NE, 1),
            BoundAnd((predicate(IntType(), Op.NOT_NULL), predicate(IntType(), Op.GT, 5))),
        )
    )


def test_nulls_are_in_neither_a_filter_nor_its_opposite():
    for raw in (["!=", "x", 1], ["not-in", "x", [1]], ["not", ["=", "x", 1]]):
        assert evaluate(bound(IntType(), raw), {1: None}) is None
        assert evaluate(bound(IntType(), raw), {}) is None
    assert evaluate(bound(DoubleType(), ["not-nan", "x"]), {1: None}) is None


# --- shapes --------------------------------------------------------------------------------------


def test_equalities_on_one_column_become_a_set():
    raw = ["or", ["=", "x", 3], ["or", ["in", "x", [1, 2, 1]], ["is-null", "x"]], ["=", "x", 1]]

    assert bound(IntType(), raw) == BoundOr(
        (predicate(IntType(), Op.IN, 1, 2, 3), predicate(IntType(), Op.IS_NULL))
    )
    assert bound(IntType(), ["and", ["!=", "x", 3], ["!=", "x", 1]]) == predicate(
        IntType(), Op.NOT_IN, 1, 3
    )


def test_a_set_of_a_hundred_thousand_is_searched_not_walked():
    expression = Predicate(Op.IN, "x", tuple(range(200_000, 0, -2)))

    found = bind(expression, schema_of(IntType()))

    assert isinstance(found, BoundPredicate)
    assert found.literals[:2] == (2, 4)
    assert sum(is_true(found, {1: n}) for n in range(10_000)) == 4_999


def test_a_chain_of_any_length_is_one_level():
    chain: Expression = Predicate(Op.LT, "x", (0,))
    for n in range(20_000):
        chain = Or((Predicate(Op.EQ, "x", (n,)), chain))

    found = bind(chain, schema_of(IntType()))

    assert isinstance(found, BoundOr)
    assert [type(o) for o in found.operands] == [BoundPredicate, BoundPredicate]


def test_a_filter_as_deep_as_allowed_is_read_and_a_deeper_one_refused():
    def nested(levels: int) -> Expression:
        inner: Expression = Predicate(Op.EQ, "x", (1,))
        for level in range(levels):
            other = Predicate(Op.LT, "x", (level,))
            inner = Not(Or((inner, other)) if level % 2 else And((inner, other)))
        return inner

    found = bind(nested(MAX_DEPTH), schema_of(IntType()))
    assert isinstance(hash(found), int)
    assert isinstance(repr(found), str)
    assert found == bind(nested(MAX_DEPTH), schema_of(IntType()))
    with pytest.raises(BadFilter, match="nested more than"):
        bind(nested(5_000), schema_of(IntType()))


# --- columns -------------------------------------------------------------------------------------


def test_a_struct_a_list_and_a_variant_can_be_tested_for_null_only():
    for type_ in (StructType(()), ListType(2, IntType()), VariantType()):
        assert bound(type_, ["is-null", "x"]) == BoundNullTest(1, "x", type_, negated=False)
        assert bound(type_, ["not", ["is-null", "x"]]) == BoundNullTest(1, "x", type_, negated=True)
        with pytest.raises(BadFilter, match="only is-null and not-null"):
            bound(type_, ["=", "x", 1])
    with pytest.raises(BadFilter, match="geometry"):
        bound(GeometryType(), ["=", "x", "POINT (1 2)"])


@pytest.mark.parametrize("column", ["x.element", "x.element.y", "m.key", "m.value"])
def test_a_field_below_a_list_or_map_cannot_be_filtered(column: str):
    schema = Schema(
        (
            NestedField(1, "x", ListType(2, StructType((NestedField(3, "y", IntType()),)))),
            NestedField(4, "m", MapType(5, StringType(), 6, IntType())),
        )
    )

    with pytest.raises(BadFilter, match="inside a"):
        bind(Predicate(Op.IS_NULL, column), schema)


def test_operators_of_other_types_are_refused():
    with pytest.raises(BadFilter, match="float or double"):
        bound(IntType(), ["is-nan", "x"])
    with pytest.raises(BadFilter, match="string or binary"):
        bound(IntType(), ["starts-with", "x", "a"])
    with pytest.raises(BadFilter, match="string or binary"):
        bound(UuidType(), ["starts-with", "x", "00"])
    with pytest.raises(BadLiteral):
        bound(StringType(), ["starts-with", "x", 7])


def test_names_are_found_as_the_schema_finds_them():
    schema = Schema((NestedField(1, "Ab", IntType()), NestedField(2, "aB", IntType())))

    assert bind(Predicate(Op.EQ, "aB", (1,)), schema, case_sensitive=False) == BoundPredicate(
        Op.EQ, 2, "aB", IntType(), (1,)
    )
    with pytest.raises(AmbiguousColumn):
        bind(Predicate(Op.EQ, "ab", (1,)), schema, case_sensitive=False)
    with pytest.raises(UnknownColumn):
        bind(Predicate(Op.EQ, "ab", (1,)), schema)


@pytest.mark.parametrize(
    "wrong",
    [
        Predicate(Op.EQ, "x", ()),
        Predicate(Op.LT, "x", (1, 2)),
        Predicate(Op.IS_NULL, "x", (1,)),
    ],
)
def test_a_predicate_with_the_wrong_number_of_literals_is_refused(wrong: Predicate):
    with pytest.raises(BadFilter, match="literal"):
        bind(wrong, schema_of(IntType()))
