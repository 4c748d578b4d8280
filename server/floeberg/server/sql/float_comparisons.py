"""Comparisons of floats by IEEE's rule, written so that DuckDB gives that answer.

DuckDB has NaN equal to itself and greater than all other numbers. floeberg's filters have it not
less, equal or greater than anything, and so has SQL: a comparison whose operands may be NaN is
written anew. Null stays unknown: where the other operand is null, so is the comparison.

Where only TRUE counts, in WHERE and ON, an operand that is NaN is made null. What remains is one
comparison, so that joins by it stay hash joins. Elsewhere a CASE asks for NaN first. The same
comparison becomes the same text in a SELECT and its GROUP BY, which DuckDB matches.

What orders and groups stays as it is (ORDER BY, GROUP BY, DISTINCT, min, IS DISTINCT FROM, USING,
set operations, values within structs and lists): NaN is one value there, the greatest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.server.sql.constants import Null
from floeberg.server.sql.float_kinds import Kind, Kinds
from floeberg.server.sql.nan_operands import (
    COLUMN,
    Operand,
    any_of,
    case,
    closed,
    is_null,
    is_repeatable,
    named_once,
    nan_test,
    null_for_nan,
    select_from,
)
from floeberg.server.sql.parsing import to_sql

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_REWRITTEN = (*_COMPARISONS, exp.Between, exp.In, exp.Nullif, exp.Case)


def compare_as_ieee(tree: Node, kinds: Kinds) -> None:
    """Let the comparisons in `tree`, a query, be by IEEE's rule.

    Items of a SELECT that have no name, and change, get the one that they had.
    """
    unnamed = _unnamed_items(tree)
    where_true_counts = _where_only_true_counts(tree)
    rewriter = _Rewriter(kinds)
    # those within others first
    for node in reversed(list(_nodes(tree))):
        if isinstance(node, _REWRITTEN):
            place = node.parent, node.arg_key, node.index
            written = rewriter.rewritten(node, id(node) in where_true_counts)
            if written is not node and place[0] is not None and place[1] is not None:
                place[0].set(place[1], written, place[2])
    for select, at, before in unnamed:
        item = select.expressions[at]
        if item != before:
            name = exp.to_identifier(shown_name(before), quoted=True)
            select.set("expressions", exp.Alias(this=item, alias=name), at)


def _nodes(tree: Node) -> Iterator[Node]:
    """Yield the nodes, each before those below it. A PIVOT's IN lists groups, and is no test."""
    for node in tree.walk(bfs=False, prune=lambda node: isinstance(node, exp.Pivot)):
        if isinstance(node, Node):
            yield node


def _where_only_true_counts(tree: Node) -> set[int]:
    """Return the ids of the conditions of which false and unknown are the same."""
    found: set[int] = set()
    waiting: list[Node] = []
    for node in _nodes(tree):
        condition = node.args.get("on") if isinstance(node, exp.Join) else None
        if isinstance(node, exp.Where):
            condition = node.this
        if isinstance(condition, Node):
            waiting.append(condition)
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.And | exp.Or | exp.Paren):
            waiting += [each for each in node.args.values() if isinstance(each, Node)]
        else:
            found.add(id(node))
    return found


def _unnamed_items(tree: Node) -> list[tuple[exp.Select, int, Node]]:
    return [
        (select, at, item.copy())
        for select in tree.find_all(exp.Select)
        for at, item in enumerate(select.expressions)
        if not isinstance(item, exp.Alias | exp.Star | exp.Column)
        and item.find(*_REWRITTEN) is not None
        # which gives each of its columns that column's name
        and item.find(exp.Columns) is None
    ]


def shown_name(item: Node) -> str:
    """Return, nearly, the name that DuckDB gives to an item without one."""
    while isinstance(item, exp.Paren):
        item = item.this
    has_brackets = isinstance(item, exp.Binary | exp.Between | exp.In | exp.Not)
    return f"({to_sql(item)})" if has_brackets else to_sql(item)


