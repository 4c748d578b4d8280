"""Widen a filter to what engines with Iceberg's own, two-valued evaluation return.

There a comparison with null is false, and its negation true: `x != 1` returns the rows whose `x` is
null. floeberg's rule is SQL's (see `expressions.evaluation`), under which it does not. A plan that
another engine carries out must keep the files that the engine would find rows in, so it is made
with the widened filter.
"""

from __future__ import annotations

from floeberg.protocol.errors import BadFilter
from floeberg.protocol.expressions.model import (
    MAX_DEPTH,
    And,
    Constant,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
)
from floeberg.protocol.expressions.rewriting import NEGATED

_TRUE_OF_NULL = frozenset({Op.NE, Op.NOT_IN, Op.NOT_STARTS_WITH, Op.NOT_NAN})


def keep_nulls_of_negations(expression: Expression) -> Expression:
    """Return a filter that is true wherever `expression` is by either reading of null.

    Each predicate that, with the nots around it, amounts to `!=`, not-in, not-starts-with or
    not-nan takes in the nulls of its column.

    >>> from floeberg.protocol.expressions.text import format_filter, parse_filter
    >>> format_filter(keep_nulls_of_negations(parse_filter("a != 1 AND b = 2")))
    '(a != 1 OR a IS NULL) AND b = 2'
    """
    return _widened(expression, negated=False, depth=0)


def _widened(expression: Expression, negated: bool, depth: int) -> Expression:
    while isinstance(expression, Not):
        expression, negated = expression.operand, not negated
    match expression:
        case Constant(value):
            return Constant(value is not negated)
        case Predicate(op, column):
            kept: Expression = Not(expression) if negated else expression
            if (NEGATED[op] if negated else op) in _TRUE_OF_NULL:
                return Or((kept, Predicate(Op.IS_NULL, column)))
            return kept
        case And(operands) | Or(operands):
            if depth >= MAX_DEPTH:
                raise BadFilter(f"the filter is nested more than {MAX_DEPTH} levels deep")
            widened: list[Expression] = []
            for operand in operands:
                widened.append(_widened(operand, negated, depth + 1))
            is_and = isinstance(expression, And) is not negated
            return And(tuple(widened)) if is_and else Or(tuple(widened))
