from __future__ import annotations

import pytest
from hypothesis import given

from floeberg.protocol.errors import BadFilter
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.evaluation import is_true
from floeberg.protocol.expressions.json_form import expression_from_json, expression_to_json
from floeberg.protocol.expressions.model import TRUE, And, Expression, Not, Op, Or, Predicate
from floeberg.protocol.expressions.two_valued import keep_nulls_of_negations
from floeberg.protocol.types import Json, Value
from tests.support import filter_strategies as filters

_TRUE_OF_NULL = (Op.NE, Op.NOT_IN, Op.NOT_STARTS_WITH, Op.NOT_NAN)


def two_valued(expression: Expression, row: filters.Row, negated: bool = False) -> bool:
    """Return what Iceberg's evaluator says of a row: not goes inward, then null is like any
    value."""
    match expression:
        case Not(operand):
            return two_valued(operand, row, not negated)
        case And(operands) | Or(operands):
            outcomes = [two_valued(o, row, negated) for o in operands]
            return all(outcomes) if isinstance(expression, And) is not negated else any(outcomes)
        case Predicate(op, column):
            value: Value | None = row.get(filters.SCHEMA.lookup(column).field_id)
            if value is None and op not in (Op.IS_NULL, Op.NOT_NULL):
                return (op in _TRUE_OF_NULL) is not negated and _has_set_opposite(op, negated)
            return (filters.meaning(expression, row) is True) is not negated
        case _:
            return (filters.meaning(expression, row) is True) is not negated


def _has_set_opposite(op: Op, negated: bool) -> bool:
    """The opposite of an order is an order, and false of null too."""
    return not (negated and op in (Op.LT, Op.LE, Op.GT, Op.GE))


@given(filters.expressions, filters.rows())
def test_the_widened_filter_returns_what_either_reading_does(
    expression: Expression, row: filters.Row
):
    widened = bind(keep_nulls_of_negations(expression), filters.SCHEMA)

    if two_valued(expression, row) or filters.meaning(expression, row) is True:
        assert is_true(widened, row)


@pytest.mark.parametrize(
    ("raw", "widened"),
    [
        (["!=", "a", 1], ["or", ["!=", "a", 1], ["is-null", "a"]]),
        (["not", ["=", "a", 1]], ["or", ["not", ["=", "a", 1]], ["is-null", "a"]]),
        (["not", ["!=", "a", 1]], ["not", ["!=", "a", 1]]),
        (["not", ["<", "a", 1]], ["not", ["<", "a", 1]]),
        (["=", "a", 1], ["=", "a", 1]),
        (
            ["not", ["and", ["=", "a", 1], ["true"]]],
            ["or", ["or", ["not", ["=", "a", 1]], ["is-null", "a"]], ["false"]],
        ),
    ],
)
def test_only_negations_take_in_nulls(raw: Json, widened: Json):
    found = expression_to_json(keep_nulls_of_negations(expression_from_json(raw)))

    assert found == widened


def test_a_filter_nested_too_deep_is_refused():
    deep: Expression = TRUE
    for level in range(1000):
        deep = And((deep, TRUE)) if level % 2 else Or((deep, TRUE))

    with pytest.raises(BadFilter, match="deep"):
        keep_nulls_of_negations(deep)
