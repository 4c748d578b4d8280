"""Conditions of SQL as filters.

`exact_filter` is true of just the rows that the condition is true of, by SQL's logic of three
values and IEEE's rule for NaN; there is none for a condition that floeberg's filters can't say.
`implied_filter` is true wherever the condition is, and perhaps elsewhere: it prunes, and the engine
decides.

NOT is worked in from the outside, so that each part is asked when it is true, or when it is false;
what is unknown is neither, and the answers join by AND and OR alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.protocol.expressions.model import (
    FALSE,
    TRUE,
    And,
    Expression,
    Op,
    Or,
    Predicate,
)
from floeberg.protocol.expressions.model import (
    Constant as Always,
)
from floeberg.protocol.types import BooleanType, DoubleType, FloatType, StringType
from floeberg.server.sql.columns import Column
from floeberg.server.sql.comparisons import (
    FLIPPED,
    OPPOSITE,
    can_be_listed,
    compare,
    compare_day,
    is_nan,
)
from floeberg.server.sql.constant_expressions import constant_of
from floeberg.server.sql.constants import Constant, Null, Number, Text, Truth
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.types import is_cast, is_type

_OPERATORS: dict[type[Node], Op] = {
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}
_READ = frozenset({"this", "expression", "expressions", "low", "high", "negate"})
"""The parts of a node that are looked at here; one that has others says more than is understood."""


class _Compare(Protocol):
    def __call__(self, op: Op, constant: Constant, *, negated: bool) -> Expression | None: ...


FindColumn = Callable[[Node], Column | None]
"""What a reference means: the column, or None where it means none or is no reference."""


def exact_filter(condition: Node, find: FindColumn, zone: Zone) -> Expression | None:
    """Return the filter that is true of just the rows that `condition` is true of, or None."""
    return _Conditions(find, zone, is_exact=True).true_of(condition, negated=False)


def implied_filter(condition: Node, find: FindColumn, zone: Zone) -> Expression:
    """Return a filter that is true of every row that `condition` is true of; TRUE at worst."""
    found = _Conditions(find, zone, is_exact=False).true_of(condition, negated=False)
    return TRUE if found is None else found


class _Conditions:
    def __init__(self, find: FindColumn, zone: Zone, *, is_exact: bool) -> None:
        self._find = find
        self._zone = zone
        self._is_exact = is_exact

    def true_of(self, node: Node, negated: bool) -> Expression | None:
        """Return the filter that is true where `node` is true, or where it is false if `negated`;
        or, unless it must be exact, wherever else."""
        if any(value and key not in _READ for key, value in node.args.items()):
            return None
        if node.args.get("negate"):
            negated = not negated
        match node:
            case exp.Paren():
                return self.true_of(node.this, negated)
            case exp.Not():
                return self.true_of(node.this, not negated)
            case exp.And() | exp.Or():
                return self._joined(node, negated)
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return self._comparison(node, negated)
            case exp.Between():
                return self._between(node, negated)
            case exp.In():
                return self._in(node, negated)
            case exp.Is():
                return self._is(node, negated)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._distinct(node, negated is isinstance(node, exp.NullSafeEQ))
            case exp.IsNan():
                column = self._find(node.this)
                if column is None or not isinstance(column.type, FloatType | DoubleType):
                    return None
                return Predicate(Op.NOT_NAN if negated else Op.IS_NAN, column.name)
            case exp.Like():
                return self._like(node, negated)
            case exp.StartsWith():
                return self._prefix(node.this, node.expression, negated)
            case exp.Anonymous(expressions=[text, prefix]) if node.name.lower() == "prefix":
                return self._prefix(text, prefix, negated)
            case _:
                return self._truth(node, negated)

    def _joined(self, node: Node, negated: bool) -> Expression | None:
        is_and = isinstance(node, exp.And) is not negated
        found = [self.true_of(operand, negated) for operand in operands_of(node, type(node))]
        parts = [part for part in found if part is not None]
        if len(parts) < len(found) and (self._is_exact or not is_and):
            return None
        if len(parts) < 2:
            return parts[0] if parts else None
        return And(tuple(parts)) if is_and else _any_of(parts)

    def _comparison(self, node: Node, negated: bool) -> Expression | None:
        op = _OPERATORS[type(node)]
        left, right = node.this, node.expression
        left_value = constant_of(left, self._zone)
        right_value = constant_of(right, self._zone)
        if left_value is not None and right_value is not None:
            return _always(left_value, OPPOSITE[op] if negated else op, right_value)
        if left_value is not None:
            left, right_value, op = right, left_value, FLIPPED[op]
        if right_value is None or (compared := self._compared(left)) is None:
            return None
        return compared(op, right_value, negated=negated)

    def _compared(self, node: Node) -> _Compare | None:
        """Return how to compare a column, or a timestamp's day, with a constant."""
        column = self._column(node)
        if column is not None:
            return partial(compare, column, zone=self._zone)
        while isinstance(node, exp.Paren):
            node = node.this
        if is_cast(node) and node.to.this == exp.DType.DATE:
            inner = self._column(node.this)
            if inner is not None:
                return partial(compare_day, inner)
        return None

    def _column(self, node: Node) -> Column | None:
        """Return the column that a reference means, through casts to its own type."""
        while True:
            if isinstance(node, exp.Paren):
                node = node.this
            elif is_cast(node):
                inner = self._column(node.this)
                return inner if inner is not None and is_type(node.to, inner.type) else None
            else:
                return self._find(node)

    def _between(self, node: exp.Between, negated: bool) -> Expression | None:
        low = constant_of(node.args["low"], self._zone)
        high = constant_of(node.args["high"], self._zone)
        compared = self._compared(node.this)
        if compared is None or low is None or high is None or not can_be_listed([low, high]):
            return None
        parts = [
            compared(op, bound, negated=negated) for op, bound in ((Op.GE, low), (Op.LE, high))
        ]
        sides = tuple(part for part in parts if part is not None)
        if len(sides) < 2 and (self._is_exact or negated or not sides):
            return None
        return Or(sides) if negated else And(sides)

    def _in(self, node: exp.In, negated: bool) -> Expression | None:
        compared = self._compared(node.this)
        values = [constant_of(each, self._zone) for each in node.expressions]
        constants = [value for value in values if value is not None]
        if compared is None or not values or len(constants) < len(values):
            return None
        if not can_be_listed(constants):
            return None
        found = [compared(Op.EQ, constant, negated=negated) for constant in constants]
        parts = [part for part in found if part is not None]
        if len(parts) < len(found) and (self._is_exact or not negated):
            return None
        if negated:
            return And(tuple(parts)) if parts else None
        return _gathered(parts)

    def _is(self, node: exp.Is, negated: bool) -> Expression | None:
        value = constant_of(node.expression, self._zone)
        if isinstance(value, Null):
            column = self._find(node.this)
            if column is None:
                return None
            return Predicate(Op.NOT_NULL if negated else Op.IS_NULL, column.name)
        if not isinstance(value, Truth):
            return None
        if not negated:
            return self.true_of(node.this, negated=not value.value)
        column = self._find(node.this)
        if column is None or not isinstance(column.type, BooleanType):
            return None
        other = Predicate(Op.EQ, column.name, (not value.value,))
        return Or((Predicate(Op.IS_NULL, column.name), other))

    def _distinct(self, node: Node, is_distinct: bool) -> Expression | None:
        left, right = node.this, node.expression
        constant = constant_of(right, self._zone)
        if constant is None:
            left, constant = right, constant_of(left, self._zone)
        column = self._column(left)
        if column is None or constant is None:
            return None
        if isinstance(constant, Null):
            return Predicate(Op.NOT_NULL if is_distinct else Op.IS_NULL, column.name)
        found: Expression | None
        if is_nan(column, constant):  # which is one value here
            found = Predicate(Op.NOT_NAN if is_distinct else Op.IS_NAN, column.name)
        else:
            found = compare(column, Op.EQ, constant, self._zone, negated=is_distinct)
        if found is None or not is_distinct:
            return found
        return Or((Predicate(Op.IS_NULL, column.name), found))

    def _like(self, node: exp.Like, negated: bool) -> Expression | None:
        pattern = constant_of(node.expression, self._zone)
        column = self._find(node.this)
        if column is None or not isinstance(column.type, StringType):
            return None
        if not isinstance(pattern, Text):
            return FALSE if isinstance(pattern, Null) else None
        text = pattern.value
        start = text[: min((text.find(c) for c in "%_" if c in text), default=len(text))]
        if start == text:
            return Predicate(Op.NE if negated else Op.EQ, column.name, (text,))
        if text[len(start) :].strip("%"):
            # more than a prefix is asked for
            if self._is_exact or negated or not start:
                return None
            return Predicate(Op.STARTS_WITH, column.name, (start,))
        return Predicate(Op.NOT_STARTS_WITH if negated else Op.STARTS_WITH, column.name, (start,))

    def _prefix(self, text: Node, prefix: Node, negated: bool) -> Expression | None:
        column = self._find(text)
        start = constant_of(prefix, self._zone)
        if column is None or not isinstance(column.type, StringType):
            return None
        if not isinstance(start, Text):
            return None
        op = Op.NOT_STARTS_WITH if negated else Op.STARTS_WITH
        return Predicate(op, column.name, (start.value,))

    def _truth(self, node: Node, negated: bool) -> Expression | None:
        """Return the filter for what is no operator: a boolean column, TRUE, FALSE or NULL."""
        match constant_of(node, self._zone):
            case Null():
                return FALSE
            case Truth(value):
                return TRUE if value is not negated else FALSE
            case None:
                column = self._find(node)
                if column is None or not isinstance(column.type, BooleanType):
                    return None
                return Predicate(Op.EQ, column.name, (not negated,))
            case _:
                return None


