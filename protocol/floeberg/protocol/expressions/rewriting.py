"""Build bound expressions in their simplest form.

`conjunction` and `disjunction` flatten what they are given, fold constants, and gather equalities
on one field into a set, so that a chain of ten thousand `or`s becomes one `in`. None of it changes
what an expression says of any row, unknown included, but for one thing: a constant may take the
place of an unknown that could not have made the whole true.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from floeberg.protocol.expressions.model import (
    FALSE,
    TRUE,
    BoundAnd,
    BoundExpression,
    BoundOr,
    BoundPredicate,
    Constant,
    Op,
)
from floeberg.protocol.types import Value

NEGATED: dict[Op, Op] = {
    Op.EQ: Op.NE,
    Op.NE: Op.EQ,
    Op.LT: Op.GE,
    Op.GE: Op.LT,
    Op.LE: Op.GT,
    Op.GT: Op.LE,
    Op.IN: Op.NOT_IN,
    Op.NOT_IN: Op.IN,
    Op.STARTS_WITH: Op.NOT_STARTS_WITH,
    Op.NOT_STARTS_WITH: Op.STARTS_WITH,
    Op.IS_NULL: Op.NOT_NULL,
    Op.NOT_NULL: Op.IS_NULL,
    Op.IS_NAN: Op.NOT_NAN,
    Op.NOT_NAN: Op.IS_NAN,
}
"""The operator that is true where the other is false, and unknown where it is unknown: all but
order on NaN."""

ORDERINGS = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})


def conjunction(operands: Iterable[BoundExpression]) -> BoundExpression:
    """Return the `and` of the operands: TRUE when there are none."""
    flat: list[BoundExpression] = []
    for operand in operands:
        match operand:
            case Constant(value):
                if not value:
                    return FALSE
            case BoundAnd(inner):
                flat.extend(inner)
            case _:
                flat.append(operand)
    gathered = _gather(flat, Op.NE, Op.NOT_IN)
    if not gathered:
        return TRUE
    return gathered[0] if len(gathered) == 1 else BoundAnd(tuple(gathered))


def disjunction(operands: Iterable[BoundExpression]) -> BoundExpression:
    """Return the `or` of the operands: FALSE when there are none."""
    flat: list[BoundExpression] = []
    for operand in operands:
        match operand:
            case Constant(value):
                if value:
                    return TRUE
            case BoundOr(inner):
                flat.extend(inner)
            case _:
                flat.append(operand)
    gathered = _gather(flat, Op.EQ, Op.IN)
    if not gathered:
        return FALSE
    return gathered[0] if len(gathered) == 1 else BoundOr(tuple(gathered))


def membership(
    field: BoundPredicate, literals: Iterable[Value], *, negated: bool
) -> BoundExpression:
    """Return `in` (or not-in) on `field`'s column, as a comparison when one literal is left.

    There must be a literal; `field` lends id, name and type.
    """
    distinct = tuple(sorted(set(literals)))
    if len(distinct) == 1:
        return replace(field, op=Op.NE if negated else Op.EQ, literals=distinct)
    return replace(field, op=Op.NOT_IN if negated else Op.IN, literals=distinct)


def only_about(bound: BoundExpression, columns: frozenset[int]) -> BoundExpression:
    """Return what `bound` says of `columns`: true wherever `bound` is, whatever others hold."""
    match bound:
        case BoundAnd(operands):
            return conjunction(only_about(operand, columns) for operand in operands)
        case BoundOr(operands):
            return disjunction(only_about(operand, columns) for operand in operands)
        case BoundPredicate() if bound.field_id in columns:
            return bound
        case Constant():
            return bound
        case _:
            return TRUE


def _gather(operands: list[BoundExpression], single: Op, several: Op) -> list[BoundExpression]:
    """Join the predicates `single` and `several` on each field into one, where the first of them
    stood."""
    literals: dict[int, list[Value]] = {}
    for operand in operands:
        if isinstance(operand, BoundPredicate) and operand.op in (single, several):
            literals.setdefault(operand.field_id, []).extend(operand.literals)
    joined: list[BoundExpression] = []
    for operand in operands:
        if isinstance(operand, BoundPredicate) and operand.op in (single, several):
            if (found := literals.pop(operand.field_id, None)) is not None:
                joined.append(membership(operand, found, negated=several is Op.NOT_IN))
        else:
            joined.append(operand)
    return joined
