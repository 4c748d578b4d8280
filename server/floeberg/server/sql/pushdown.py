"""What a query's conditions say of the rows of one of its tables.

A filter is pushed into a table's scan only if no row that it leaves out could have been part of the
answer. The engine applies most conditions again, so that a filter may say less than they do; where
nothing is sure, it is TRUE. But a condition in the WHERE of a table, or of inner joins of tables,
that a filter can say exactly is left to the scan (`settle_conditions`): its columns need not go
further then.

A condition is pushed from the WHERE or ON of the SELECT whose FROM names the table; and on from the
SELECT around that one, where the inner has a row for each row of its tables that meets its own
conditions (no grouping, window, DISTINCT, LIMIT, set operation), and is read in one place. In
WHERE, it must be of rows that are there: behind an outer join the table's columns may be null, and
only a condition that is not true of nulls rejects the row that takes the place of one that is left
out. What a join makes of a row depends on that row alone, so the others may go; ASOF and POSITIONAL
joins look at neighbours, and samples at all, so there nothing is pushed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

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
from floeberg.protocol.schema import Schema
from floeberg.server.sql.columns import Column, Source, below, find_column, same, words_of
from floeberg.server.sql.conditions import FindColumn, exact_filter, implied_filter, operands_of
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.occurrences import MOST_LEVELS, Readings, is_direct
from floeberg.server.sql.parsing import to_sql
from floeberg.server.sql.unmergeable import called

_OF_ROWS = frozenset({"expressions", "from_", "joins", "order", "where", "with_"})
"""The parts of a SELECT that has a row for each that its FROM and WHERE leave."""

_KNOWN_PARTS = _OF_ROWS | {"distinct", "group", "having", "limit", "offset", "qualify", "windows"}

Tables = Sequence[tuple[exp.Table, Source]]


def pushed_filter(table: exp.Table, tables: Tables, readings: Readings, zone: Zone) -> Expression:
    """Return the filter for the scan of `table`, one of the `tables` of a query, whose parts are
    read as `readings` says."""
    own = next(source for node, source in tables if node is table)
    filters: list[Expression] = []
    read: exp.Table | exp.Subquery | None = table
    find: FindColumn | None = None
    is_nullable = False
    for _ in range(MOST_LEVELS):
        sources = None if read is None else _sources(read)
        if read is None or sources is None:
            break
        find = (
            _columns_of(sources, table, tables)
            if find is None
            else _columns_behind(sources, read, tables, find, own.schema)
        )
        for condition, is_nullable_here in sources.conditions():
            for operand in operands_of(condition, exp.And):
                filter_ = implied_filter(operand, find, zone)
                may_be_null = is_nullable or is_nullable_here
                if filter_ != TRUE and not (may_be_null and holds_for_nulls(filter_)):
                    filters.append(filter_)
        is_nullable = is_nullable or sources.is_nullable()
        # the rows of a SELECT may be read elsewhere, if they are each of one row
        read = readings.of(sources.select) if sources.has_a_row_for_each() else None
        find = _items_of(sources, find)
    return all_of(filters)


def all_of(filters: Sequence[Expression]) -> Expression:
    """Return the filter that is true where all of them are."""
    asked = [each for each in filters if each != TRUE]
    if not asked:
        return TRUE
    return asked[0] if len(asked) == 1 else And(tuple(asked))


def settle_conditions(table: exp.Table, tables: Tables, zone: Zone) -> list[Expression]:
    """Take the conditions out of the query that the scan of `table` can decide alone, and return
    them as filters, which that scan must apply to the row."""
    sources = _sources(table)
    where = None if sources is None else sources.select.args.get("where")
    if sources is None or not isinstance(where, exp.Where):
        return []
    known = {id(node) for node, _ in tables}
    if set(sources.kinds) - {"INNER"} or any(id(each) not in known for each in sources.behind):
        return []
    find = _columns_of(sources, table, tables)
    settled: list[Expression] = []
    left: list[Node] = []
    for operand in operands_of(where.this, exp.And):
        filter_ = exact_filter(operand, find, zone)
        if filter_ is None:
            left.append(operand)
        else:
            settled.append(filter_)
    if settled:
        # not copies: `tables` are nodes of the query
        sources.select.set("where", exp.Where(this=exp.and_(*left, copy=False)) if left else None)
    return settled


# --- FROM ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sources:
    """What stands behind FROM in a SELECT; `place` is the number of the source that is looked at,
    and `kinds` are those of the `joins`, which begin with the second source."""

    select: exp.Select
    behind: Sequence[Node]
    joins: Sequence[exp.Join]
    kinds: Sequence[str]
    place: int

    def conditions(self) -> Iterator[tuple[Node, bool]]:
        """Yield the conditions that a row of the source must meet to be part of the answer, and
        whether its columns may be null there though its rows are not."""
        is_nullable = False
        for number, (join, kind) in enumerate(zip(self.joins, self.kinds, strict=True), 1):
            condition = join.args.get("on")
            if isinstance(condition, Node):
                if number == self.place and kind in ("INNER", "LEFT", "SEMI", "ANTI"):
                    yield condition, False
                if number > self.place and kind in ("INNER", "RIGHT", "SEMI"):
                    yield condition, is_nullable
            is_nullable = is_nullable or self._makes_null(number, kind)
        where = self.select.args.get("where")
        if isinstance(where, exp.Where) and not self._is_only_tested():
            yield where.this, is_nullable

    def is_nullable(self) -> bool:
        """Say whether the source's columns may be null, though its rows are not, in the end."""
        return any(self._makes_null(number, kind) for number, kind in enumerate(self.kinds, 1))

    def has_a_row_for_each(self) -> bool:
        """Say whether every row of the SELECT comes of one row of the source, and depends on no
        other of its rows."""
        parts = {key for key, value in self.select.args.items() if value}
        return (
            parts <= _OF_ROWS
            and not self._is_only_tested()
            and not any(item.find(exp.Window, exp.AggFunc) for item in self.select.expressions)
        )

    def _is_only_tested(self) -> bool:
        return self.place > 0 and self.kinds[self.place - 1] in ("SEMI", "ANTI")

    def _makes_null(self, number: int, kind: str) -> bool:
        match kind:
            case "FULL":
                return number >= self.place
            case "LEFT":
                return number == self.place
            case "RIGHT":
                return number > self.place
            case _:
                return False