class _Rewriter:
    """Writes one node anew; what is below it has been."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def rewritten(self, node: Node, only_true: bool) -> Node:
        """Return what stands in the place of `node`: itself, changed or not, or another node."""
        match node:
            case exp.Between() if node.args.get("symmetric"):
                return self._symmetric(node, only_true)
            case exp.Between():
                return self._between(node, only_true)
            case exp.In() if (query := node.args.get("query")) is not None:
                return self._in_query(node, query, only_true)
            case exp.In():
                return self._in(node, only_true)
            case exp.Nullif():
                return self._nullif(node)
            case exp.Case():
                return self._case(node)
            case exp.Binary(expression=exp.Any() | exp.All()):
                return self._quantified(node, only_true)
            case _:
                left, right = self._operand(node.this), self._operand(node.expression)
                return self._compared(node, left, right, only_true)

    def _operand(self, node: Node) -> Operand:
        constant = self._kinds.constant(node)
        may_be_null = constant is None or isinstance(constant, Null)
        return Operand(node, self._kinds.of(node), may_be_null)

    def _nullif(self, node: exp.Nullif) -> Node:
        value, other = self._operand(node.this), self._operand(node.expression)
        if not other.may_be_nan or nan_test(value, other) is None:
            return node

        def by_case(plain: Sequence[Operand]) -> Node:
            test = _sure_test(*plain)
            value, other = (each.again() for each in plain)
            return case(test, plain[0].again(), exp.Nullif(this=value, expression=other))

        return named_once([value, other], by_case)

    def _case(self, node: exp.Case) -> Node:
        """Let NaN match nothing in `CASE a WHEN …`."""
        if node.this is not None:
            value = self._operand(node.this)
            others = [self._operand(branch.this) for branch in node.args["ifs"]]
            if any(each.may_be_nan for each in others) and nan_test(value, *others) is not None:
                node.set("this", null_for_nan(value, *others))
        return node

    def _compared(self, node: Node, left: Operand, right: Operand, only_true: bool) -> Node:
        """Return the comparison by the operator of `node` of two operands."""
        operands = (left, right)
        sides = [
            side
            for side in _deciding_sides(node)
            if nan_test(operands[side], operands[1 - side]) is not None
        ]
        if len(sides) < len(_deciding_sides(node)):
            return node
        side = min(sides, key=lambda side: _cost(operands[side]))
        other = operands[1 - side]

        def by_case(plain: Sequence[Operand]) -> Node:
            test = _sure_test(plain[side], plain[1 - side])
            comparison = type(node)(this=plain[0].again(), expression=plain[1].again())
            return case(test, _of_nan(node, plain[1 - side]), comparison)

        if not only_true or isinstance(node, exp.NEQ) or operands[side].kind is Kind.TEXT:
            return named_once(operands, by_case)
        if not other.may_be_null and is_repeatable(operands[side]):
            test = _sure_test(operands[side], other)
            return exp.Paren(this=exp.And(this=node, expression=exp.Not(this=closed(test))))
        node.set(("this", "expression")[side], null_for_nan(operands[side], other))
        return node

    def _symmetric(self, node: exp.Between, only_true: bool) -> Node:
        node.set("symmetric", None)
        turned = node.copy()
        turned.set("low", node.args["high"].copy())
        turned.set("high", node.args["low"].copy())
        return exp.Paren(this=any_of([self._between(each, only_true) for each in (node, turned)]))

    def _between(self, node: exp.Between, only_true: bool) -> Node:
        operands = [self._operand(node.args[key]) for key in ("this", "low", "high")]
        value, low, high = operands
        if not high.may_be_nan and not high.may_be_null:
            return node  # NaN is beyond it
        if only_true and high.kind is not Kind.TEXT:
            # of the three, only a NaN above makes true what is not
            if nan_test(high, value, low) is not None:
                node.set("high", null_for_nan(high, value, low))
            return node

        def by_case(plain: Sequence[Operand]) -> Node:
            tests = [nan_test(each, *plain[:at], *plain[at + 1 :]) for at, each in enumerate(plain)]
            value, low, high = plain
            # one side is false, unless it compares with null
            bounds = exp.And(this=is_null(low), expression=is_null(high))
            unknown = exp.Or(this=is_null(value), expression=exp.Paren(this=bounds))
            between = exp.Between(this=value.again(), low=low.again(), high=high.again())
            known = [closed(test) for test in tests if test is not None]
            return case(any_of(known), _null_if(unknown), between) if known else between

        if all(not each.may_be_nan for each in operands):
            return node
        return named_once(operands, by_case)

    def _in(self, node: exp.In, only_true: bool) -> Node:
        value = self._operand(node.this)
        field = node.args.get("field")
        if isinstance(field, Node):
            # a list, of whatever
            listed = [Operand(field, Kind.UNKNOWN)]
        else:
            listed = [self._operand(each) for each in node.expressions]
        if nan_test(value, *listed) is None or not any(each.may_be_nan for each in listed):
            return node
        if only_true and value.kind is not Kind.TEXT:
            node.set("this", null_for_nan(value, *listed))
            return node

        def by_case(plain: Sequence[Operand]) -> Node:
            value, *listed = plain
            test = _sure_test(value, *listed)
            nodes = [each.again() for each in listed]
            parts = {"field": nodes[0]} if isinstance(field, Node) else {"expressions": nodes}
            return case(test, _false_unless_null(listed), exp.In(this=value.again(), **parts))

        return named_once([value, *listed], by_case)

    def _in_query(self, node: exp.In, query: Node, only_true: bool) -> Node:
        is_row = isinstance(node.this, exp.Tuple)
        values = [
            self._operand(each) for each in (node.this.expressions if is_row else [node.this])
        ]
        columns = self._columns(query, len(values))
        values = [_as_float(*pair) for pair in zip(values, columns, strict=True)]
        tested = [
            column.may_be_nan and nan_test(value, column) is not None
            for value, column in zip(values, columns, strict=True)
        ]
        if not any(tested):
            return node
        names = [f"{COLUMN}{number}" for number in range(len(values))]
        write = null_for_nan if only_true else _with_nan
        written = [
            write(value, column) if is_tested else value.again()
            for value, column, is_tested in zip(values, columns, tested, strict=True)
        ]
        node.set("this", exp.Tuple(expressions=written) if is_row else written[0])
        if not only_true:
            items = [
                _without_nan(name) if is_tested else exp.column(name)
                for name, is_tested in zip(names, tested, strict=True)
            ]
            node.set("query", exp.Subquery(this=select_from(query, names, items)))
        return node

    def _columns(self, query: Node, count: int) -> list[Operand]:
        """Return the columns of a query, which can't be named outside of it."""
        while isinstance(query, exp.Subquery):
            query = query.this
        items = query.expressions if isinstance(query, exp.Select) else []
        if len(items) != count or any(item.is_star for item in items):
            return [Operand(None, Kind.UNKNOWN)] * count
        return [Operand(None, self._kinds.of(item.unalias())) for item in items]

    def _quantified(self, node: Node, only_true: bool) -> Node:
        """Return `a > ANY (SELECT …)` and its like."""
        is_all = isinstance(node.expression, exp.All)
        inner: Node = node.expression.this
        is_query = isinstance(inner, exp.Query)
        query = inner if is_query else exp.Select(expressions=[exp.Explode(this=inner)])
        left = self._operand(node.this)
        (column,) = self._columns(query, 1)
        if not all((left, column)[side].may_be_nan for side in _deciding_sides(node)):
            return node
        if isinstance(node, exp.EQ) and not is_all:
            return self._in_query(_in(node.this, query), query, only_true)
        if isinstance(node, exp.NEQ) and is_all:
            return exp.Not(this=self._in_query(_in(node.this, query), query, only_true=False))
        right = Operand(exp.column(COLUMN), column.kind)
        comparison = type(node)(this=left.again(), expression=right.again())
        item = self._compared(comparison, left, right, only_true=False)
        found = _in(exp.Boolean(this=not is_all), select_from(query, [COLUMN], [item]))
        return exp.Not(this=found) if is_all else found


