"""Filters over a small schema, with a plain evaluator of what they mean before they are bound.

The evaluator compares literals with values as numbers and text, and applies NOT as three-valued
logic defines it, so that it shares nothing with binding, which moves NOT and folds literals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from floeberg.protocol.expressions.model import (
    UNARY,
    And,
    Constant,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    RawLiteral,
)
from floeberg.protocol.partitioning import PartitionField, PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.protocol.transforms import (
    Bucket,
    Identity,
    Truncate,
    UnknownTransform,
    Void,
    Year,
    applies_to,
    apply,
)
from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LongType,
    NestedField,
    StringType,
    StructType,
    Value,
)
from tests.support.iceberg_values import values_of

SCHEMA = Schema(
    (
        NestedField(1, "i", IntType()),
        NestedField(2, "l", LongType(), required=True),
        NestedField(3, "f", FloatType()),
        NestedField(4, "d", DoubleType()),
        NestedField(5, "dec", DecimalType(5, 2)),
        NestedField(6, "s", StringType()),
        NestedField(7, "b", BooleanType()),
        NestedField(8, "bin", BinaryType()),
        NestedField(9, "st", StructType((NestedField(10, "x", IntType(), required=True),))),
    )
)

Row = dict[int, Value | None]

_whole = st.integers(-3, 3) | st.sampled_from([2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63])
_fractions = st.sampled_from([0.5, -0.5, 1.25, 1e300, -1e300])
_decimals = st.sampled_from(
    [Decimal("0.005"), Decimal("-1.001"), Decimal("999.99"), Decimal("1e6"), Decimal("-999.995")]
)
_specials = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0])
LITERALS: Mapping[str, st.SearchStrategy[Any]] = {
    "i": _whole | _fractions | _decimals,
    "l": _whole | _fractions | _decimals,
    "f": st.integers(-3, 3) | _fractions | _specials,
    "d": st.integers(-3, 3) | _fractions | _specials,
    "dec": st.integers(-3, 3) | _fractions | _decimals,
    "s": st.text("ab\ud7ff\U0001f9ca", max_size=3),
    "b": st.booleans(),
    "bin": st.binary(max_size=2),
    "st.x": _whole,
}
_COMPARISONS = [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE]


@st.composite
def predicates(draw: st.DrawFn, column: str | None = None) -> Predicate:
    """Draw a predicate that binds to `SCHEMA`."""
    name = column or draw(st.sampled_from(list(LITERALS)))
    ops = [*_COMPARISONS, Op.IN, Op.NOT_IN, Op.IS_NULL, Op.NOT_NULL]
    if name in ("f", "d"):
        ops += [Op.IS_NAN, Op.NOT_NAN]
    if name in ("s", "bin"):
        ops += [Op.STARTS_WITH, Op.NOT_STARTS_WITH]
    op = draw(st.sampled_from(ops))
    if op in UNARY:
        return Predicate(op, name)
    if op in (Op.IN, Op.NOT_IN):
        return Predicate(op, name, tuple(draw(st.lists(LITERALS[name], max_size=4))))
    return Predicate(op, name, (draw(LITERALS[name]),))


expressions: st.SearchStrategy[Expression] = st.recursive(
    predicates() | st.booleans().map(Constant),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(tuple).map(And),
        st.lists(inner, max_size=4).map(tuple).map(Or),
        inner.map(Not),
    ),
    max_leaves=8,
)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Draw a row of `SCHEMA`: nulls often, but in the required column."""
    row: Row = {}
    for field in SCHEMA.fields[:8]:
        values = near(field)
        row[field.field_id] = draw(values if field.required else values | st.none())
    row[10] = draw(near(NestedField(10, "x", IntType())) | st.none())
    return row


