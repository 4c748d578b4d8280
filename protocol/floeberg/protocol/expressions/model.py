"""What a filter is made of: predicates on columns, joined by and, or and not.

`Expression` is a filter as a caller writes it: columns by name, literals as they came. Binding it
to a schema (`expressions.binding`) gives a `BoundExpression`: fields by id, literals typed. Both
are frozen values that keep no state, so they may be shared between threads.

And and Or take any number of operands, so that a chain of ten thousand is one wide node and not a
deep one. The rule for null and NaN is SQL's: see `expressions.evaluation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

from floeberg.protocol.types import PrimitiveType, Type, Value

RawLiteral: TypeAlias = bool | int | float | Decimal | str | bytes
"""A literal as a caller gave it; what it means is decided by the column that it is compared
with. A `Decimal` is a number with more digits than a float keeps."""

MAX_DEPTH = 100
"""How deep and, or and not may alternate; a deeper filter is refused, and no stack overflows."""


class Op(StrEnum):
    """The operators of predicates, by the names of the JSON form."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    IN = "in"
    NOT_IN = "not-in"
    STARTS_WITH = "starts-with"
    NOT_STARTS_WITH = "not-starts-with"
    IS_NULL = "is-null"
    NOT_NULL = "not-null"
    IS_NAN = "is-nan"
    NOT_NAN = "not-nan"


UNARY = frozenset({Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN})
SETS = frozenset({Op.IN, Op.NOT_IN})


@dataclass(frozen=True, slots=True)
class Constant:
    """A filter that is true, or not true, of every row."""

    value: bool


TRUE = Constant(True)
FALSE = Constant(False)


@dataclass(frozen=True, slots=True)
class Predicate:
    """An operator on a named column: no literal for unary operators, one for comparisons, any
    number for sets."""

    op: Op
    column: str
    literals: tuple[RawLiteral, ...] = ()


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression


Expression: TypeAlias = Constant | Predicate | And | Or | Not


@dataclass(frozen=True, slots=True)
class BoundPredicate:
    """An operator on the field with `field_id`, its literals typed for `type` and never null.

    The same class stands for predicates on partition values: then `field_id` is the partition
    field's. `name` is for messages only. Literals of a set operator are distinct and ascending, so
    that they can be searched. A float literal is never NaN, and never -0.0: binding resolves NaN,
    and 0.0 equals it.
    """

    op: Op
    field_id: int
    name: str
    type: PrimitiveType
    literals: tuple[Value, ...] = ()

    @property
    def literal(self) -> Value:
        """The only literal of a comparison."""
        return self.literals[0]


@dataclass(frozen=True, slots=True)
class BoundAnd:
    operands: tuple[BoundExpression, ...]


@dataclass(frozen=True, slots=True)
class BoundOr:
    operands: tuple[BoundExpression, ...]


@dataclass(frozen=True, slots=True)
class BoundNullTest:
    """is-null (or, `negated`, not-null) on a field that is not primitive: struct, list, map or
    variant."""

    field_id: int
    name: str
    type: Type
    negated: bool


BoundExpression: TypeAlias = Constant | BoundPredicate | BoundNullTest | BoundAnd | BoundOr
"""A bound filter holds no `Not`: binding pushes it down to the predicates
(`expressions.binding`)."""


def predicates(expression: BoundExpression) -> Iterator[BoundPredicate | BoundNullTest]:
    """Yield the leaves of a bound expression, left to right."""
    match expression:
        case BoundPredicate() | BoundNullTest():
            yield expression
        case BoundAnd(operands) | BoundOr(operands):
            for operand in operands:
                yield from predicates(operand)
        case Constant():
            return


def field_ids(expression: BoundExpression) -> frozenset[int]:
    """Return the ids of every field that the expression looks at."""
    return frozenset(p.field_id for p in predicates(expression))