def operands_of(node: Node, kind: type[Node]) -> list[Node]:
    """Return what a chain of `exp.And`, or of `exp.Or`, joins, through brackets, in order; only
    `node` where it is none."""
    operands: list[Node] = []
    waiting: list[Node] = [node]
    while waiting:
        operand = waiting.pop()
        inner = operand
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if type(inner) is kind:
            waiting += [inner.args["expression"], inner.args["this"]]
        else:
            operands.append(operand)
    return operands


def _any_of(parts: Sequence[Expression]) -> Expression:
    """Return the `or` of filters, with what all of them ask asked once: `(a and b) or (a and c)` is
    `a and (b or c)`, in SQL's logic too, and looks at every row fewer times."""
    asked = [_conjuncts(part) for part in parts]
    common = [each for each in asked[0] if all(each in other for other in asked[1:])]
    if not common:
        return Or(tuple(parts))
    rests = [[each for each in one if each not in common] for one in asked]
    if all(rests):
        own = (rest[0] if len(rest) == 1 else And(tuple(rest)) for rest in rests)
        common.append(Or(tuple(own)))
    return common[0] if len(common) == 1 else And(tuple(common))


def _conjuncts(filter_: Expression) -> list[Expression]:
    if isinstance(filter_, And):
        return [each for operand in filter_.operands for each in _conjuncts(operand)]
    return [filter_]


def _gathered(parts: Sequence[Expression]) -> Expression:
    """Return the `or` of equalities, as one `in` where they are on one column."""
    literals = []
    names = set()
    for part in parts:
        match part:
            case Predicate(Op.EQ, name, (literal,)):
                names.add(name)
                literals.append(literal)
            case Always(False):
                pass
            case _:
                return Or(tuple(parts))
    if not literals:
        return FALSE
    return Predicate(Op.IN, names.pop(), tuple(literals)) if len(names) == 1 else Or(tuple(parts))


def _always(left: Constant, op: Op, right: Constant) -> Expression | None:
    """Return what a comparison of two constants is, where it is sure."""
    if isinstance(left, Null) or isinstance(right, Null):
        return FALSE
    if type(left) is not type(right) or op not in (Op.EQ, Op.NE):
        return None
    if isinstance(left, Truth):
        return TRUE if (left == right) is (op is Op.EQ) else FALSE
    match left, right:
        case Text(one), Text(other):
            return TRUE if (one == other) is (op is Op.EQ) else FALSE
        case Number(one, _, 0), Number(other, _, 0):
            return TRUE if (one == other) is (op is Op.EQ) else FALSE
        case _:
            return None