def near(field: NestedField) -> st.SearchStrategy[Any]:
    """Values of any size, and those that the literals hit."""
    match field.type:
        case IntType() | LongType():
            return values_of(field.type) | st.integers(-3, 3)
        case FloatType() | DoubleType():
            return values_of(field.type) | _specials | st.sampled_from([0.5, -0.5, 1.25])
        case DecimalType():
            return values_of(field.type) | st.sampled_from([Decimal("0.50"), Decimal("999.99")])
        case _:
            return values_of(field.type)


SPECS = [
    PartitionSpec(0, (PartitionField((1,), 1000, "i", Identity()),)),
    PartitionSpec(
        1,
        (
            PartitionField((1,), 1000, "i10", Truncate(10)),
            PartitionField((6,), 1001, "s1", Truncate(1)),
            PartitionField((4,), 1002, "d", Identity()),
        ),
    ),
    PartitionSpec(
        2,
        (
            PartitionField((2,), 1000, "l4", Bucket(4)),
            PartitionField((2,), 1001, "l2", Truncate(2)),
            PartitionField((5,), 1002, "dec", Truncate(50)),
            PartitionField((8,), 1003, "bin", Bucket(3)),
            PartitionField((10,), 1004, "x", Identity()),
        ),
    ),
    PartitionSpec(
        3,
        (
            PartitionField((1,), 1000, "gone", Void()),
            PartitionField((2,), 1001, "z", UnknownTransform("zorder")),
            PartitionField((99,), 1002, "dropped", Identity()),
            PartitionField((1, 2), 1003, "several", Bucket(4)),
            PartitionField((9,), 1004, "struct", Identity()),
            PartitionField((4,), 1005, "mismatch", Year()),
        ),
    ),
]


def partition_of(spec: PartitionSpec, row: Row) -> dict[int, Value | None]:
    """Return the partition tuple that a row of `SCHEMA` is stored under."""
    partition: dict[int, Value | None] = {}
    for field in spec.fields:
        source = SCHEMA.find(field.source_id)
        known = source is not None and len(field.source_ids) == 1
        if known and source is not None and applies_to(field.transform, source.type):
            partition[field.field_id] = apply(
                field.transform, source.type, row.get(field.source_id)
            )
        else:
            partition[field.field_id] = None
    return partition


def meaning(expression: Expression, row: Mapping[int, Value | None]) -> bool | None:
    """Return what `expression` says of a row of `SCHEMA`; None is unknown."""
    match expression:
        case Constant(value):
            return value
        case Not(operand):
            inner = meaning(operand, row)
            return None if inner is None else not inner
        case And(operands):
            outcomes = [meaning(o, row) for o in operands]
            return False if False in outcomes else None if None in outcomes else True
        case Or(operands):
            outcomes = [meaning(o, row) for o in operands]
            return True if True in outcomes else None if None in outcomes else False
        case Predicate(op, column, literals):
            return _leaf(op, row.get(SCHEMA.lookup(column).field_id), literals)


def _leaf(op: Op, value: Value | None, literals: tuple[RawLiteral, ...]) -> bool | None:
    if op is Op.IS_NULL:
        return value is None
    if op is Op.NOT_NULL:
        return value is not None
    if not literals and op in (Op.IN, Op.NOT_IN):
        return op is Op.NOT_IN
    if value is None:
        return None
    compared: Any = value
    first: Any = literals[0] if literals else None
    match op:
        case Op.IS_NAN:
            return math.isnan(compared)
        case Op.NOT_NAN:
            return not math.isnan(compared)
        case Op.IN:
            return any(compared == item for item in literals)
        case Op.NOT_IN:
            return all(compared != item for item in literals)
        case Op.EQ:
            return bool(compared == first)
        case Op.NE:
            return bool(compared != first)
        case Op.LT:
            return bool(compared < first)
        case Op.LE:
            return bool(compared <= first)
        case Op.GT:
            return bool(compared > first)
        case Op.GE:
            return bool(compared >= first)
        case Op.STARTS_WITH:
            return bool(compared.startswith(first))
        case Op.NOT_STARTS_WITH:
            return not compared.startswith(first)
    raise AssertionError(op)
