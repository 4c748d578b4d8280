from __future__ import annotations

import datetime
import json
import uuid
from decimal import Decimal

import pytest
from hypothesis import given

from floeberg.protocol.errors import BadFilter
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.json_form import (
    MalformedExpression,
    bound_from_json,
    bound_to_json,
    bound_to_named_json,
    expression_from_json,
    expression_to_json,
    parse_json_text,
)
from floeberg.protocol.expressions.model import (
    FALSE,
    TRUE,
    And,
    BoundExpression,
    BoundNullTest,
    BoundPredicate,
    Constant,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
)
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    DecimalType,
    FixedType,
    IntType,
    Json,
    ListType,
    NestedField,
    PrimitiveType,
    Value,
)
from tests.support import filter_strategies as filters
from tests.support.iceberg_values import typed_values


def test_every_form_is_read():
    raw = [
        "and",
        ["=", "a.b", "x"],
        ["or", ["in", "c", [1, 2]], ["not", ["is-null", "d"]]],
        ["not-starts-with", "e", "p"],
        ["true"],
    ]

    assert expression_from_json(raw) == And(
        (
            Predicate(Op.EQ, "a.b", ("x",)),
            Or((Predicate(Op.IN, "c", (1, 2)), Not(Predicate(Op.IS_NULL, "d")))),
            Predicate(Op.NOT_STARTS_WITH, "e", ("p",)),
            TRUE,
        )
    )


@given(filters.expressions)
def test_a_filter_means_the_same_after_json_text(expression: Expression):
    text = json.dumps(expression_to_json(expression), allow_nan=False)

    assert bind(parse_json_text(text), filters.SCHEMA) == bind(expression, filters.SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        "x = 1",
        [],
        [1],
        [["=", "x", 1]],
        ["~", "x", 1],
        ["==", "x", 1],
        ["=", "x"],
        ["=", "x", 1, 2],
        ["=", 1, "x"],
        ["=", "x", None],
        ["=", "x", [1]],
        ["=", "x", {"a": 1}],
        ["in", "x", 1],
        ["in", "x", "abc"],
        ["in", "x", [None]],
        ["is-null", "x", 1],
        ["is-null"],
        ["not"],
        ["not", ["true"], ["true"]],
        ["and", "x"],
        ["and", ["true"], None],
        ["true", 1],
        {"op": "="},
    ],
)
def test_another_shape_is_refused(wrong: Json):
    with pytest.raises(BadFilter):
        expression_from_json(wrong)


def test_empty_and_single_joins_are_read_as_logic_has_them():
    schema = Schema((NestedField(1, "x", IntType()),))

    assert bind(expression_from_json(["and"]), schema) == TRUE
    assert bind(expression_from_json(["or"]), schema) == FALSE
    assert bind(expression_from_json(["and", ["=", "x", 1]]), schema) == BoundPredicate(
        Op.EQ, 1, "x", IntType(), (1,)
    )


def test_a_hint_names_the_right_operator():
    with pytest.raises(BadFilter, match="write '!='"):
        expression_from_json(["<>", "x", 1])