def _sources(read: exp.Table | exp.Subquery) -> _Sources | None:
    """Return the FROM that `read` stands in, or None where nothing can be pushed from there."""
    if not is_direct(read):
        return None
    assert read.parent is not None
    select = read.parent.parent
    assert isinstance(select, exp.Select)
    if any(value and key not in _KNOWN_PARTS for key, value in select.args.items()):
        return None
    joins: list[exp.Join] = select.args.get("joins") or []
    behind = [select.args["from_"].this, *(join.this for join in joins)]
    kinds = [kind for join in joins if (kind := _kind(join)) is not None]
    if len(kinds) < len(joins) or "POSITIONAL" in kinds:
        return None
    commas = [number for number, join in enumerate(joins) if _is_comma(join)]
    if commas and not {"RIGHT", "FULL"}.isdisjoint(kinds[commas[0] :]):
        # which join only what stands between commas, though their ON may name what is before
        return None
    place = next(i for i, each in enumerate(behind) if each is read)
    if place and kinds[place - 1].startswith("ASOF"):
        return None
    return _Sources(select, behind, joins, kinds, place)


def _is_comma(join: exp.Join) -> bool:
    return not any(value for key, value in join.args.items() if key != "this")


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


# --- names ----------------------------------------------------------------------------------------


def _columns_of(sources: _Sources, table: exp.Table, tables: Tables) -> FindColumn:
    """Return what references mean among the sources, as far as they are columns of `table`."""
    by_node = {id(node): source for node, source in tables}
    own = by_node[id(table)]
    # what is made by queries has unknown columns; a name that is there too is an error
    visible = [by_node[id(each)] for each in sources.behind if id(each) in by_node]
    merged = _merged_names(sources.joins)

    def find(node: Node) -> Column | None:
        words = words_of(node)
        if words is None or (len(words) == 1 and (merged is None or words[0].casefold() in merged)):
            return None
        found = find_column(node, visible)
        return found[1] if found is not None and found[0] is own else None

    return find


def _columns_behind(
    sources: _Sources,
    read: exp.Table | exp.Subquery,
    tables: Tables,
    items: FindColumn,
    schema: Schema,
) -> FindColumn:
    """Return what references mean among the sources, as far as they are columns of `read`, which is
    a query: `items` says what its items are, by their names."""
    alias = str(read.alias or read.name)
    by_node = {id(node): source for node, source in tables}
    others = [by_node[id(each)] for each in sources.behind if id(each) in by_node]

    def find(node: Node) -> Column | None:
        words = words_of(node)
        if not words:
            return None
        first = words[0]
        is_qualified = len(words) > 1 and same(first, alias)
        readings: list[Sequence[str]] = [words[1:]] if is_qualified else []
        if len(sources.behind) == 1:
            readings.append(words)
        elif not is_qualified or any(other.has_column(first) for other in others):
            return None  # it may be of another source
        found = [
            (column, fields)
            for name, *fields in readings
            if (column := items(_reference(name))) is not None
        ]
        if len(found) != 1:
            return None
        column, fields = found[0]
        return below(column, fields, schema)

    return find


def _items_of(sources: _Sources, find: FindColumn) -> FindColumn:
    """Return what the items of a SELECT mean, asked for by their names: the column that an item is,
    or None where it is more than one, or not told apart from others."""
    items = sources.select.expressions

    def find_item(node: Node) -> Column | None:
        (name,) = words_of(node) or ("",)
        found: list[Column | None] = []
        for item in items:
            if isinstance(item, exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                if not _is_whole_source(item, sources, find):
                    return None
                if (column := find(_reference(name))) is not None:
                    found.append(column)
            elif isinstance(item, exp.Alias):
                if same(item.alias, name):
                    found.append(find(item.this))
            elif (words := words_of(item)) is not None:
                if same(words[-1], name):
                    found.append(find(item))
            elif _may_be_called(item, name):
                return None
        return found[0] if len(found) == 1 else None

    return find_item


def _is_whole_source(star: Node, sources: _Sources, find: FindColumn) -> bool:
    """Say whether `*`, or `t.*`, is all columns of the only source, rather than of one among
    several, or the fields of a struct."""
    stated = star if isinstance(star, exp.Star) else star.this
    if len(sources.behind) > 1 or any(stated.args.values()):
        return False
    if not isinstance(star, exp.Column):
        return True
    above = str(star.parts[-2].name)
    return same(above, str(sources.behind[0].alias_or_name)) and find(_reference(above)) is None


_WORD = re.compile(r"\w+")


def _may_be_called(item: Node, name: str) -> bool:
    """Say whether a column of an item that is neither named nor a reference may be called `name`.
    The engine calls it by the item's text, but columns of stars and structs by names that are not
    in the query."""
    if item.find(exp.Star, exp.Columns, exp.PositionalColumn) or "unnest" in called(item):
        return True
    while isinstance(item, exp.Paren):
        item = item.this
    text = to_sql(item)
    # what is more than a word may be written in another way by the engine
    return _WORD.fullmatch(name) is None or same(text, name)


def _reference(name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


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
