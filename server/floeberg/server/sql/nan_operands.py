"""Operands of comparisons, asked for NaN in SQL that DuckDB can bind whatever their types are.

Whether an operand is a float, `typeof` tells where nothing else does. DuckDB knows when it binds
the query, so that for other types nothing of the question is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.server.sql.float_kinds import Kind

_MAX_REPEATED = 40
"""How many nodes an operand may have that is written, and computed, several times."""
_VOLATILE = (exp.Rand, exp.Uuid)
_VOLATILE_NAMES = frozenset({"gen_random_uuid", "random", "uuidv4", "uuidv7"})

COLUMN = "_ieee_column"
"""What a column of a query is called where it is compared, which nothing else should be called."""
_ROWS, _OPERANDS = "_ieee_rows", "_ieee_operands"


@dataclass(frozen=True, slots=True)
class Operand:
    """What is compared. `node` is None for a column of a query, which can't be named where the
    query stands."""

    node: Node | None
    kind: Kind
    may_be_null: bool = True

    def again(self) -> Node:
        """Return a copy that nothing holds."""
        assert self.node is not None
        return self.node.copy()

    @property
    def may_be_nan(self) -> bool:
        return self.kind not in (Kind.EXACT, Kind.NUMBER)


def nan_test(operand: Operand, *others: Operand) -> Node | None:
    """Return a condition that is true where `operand` is NaN, brought to a type with the `others`,
    and else not; None where it never is."""
    match operand.kind:
        case Kind.EXACT | Kind.NUMBER:
            return None
        case Kind.FLOAT:
            return exp.IsNan(this=operand.again())
        case Kind.TEXT | Kind.UNKNOWN:
            pass
    test: Node = exp.IsNan(
        this=exp.TryCast(this=operand.again(), to=exp.DataType.build("DOUBLE", dialect="duckdb"))
    )
    if any(other.kind is Kind.FLOAT for other in others):
        return test
    asked = [
        each
        for each in (operand, *others)
        if each.kind in (Kind.UNKNOWN, Kind.NUMBER) and each.node is not None
    ]
    if not asked:
        return None
    is_float = any_of([_is_float(each) for each in asked])
    return exp.And(this=exp.Paren(this=is_float) if len(asked) > 1 else is_float, expression=test)


def null_for_nan(operand: Operand, *others: Operand) -> Node:
    """Return `operand`, but null where it is NaN."""
    if isinstance(operand.node, exp.Subquery):
        # computed once for each value, and not for each row that it is compared with
        value = replace(operand, node=exp.column(COLUMN))
        item = _null_for_nan(value, others)
        return exp.Subquery(this=select_from(operand.node, [COLUMN], [item]))
    return named_once([operand], lambda plain: _null_for_nan(plain[0], others))


def _null_for_nan(operand: Operand, others: Sequence[Operand]) -> Node:
    test = nan_test(operand, *others)
    if test is None:
        return operand.again()
    return case(test, exp.null(), operand.again())


def named_once(operands: Sequence[Operand], build: Callable[[Sequence[Operand]], Node]) -> Node:
    """Return what `build` makes of the operands, in which each may stand several times.

    What gives another value each time, holds a query or is large stands once all the same: `build`
    gets a name for it.
    """
    if all(map(is_repeatable, operands)):
        return build(operands)
    named = {number: f"v{number}" for number, each in enumerate(operands) if each.may_be_null}
    names = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name), expression=operands[number].again())
            for number, name in named.items()
        ]
    )
    body = build(
        [
            replace(operand, node=exp.column(named[number], table=_OPERANDS))
            if number in named
            else operand
            for number, operand in enumerate(operands)
        ]
    )
    of_each = exp.Lambda(this=body, expressions=[exp.to_identifier(_OPERANDS)])
    listed = exp.func("list_transform", exp.Array(expressions=[names]), of_each)
    return exp.Anonymous(this="list_extract", expressions=[listed, exp.Literal.number(1)])


def select_from(query: Node, columns: Sequence[str], items: Sequence[Node]) -> exp.Select:
    """Return a query of `items` over the rows of `query`, whose columns get names."""
    while isinstance(query, exp.Subquery) and not _is_more(query):
        query = query.this
    alias = exp.TableAlias(
        this=exp.to_identifier(_ROWS), columns=[exp.to_identifier(name) for name in columns]
    )
    rows = exp.Subquery(this=query.copy(), alias=alias)
    return exp.Select(expressions=list(items), from_=exp.From(this=rows))


def case(test: Node, then: Node, otherwise: Node) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=test, true=then)], default=otherwise)


def any_of(conditions: Sequence[Node]) -> Node:
    def either(left: Node, right: Node) -> Node:
        return exp.Or(this=left, expression=right)

    return reduce(either, conditions)


def is_null(operand: Operand) -> Node:
    return exp.Is(this=closed(operand.again()), expression=exp.null())


def closed(node: Node) -> Node:
    """Return `node` so that it can stand beside an operator."""
    is_closed = isinstance(node, exp.Column | exp.Dot | exp.Func | exp.Paren | exp.Literal)
    return node if is_closed and not isinstance(node, exp.Connector) else exp.Paren(this=node)


def is_repeatable(operand: Operand) -> bool:
    """Say whether an operand may be written several times: it is small and without a query, and
    the same each time."""
    if operand.node is None or not operand.may_be_null:
        return True
    size = 0
    for node in islice(operand.node.walk(), _MAX_REPEATED + 1):
        size += 1
        if isinstance(node, (exp.Query, *_VOLATILE)):
            return False
        if isinstance(node, exp.Anonymous) and str(node.name).lower() in _VOLATILE_NAMES:
            return False
    return size <= _MAX_REPEATED


def _is_float(operand: Operand) -> Node:
    return exp.In(
        this=exp.Anonymous(this="typeof", expressions=[operand.again()]),
        expressions=[exp.Literal.string(name) for name in ("FLOAT", "DOUBLE")],
    )


def _is_more(query: exp.Subquery) -> bool:
    return any(value for key, value in query.args.items() if key != "this")