def test_pythons_own_dates_and_uuids_are_literals():
    zone = datetime.timezone(datetime.timedelta(hours=1))
    literals = [
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (datetime.datetime(2024, 1, 2, 3, tzinfo=zone), "2024-01-02T03:00:00+01:00"),
        (datetime.time(3), "03:00:00"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    ]
    for given_, text in literals:
        assert expression_from_json(("=", "x", given_)) == Predicate(Op.EQ, "x", (text,))


def test_nesting_is_capped_and_chains_are_not():
    chain: Json = ["=", "x", 0]
    for n in range(10_000):
        chain = ["not", ["not", ["or", ["=", "x", n], chain]]] if n % 2 else ["or", chain]
    with pytest.raises(BadFilter, match="nested"):
        expression_from_json(chain)

    flat: Json = ["=", "x", 0]
    for n in range(10_000):
        flat = ["or", ["=", "x", n], flat]
    parsed = expression_from_json(flat)
    assert isinstance(parsed, Or)
    assert len(parsed.operands) == 10_001

    with pytest.raises(BadFilter):
        parse_json_text('["not",' * 100_000 + '["true"]' + "]" * 100_000)


def test_numbers_in_json_text_keep_their_digits():
    parsed = parse_json_text('["in", "x", [12345678901234567890123.25, 0.10, 1e2, 7]]')

    assert isinstance(parsed, Predicate)
    assert repr(parsed.literals) == repr((Decimal("12345678901234567890123.25"), 0.1, 100.0, 7))


def test_decimals_that_json_has_no_number_for_become_text():
    literals = [Decimal(text) for text in ("NaN", "-Infinity", "1E+400", "1.5", "7.00")]

    written = [expression_to_json(Predicate(Op.EQ, "x", (literal,)))[2] for literal in literals]

    assert repr(written) == repr(["NaN", "-Infinity", "1E+400", 1.5, 7])


@pytest.mark.parametrize("text", ['["=", "x", NaN]', "[", '["=", "x", 1' + "0" * 5000 + "]"])
def test_json_text_that_cannot_be_read_is_refused(text: str):
    with pytest.raises(BadFilter, match="not JSON"):
        parse_json_text(text)


# --- bound ---------------------------------------------------------------------------------------


def through_the_wire(bound: BoundExpression, schema: Schema) -> BoundExpression:
    return bound_from_json(json.loads(json.dumps(bound_to_json(bound), allow_nan=False)), schema)


@given(filters.expressions)
def test_a_bound_filter_survives_the_wire(expression: Expression):
    bound = bind(expression, filters.SCHEMA)

    assert through_the_wire(bound, filters.SCHEMA) == bound


@given(typed_values)
def test_every_literal_survives_the_wire_exactly(typed: tuple[PrimitiveType, Value]):
    type_, value = typed
    if value != value:
        return  # NaN is no literal of a bound filter
    schema = Schema((NestedField(7, "x", type_),))
    bound = BoundPredicate(Op.EQ, 7, "x", type_, (value,))

    assert repr(through_the_wire(bound, schema)) == repr(bound)


def test_a_prefix_of_a_fixed_column_may_be_shorter():
    schema = Schema((NestedField(1, "x", FixedType(4)),))
    bound = bind(Predicate(Op.STARTS_WITH, "x", ("00ff",)), schema)

    assert bound_to_json(bound) == ["starts-with", 1, "00ff"]
    assert through_the_wire(bound, schema) == bound


@given(filters.expressions)
def test_a_bound_filter_by_names_binds_to_itself(expression: Expression):
    bound = bind(expression, filters.SCHEMA)

    named = json.loads(json.dumps(bound_to_named_json(bound, filters.SCHEMA), allow_nan=False))

    assert bind(expression_from_json(named), filters.SCHEMA) == bound


def test_the_named_form_is_plain_to_read():
    tags = NestedField(2, "tags", ListType(3, IntType()))
    schema = Schema((NestedField(1, "price", DecimalType(9, 2)), tags))
    bound = bind(expression_from_json(["and", [">", "price", 5], ["not-null", "tags"]]), schema)

    assert bound_to_named_json(bound, schema) == [
        "and",
        [">", "price", "5.00"],
        ["not-null", "tags"],
    ]
    assert bound_to_named_json(TRUE, schema) == ["true"]


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        ["maybe"],
        ["true", 1],
        ["and"],
        ["and", ["true"]],
        ["=", 99, 1],
        ["=", "i", 1],
        ["=", True, 1],
        ["=", 1],
        ["=", 1, None],
        ["=", 1, "x"],
        ["=", 1, 2**31],
        ["=", 1, 1, 1],
        ["=", 4, "NaN"],
        ["in", 1, []],
        ["in", 1, 1],
        ["is-null", 1, 1],
        ["=", 9, {"10": 1}],
        ["not", ["=", 1, 1]],
    ],
)
def test_bound_json_of_another_shape_is_refused(wrong: Json):
    with pytest.raises(MalformedExpression):
        bound_from_json(wrong, filters.SCHEMA)


def test_bound_json_nested_too_deep_is_refused():
    raw: Json = ["true"]
    for n in range(900):
        raw = ["or" if n % 2 else "and", ["is-null", 1], raw]

    with pytest.raises(MalformedExpression, match="deep"):
        bound_from_json(raw, filters.SCHEMA)


def test_null_tests_on_structs_survive_the_wire():
    bound = BoundNullTest(9, "st", filters.SCHEMA.fields[8].type, negated=True)

    assert through_the_wire(bound, filters.SCHEMA) == bound
    assert through_the_wire(Constant(False), filters.SCHEMA) == FALSE
