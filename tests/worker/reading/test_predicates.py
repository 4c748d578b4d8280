"""Filters over columns say what the plain evaluator says of each row."""

from __future__ import annotations

import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.arrow import arrow_type
from floeberg.protocol.expressions import evaluation
from floeberg.protocol.expressions.model import (
    SETS,
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
    Op,
)
from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    ListType,
    LongType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    UuidType,
)
from floeberg.worker.projection.constants import array_of
from floeberg.worker.reading.predicates import compile_filter, is_true

FLOATS = st.sampled_from([0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan])
# few distinct values each, so that literals meet values
VALUES: dict[PrimitiveType, st.SearchStrategy[Any]] = {
    BooleanType(): st.booleans(),
    IntType(): st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1]),
    LongType(): st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]),
    FloatType(): FLOATS,
    DoubleType(): FLOATS,
    DecimalType(38, 2): st.sampled_from([Decimal("-1.00"), Decimal("0.00"), Decimal(9**30)]),
    DateType(): st.sampled_from([-40_000, -1, 0, 1]),
    TimeType(): st.sampled_from([0, 1, 86_399_999_999]),
    TimestampType(): st.sampled_from([-(2**62), -1, 0, 1]),
    TimestampType(zoned=True): st.sampled_from([-1, 0, 2**62]),
    TimestampType(zoned=True, nanos=True): st.sampled_from([-(2**63), -1, 2**63 - 1]),
    StringType(): st.sampled_from(["", "a", "ab", "b", "é", "\U0001f9ca"]),
    UuidType(): st.sampled_from([bytes(16), b"\xff" * 16, uuid.UUID(int=5).bytes]),
    FixedType(2): st.sampled_from([b"\x00\x00", b"\x7fa", b"\xff\x00"]),
    BinaryType(): st.sampled_from([b"", b"\x00", b"\x7f", b"\xff", b"\xff\x00"]),
}
TYPES = tuple(VALUES)
COMPARISONS = [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE]


@st.composite
def predicates(draw: st.DrawFn) -> BoundExpression:
    field_id = draw(st.integers(0, len(TYPES) - 1))
    type_ = TYPES[field_id]
    ops = [*COMPARISONS, Op.IN, Op.NOT_IN, Op.IS_NULL, Op.NOT_NULL]
    if isinstance(type_, FloatType | DoubleType):
        ops += [Op.IS_NAN, Op.NOT_NAN]
    if isinstance(type_, StringType):
        ops += [Op.STARTS_WITH, Op.NOT_STARTS_WITH]
    op = draw(st.sampled_from(ops))
    values = VALUES[type_].filter(lambda v: v == v)
    if op in SETS:
        literals = sorted(draw(st.sets(values, max_size=4)))
    elif op in (Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN):
        literals = []
    else:
        literals = [draw(values)]
    return BoundPredicate(op, field_id, f"f{field_id}", type_, tuple(literals))


def operands(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return several.map(BoundAnd) | several.map(BoundOr)


FILTERS = st.recursive(st.booleans().map(Constant) | predicates(), operands, max_leaves=6)
ROWS = st.lists(
    st.fixed_dictionaries({i: st.none() | VALUES[t] for i, t in enumerate(TYPES)}), max_size=6
)


@settings(max_examples=400)
@given(FILTERS, ROWS)
def test_agrees_with_the_plain_evaluator(
    expression: BoundExpression, rows: list[dict[int, Any]]
) -> None:
    columns = {i: array_of([row[i] for row in rows], t, arrow_type(t)) for i, t in enumerate(TYPES)}

    kept = is_true(compile_filter(expression), columns, len(rows))

    assert kept.tolist() == [evaluation.is_true(expression, row) for row in rows]


def test_unknown_is_not_true_and_its_negation_neither() -> None:
    columns = {1: pa.array([1, None])}
    equal = BoundPredicate(Op.EQ, 1, "x", LongType(), (2,))
    unequal = BoundPredicate(Op.NE, 1, "x", LongType(), (2,))

    assert is_true(compile_filter(equal), columns, 2).tolist() == [False, False]
    assert is_true(compile_filter(unequal), columns, 2).tolist() == [True, False]


def test_tests_nested_columns_for_null() -> None:
    structs = pa.array([{"a": None}, None], pa.struct([("a", pa.int64())]))
    is_null = BoundNullTest(1, "s", StructType(()), negated=False)
    not_null = BoundNullTest(2, "l", ListType(3, IntType()), negated=True)

    assert is_true(compile_filter(is_null), {1: structs}, 2).tolist() == [False, True]
    assert is_true(compile_filter(not_null), {2: pa.array([[], None])}, 2).tolist() == [True, False]


def test_in_takes_a_hundred_thousand_values() -> None:
    literals = tuple(range(0, 300_000, 3))
    column = np.arange(1_000)

    member = BoundPredicate(Op.IN, 1, "x", LongType(), literals)
    kept = is_true(compile_filter(member), {1: pa.array(column)}, len(column))

    assert np.array_equal(kept, column % 3 == 0)


def test_a_chain_of_ten_thousand_operands_is_evaluated() -> None:
    equals = tuple(BoundPredicate(Op.EQ, 1, "x", LongType(), (i,)) for i in range(10_000))

    kept = is_true(compile_filter(BoundOr(equals)), {1: pa.array([9_999, 10_000])}, 2)

    assert kept.tolist() == [True, False]


@pytest.mark.parametrize("op", [Op.IN, Op.NOT_IN])
def test_zeros_are_equal_and_nan_is_in_no_set(op: Op) -> None:
    column = pa.array([0.0, -0.0, math.nan, None, 1.0])
    predicate = BoundPredicate(op, 1, "x", DoubleType(), (0.0,))

    kept = is_true(compile_filter(predicate), {1: column}, 5).tolist()

    assert kept == (
        [True, True, False, False, False] if op is Op.IN else [False, False, True, False, True]
    )