def _sure_test(operand: Operand, *others: Operand) -> Node:
    test = nan_test(operand, *others)
    assert test is not None, "it has been asked before"
    return test


def _as_float(operand: Operand, column: Operand) -> Operand:
    """Return text in quotes as the float that it is where it meets one."""
    if operand.kind is not Kind.TEXT or column.kind is not Kind.FLOAT:
        return operand
    return Operand(exp.cast(operand.again(), "DOUBLE", dialect="duckdb"), Kind.FLOAT)


def _deciding_sides(node: Node) -> tuple[int, ...]:
    """Return which operands must be NaN for DuckDB's answer to be another than IEEE's."""
    match node:
        case exp.GT() | exp.GTE():
            return (0,)
        case exp.LT() | exp.LTE():
            return (1,)
        case _:
            return (0, 1)


def _cost(operand: Operand) -> tuple[bool, bool, bool]:
    kind = operand.kind
    return kind is Kind.TEXT, not is_repeatable(operand), kind is not Kind.FLOAT


def _of_nan(node: Node, other: Operand) -> Node:
    """Return what comparing NaN with `other` gives."""
    if not isinstance(node, exp.NEQ):
        return _false_unless_null([other])
    if not other.may_be_null:
        return exp.true()
    return exp.Or(this=exp.Not(this=is_null(other)), expression=exp.null())


def _false_unless_null(operands: Sequence[Operand]) -> Node:
    nulls = [is_null(each) for each in operands if each.may_be_null]
    return _null_if(any_of(nulls)) if nulls else exp.false()


def _null_if(condition: Node) -> Node:
    return exp.And(this=closed(condition), expression=exp.null())


def _in(value: Node, query: Node) -> exp.In:
    whole = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
    return exp.In(this=value, query=whole)


def _with_nan(operand: Operand, column: Operand) -> Node:
    """Return a value that is equal to one of `_without_nan` if neither is NaN, and null for null;
    IN looks both up in one table."""

    def build(plain: Sequence[Operand]) -> Node:
        test = _sure_test(plain[0], column)
        return case(is_null(plain[0]), exp.null(), _pair(plain[0].again(), test))

    return named_once([operand], build)


def _without_nan(name: str) -> Node:
    column = Operand(exp.column(name), Kind.UNKNOWN)
    return case(is_null(column), exp.null(), _pair(column.again(), exp.false()))


def _pair(value: Node, is_nan: Node) -> Node:
    parts = {"value": value, "is_nan": is_nan}
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name), expression=part)
            for name, part in parts.items()
        ]
    )
