"""What a query's conditions say of the rows of one of its tables.

A filter is pushed into a table's scan only if no row that it leaves out could have been part of the
answer. The engine applies every condition again, so that a filter may say less than they do; where
nothing is sure, it is TRUE.

A condition is pushed from the WHERE or ON of the SELECT whose FROM names the table, and from no
farther. In WHERE, it must be of rows that are there: behind an outer join the table's columns may
be null, and only a condition that is not true of nulls rejects the row that takes the place of one
that is left out. What a join makes of a row depends on that row alone, so the others may go; ASOF
and POSITIONAL joins look at neighbours, and samples at all, so there nothing is pushed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from floeberg.protocol.expressions.model import (
    TRUE,
    And,
    Constant,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
)
from floeberg.server.sql.columns import Column, Source, find_column, words_of
from floeberg.server.sql.conditions import implied_filter, operands_of
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.occurrences import is_direct

_KNOWN_PARTS = frozenset(
    {
        "distinct",
        "expressions",
        "from_",
        "group",
        "having",
        "joins",
        "limit",
        "offset",
        "order",
        "qualify",
        "where",
        "windows",
        "with_",
    }
)


def pushed_filter(
    table: exp.Table, tables: Sequence[tuple[exp.Table, Source]], zone: Zone
) -> Expression:
    """Return the filter for the scan of `table`, one of the `tables` of a query."""
    if not is_direct(table):
        return TRUE
    assert table.parent is not None
    select = table.parent.parent
    assert isinstance(select, exp.Select)
    if any(value and key not in _KNOWN_PARTS for key, value in select.args.items()):
        return TRUE
    joins: list[exp.Join] = select.args.get("joins") or []
    behind = [select.args["from_"].this, *(join.this for join in joins)]
    kinds = [_kind(join) for join in joins]
    if None in kinds or "POSITIONAL" in kinds:
        return TRUE
    place = next(i for i, each in enumerate(behind) if each is table)
    if place and kinds[place - 1] in ("ASOF", "ASOF LEFT"):
        return TRUE
    by_node = {id(node): source for node, source in tables}
    # the names of all that is visible here; what is behind brackets is not known
    visible = [by_node[id(each)] for each in behind if id(each) in by_node]
    merged = _merged_names(joins)

    def find(node: exp.Expression) -> Column | None:
        words = words_of(node)
        if words is None or (len(words) == 1 and (merged is None or words[0].casefold() in merged)):
            return None
        found = find_column(node, visible)
        return found[1] if found is not None and found[0] is by_node[id(table)] else None

    filters = [
        filter_
        for condition, is_nullable in _conditions(select, joins, kinds, place)
        for operand in operands_of(condition, exp.And)
        if (filter_ := implied_filter(operand, find, zone)) != TRUE
        and not (is_nullable and holds_for_nulls(filter_))
    ]
    if not filters:
        return TRUE
    return filters[0] if len(filters) == 1 else And(tuple(filters))


def _conditions(
    select: exp.Select, joins: Sequence[exp.Join], kinds: Sequence[str | None], place: int
) -> Iterator[tuple[exp.Expression, bool]]:
    """Yield the conditions that a row of the table at `place` must meet to be part of the answer,
    and whether the table's columns may be null there though its rows are not."""
    is_nullable = False
    for number, (join, kind) in enumerate(zip(joins, kinds, strict=True), 1):
        condition = join.args.get("on")
        if isinstance(condition, exp.Expression):
            if number == place and kind in ("INNER", "LEFT", "SEMI", "ANTI"):
                yield condition, False
            if number > place and kind in ("INNER", "RIGHT", "SEMI"):
                yield condition, is_nullable
        if kind == "FULL" or (kind == "LEFT" and number == place):
            is_nullable = is_nullable or number >= place
        if kind == "RIGHT" and number > place:
            is_nullable = True
    where = select.args.get("where")
    if isinstance(where, exp.Where) and not (place and kinds[place - 1] in ("SEMI", "ANTI")):
        yield where.this, is_nullable


def _kind(join: exp.Join) -> str | None:
    """Return what a join does, in one word, or None for one that is not known."""
    method, side, kind = (
        str(join.args.get(key) or "").upper() for key in ("method", "side", "kind")
    )
    known = {"this", "on", "using", "method", "side", "kind", "pivots"}
    if any(value and key not in known for key, value in join.args.items()):
        return None
    if method == "ASOF" and not kind:
        return {"": "ASOF", "LEFT": "ASOF LEFT"}.get(side)
    if method == "POSITIONAL":
        return method
    if method not in ("", "NATURAL"):
        return None
    match side, kind:
        case "", "" | "INNER" | "CROSS":
            return "INNER"
        case (("LEFT" | "RIGHT" | "FULL"), "" | "OUTER"):
            return side
        case (("" | "LEFT"), "SEMI" | "ANTI"):
            return kind
        case _:
            return None


def _merged_names(joins: Sequence[exp.Join]) -> frozenset[str] | None:
    """Return the columns that USING makes one of two, in one case; None for all of them."""
    merged: set[str] = set()
    for join in joins:
        if str(join.args.get("method") or "").upper() == "NATURAL":
            return None
        merged.update(str(name.name).casefold() for name in join.args.get("using") or ())
    return frozenset(merged)


def holds_for_nulls(filter_: Expression) -> bool:
    """Say whether a filter may be true of a row whose columns are all null."""
    match filter_:
        case Constant(value):
            return value
        case Predicate(op=op):
            return op is Op.IS_NULL
        case And(operands):
            return all(map(holds_for_nulls, operands))
        case Or(operands):
            return any(map(holds_for_nulls, operands))
        case Not():
            return True
