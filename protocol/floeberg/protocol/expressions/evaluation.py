"""Evaluate a filter on one row, by SQL's three-valued logic.

A comparison with null is unknown, and so are in, starts-with, is-nan and their opposites; `and` and
`or` are Kleene's. A row is returned when the filter is true of it. NaN is not equal to, less or
greater than anything, so `!=` and not-in are true of it; -0.0 equals 0.0. Text compares by code
point, which is the order of its UTF-8; bytes compare unsigned. This is the plain reading that
pruning and the vectorised filters must agree with.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

from floeberg.protocol.expressions.model import (
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
    Op,
)
from floeberg.protocol.types import Value


def evaluate(bound: BoundExpression, row: Mapping[int, object]) -> bool | None:
    """Return whether `row` satisfies `bound`; None is unknown.

    `row` maps field ids to values (`Value`, or for a null test anything that is not None); a
    missing id is null. The same call evaluates a projected filter on a partition tuple.
    """
    match bound:
        case Constant(value):
            return value
        case BoundPredicate(op=op, field_id=field_id):
            return _holds(bound, op, row.get(field_id))
        case BoundNullTest():
            return (row.get(bound.field_id) is None) is not bound.negated
        case BoundAnd(operands):
            result: bool | None = True
            for operand in operands:
                outcome = evaluate(operand, row)
                if outcome is False:
                    return False
                if outcome is None:
                    result = None
            return result
        case BoundOr(operands):
            result = False
            for operand in operands:
                outcome = evaluate(operand, row)
                if outcome is True:
                    return True
                if outcome is None:
                    result = None
            return result


def is_true(bound: BoundExpression, row: Mapping[int, object]) -> bool:
    """Say whether `row` is returned: unknown is not true."""
    return evaluate(bound, row) is True


def contains(literals: tuple[Value, ...], value: Value) -> bool:
    """Say whether `value` is among the ascending `literals`, in the time of a binary search."""
    place = bisect_left(literals, value)  # all are of one type
    return place < len(literals) and literals[place] == value


def _holds(predicate: BoundPredicate, op: Op, value: Any) -> bool | None:
    # Any: the value has the predicate's type, as its literals have
    if op is Op.IS_NULL:
        return value is None
    if op is Op.NOT_NULL:
        return value is not None
    if value is None:
        return None
    match op:
        case Op.IS_NAN:
            return math.isnan(value)
        case Op.NOT_NAN:
            return not math.isnan(value)
        case Op.IN:
            return contains(predicate.literals, value)
        case Op.NOT_IN:
            return not contains(predicate.literals, value)
    literal: Any = predicate.literals[0]
    match op:
        case Op.EQ:
            return bool(value == literal)
        case Op.NE:
            return bool(value != literal)
        case Op.LT:
            return bool(value < literal)
        case Op.LE:
            return bool(value <= literal)
        case Op.GT:
            return bool(value > literal)
        case Op.GE:
            return bool(value >= literal)
        case Op.STARTS_WITH:
            return bool(value.startswith(literal))
        case Op.NOT_STARTS_WITH:
            return not value.startswith(literal)
    raise AssertionError(op)
