"""Evaluate a bound filter over Arrow columns.

SQL's three values: a result is true, false or null (unknown), and a row is kept when it is true.
Floats compare by IEEE: NaN is neither less, equal nor greater, and -0.0 equals 0.0.
`floeberg.protocol.expressions.evaluation` says the same a row at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from floeberg.protocol.arrow import arrow_type
from floeberg.protocol.expressions.model import (
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
    Op,
)
from floeberg.protocol.types import DoubleType, FloatType, Type, Value
from floeberg.worker.arrow import ArrowArray, BooleanArray
from floeberg.worker.deletes.equality import KeySet
from floeberg.worker.projection.conversion import decode_layout
from floeberg.worker.reading.masks import Mask, true_of

Columns: TypeAlias = Mapping[int, ArrowArray]
"""The filter's columns by field id, in the table's types, all of one length."""

Test: TypeAlias = Callable[[Columns, int], BooleanArray]
"""Gives three-valued results for columns of the given length."""

_COMPARISONS: dict[Op, Callable[[ArrowArray, ArrowArray], BooleanArray]] = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}


def is_true(test: Test, columns: Columns, length: int) -> Mask:
    """Return which rows `test` is true for."""
    return true_of(test(columns, length))


def compile_filter(expression: BoundExpression) -> Test:
    """Return `expression` as a function over columns; literals become Arrow values once, here."""
    match expression:
        case Constant(value):
            return lambda _, length: pa.repeat(value, length)
        case BoundPredicate():
            return _predicate(expression)
        case BoundNullTest(field_id=field_id, negated=negated):
            return _null_test(field_id, negated)
        case BoundAnd(operands):
            return _folded(pc.and_kleene, [compile_filter(o) for o in operands])
        case BoundOr(operands):
            return _folded(pc.or_kleene, [compile_filter(o) for o in operands])
        case _:
            assert_never(expression)


def _folded(combine: Callable[[ArrowArray, ArrowArray], BooleanArray], tests: list[Test]) -> Test:
    first, *others = tests

    def test(columns: Columns, length: int) -> BooleanArray:
        result = first(columns, length)
        for other in others:
            result = combine(result, other(columns, length))
        return result

    return test


def _null_test(field_id: int, negated: bool) -> Test:
    ask = pc.is_valid if negated else pc.is_null
    return lambda columns, _: ask(columns[field_id])


def _predicate(predicate: BoundPredicate) -> Test:
    field_id = predicate.field_id
    match predicate.op:
        case Op.IS_NULL | Op.NOT_NULL as op:
            return _null_test(field_id, negated=op is Op.NOT_NULL)
        case Op.IS_NAN:
            return lambda columns, _: pc.is_nan(columns[field_id])
        case Op.NOT_NAN:
            return lambda columns, _: pc.invert(pc.is_nan(columns[field_id]))
        case Op.IN | Op.NOT_IN as op:
            return _membership(predicate, negated=op is Op.NOT_IN)
        case Op.STARTS_WITH | Op.NOT_STARTS_WITH as op:
            return _prefix(predicate, negated=op is Op.NOT_STARTS_WITH)
        case op:
            compare = _COMPARISONS[op]
            literal = _literals(predicate.type, [predicate.literal])[0]
            return lambda columns, _: compare(decode_layout(columns[field_id]), literal)


def _membership(predicate: BoundPredicate, negated: bool) -> Test:
    field_id = predicate.field_id
    # not `is_in`, which would hash a hundred thousand literals for every chunk of rows
    wanted = KeySet([_literals(predicate.type, _hashable(predicate.type, predicate.literals))])

    def test(columns: Columns, _: int) -> BooleanArray:
        column = decode_layout(columns[field_id])
        found = pa.array(wanted.matches([column]))
        result = pc.invert(found) if negated else found
        if column.null_count:
            result = pc.if_else(column.is_valid(), result, pa.scalar(None, pa.bool_()))
        return result

    return test


def _hashable(type_: Type, literals: tuple[Value, ...]) -> list[Value]:
    """Return literals that mean to a set of keys, of bits, what they mean to IEEE equality."""
    if not isinstance(type_, FloatType | DoubleType):
        return list(literals)
    numbers = [float(v) for v in literals if not math.isnan(float(v))]
    return [*numbers, 0.0, -0.0] if 0.0 in numbers else list(numbers)


def _prefix(predicate: BoundPredicate, negated: bool) -> Test:
    field_id = predicate.field_id
    prefix: Any = predicate.literal  # text, or bytes for a binary column

    def test(columns: Columns, _: int) -> BooleanArray:
        found = pc.starts_with(columns[field_id], pattern=prefix)
        return pc.invert(found) if negated else found

    return test


def _literals(type_: Type, values: list[Value]) -> ArrowArray:
    target = arrow_type(type_)
    storage = target.storage_type if isinstance(target, pa.BaseExtensionType) else target
    return pa.array(values, storage)
