"""Aggregates over all rows, from aggregates over shares of them.

Each has a part, which is computed of a share's rows, and a way to make one of the parts. What
becomes of them does not depend on how the rows are shared out, nor on how many shares have none;
but for sums of floats in their last bits, which the engine does not promise by itself either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp
from sqlglot.expressions.core import Expr
from sqlglot.expressions.core import Expression as Node

from floeberg.server.sql.parsing import DIALECT
from floeberg.server.sql.unmergeable import AGGREGATES, Undivided, function_called

_DECIMAL = re.compile(r"DECIMAL\(\d+,(\d+)\)")


class AddPart(Protocol):
    """Takes an expression of a fragment, and returns the column that has its values; and says the
    type of such a column, where it is known yet."""

    def add(self, expression: Node, /) -> exp.Column: ...

    def type_of(self, column: exp.Column, /) -> str | None: ...


_SAME = {
    "min": "MIN",
    "max": "MAX",
    "bool_and": "BOOL_AND",
    "bool_or": "BOOL_OR",
    "bit_and": "BIT_AND",
    "bit_or": "BIT_OR",
    "bit_xor": "BIT_XOR",
    "any_value": "ANY_VALUE",
}
"""Aggregates of which that of parts is that of the rows."""
_AVERAGES = frozenset({"avg", "mean"})
_SUMS = frozenset({"sum", "count_if", "countif"})
"""Aggregates whose parts are summed up; count_if is null where all that it sees is."""
# of the same value once or often
_REPEATABLE = frozenset({"min", "max", "bool_and", "bool_or", "bit_and", "bit_or"})


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A call of an aggregate. `argument` is None for count(*), `filter` the condition of FILTER."""

    function: str
    argument: Node | None
    is_distinct: bool
    filter: Node | None


def aggregate_of(node: Expr) -> Aggregate | None:
    """Return the aggregate that `node` calls, None for what is no aggregate.

    A window function is none, though its arguments may be. Raises `Undivided` for one that is not
    made of parts, or called in a way that is not.
    """
    if isinstance(node.parent, exp.Window) and node.arg_key == "this":
        if not isinstance(node, exp.Func):
            raise Undivided  # FILTER and the like
        return None
    condition: Node | None = None
    if isinstance(node, exp.Filter):
        where = node.expression
        if not isinstance(where, exp.Where):
            raise Undivided
        condition, node = where.this, node.this
    if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue):
        node = node.this  # as it is read without IGNORE NULLS
    name = function_called(node)
    if name is None or name not in AGGREGATES:
        if condition is not None or isinstance(
            node, exp.AggFunc | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup
        ):
            raise Undivided
        return None
    arguments = _arguments(node)
    if name in ("count", "count_star") and (not arguments or isinstance(arguments[0], exp.Star)):
        if len(arguments) > 1:
            raise Undivided
        return Aggregate("count", None, False, condition)
    if len(arguments) != 1:
        raise Undivided
    (argument,) = arguments
    is_distinct = isinstance(argument, exp.Distinct)
    if isinstance(argument, exp.Distinct):
        if argument.args.get("on") or len(argument.expressions) != 1:
            raise Undivided
        (argument,) = argument.expressions
    if isinstance(argument, exp.Order | exp.Star | exp.HavingMax | exp.Limit | exp.Tuple):
        raise Undivided
    return Aggregate(name, argument, is_distinct and name not in _REPEATABLE, condition)


def _arguments(node: Expr) -> list[Node]:
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return list(node.expressions)
    given = [(key, value) for key, value in node.args.items() if value and key != "big_int"]
    if any(key != "this" for key, _ in given):
        raise Undivided
    return [value for _, value in given if isinstance(value, Node)]


def distinct_argument(aggregate: Aggregate) -> Node:
    """Return the expression that `aggregate`, which is distinct, has the distinct values of."""
    assert aggregate.argument is not None, "count(*) is never distinct"
    if aggregate.filter is None:
        return aggregate.argument
    # it has no use for nulls, whatever they come from
    return exp.Case(ifs=[exp.If(this=aggregate.filter.copy(), true=aggregate.argument.copy())])


def merged(aggregate: Aggregate, parts: AddPart) -> Node:
    """Return the aggregate over all rows in terms of the parts that it needs, which `parts` takes;
    of a distinct one, the part is its distinct values. Its type is that of the aggregate.

    Raises `Undivided` for what is not made of parts.
    """
    name = aggregate.function
    if aggregate.is_distinct:
        if name not in {"count", "sum", *_AVERAGES}:
            raise Undivided
        values = exp.Distinct(expressions=[parts.add(distinct_argument(aggregate))])
        return _call(name.upper(), values)
    if name == "count":
        # without fragments there are no parts, and still a count
        counts = _sum(parts.add(_part(aggregate, name)))
        count = exp.Coalesce(this=counts, expressions=[exp.Literal.number(0)])
        return exp.cast(count, "BIGINT", dialect=DIALECT)
    if name in _SUMS:
        return _sum(parts.add(_part(aggregate, name)))
    if name in _AVERAGES:
        return _average(aggregate, parts)
    if name in _SAME:
        return _call(_SAME[name], parts.add(_part(aggregate, name)))
    raise Undivided


def _average(aggregate: Aggregate, parts: AddPart) -> Node:
    sums = parts.add(_part(aggregate, "sum"))
    total: Node = exp.cast(_sum(sums), "DOUBLE", dialect=DIALECT)
    count = _sum(parts.add(_part(aggregate, "count")))
    decimal = _DECIMAL.fullmatch(parts.type_of(sums) or "")
    if decimal is not None and int(decimal[1]):
        # whole numbers are divided, so that it is rounded once. The engine does so for groups whose
        # sum is not asked for as well, else it divides a sum that is a double: who rounds the
        # average to fewer digits may see the difference at a half, by the plan that it makes
        power = exp.Literal.number(f"1e{decimal[1]}")
        total = _call("ROUND", exp.Mul(this=total, expression=power))
        count = exp.Paren(this=exp.Mul(this=count, expression=power.copy()))
    return exp.Paren(this=exp.Div(this=total, expression=count))


def _part(aggregate: Aggregate, function: str) -> Node:
    argument = exp.Star() if aggregate.argument is None else aggregate.argument.copy()
    call = _call(function.upper(), argument)
    if aggregate.filter is None:
        return call
    return exp.Filter(this=call, expression=exp.Where(this=aggregate.filter.copy()))


def _call(name: str, argument: Node) -> Node:
    return exp.Anonymous(this=name, expressions=[argument])


def _sum(column: Node) -> Node:
    return _call("SUM", column)
