"""Aggregating queries: groups of each share's rows, and the groups that those make together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.server.sql.aggregates import aggregate_of, distinct_argument, merged
from floeberg.server.sql.columns import same
from floeberg.server.sql.own_rows import Rows, explicit_aliases
from floeberg.server.sql.parts import Described, Names, Parts, described, reading
from floeberg.server.sql.unmergeable import AGGREGATES, Undivided, are_same, called

_TAKEN = frozenset(
    {
        *("expressions", "from_", "where", "group", "having", "order", "limit", "offset"),
        "distinct",
    }
)


def is_grouped(select: exp.Select) -> bool:
    """Say whether `select` aggregates."""
    if select.args.get("group") or select.args.get("having"):
        return True
    parts = [*select.expressions, select.args.get("order")]
    return any(
        isinstance(part, Node) and (called(part) & AGGREGATES or part.find(exp.AggFunc) is not None)
        for part in parts
    )


def divided(
    select: exp.Select, rows: Rows, describe: Described, names: Names, parts_name: str
) -> tuple[exp.Select, exp.Select]:
    """Return the query of a fragment, and the query that merges the fragments' rows.

    `select` reads `rows`, and nothing but its expressions stands in the way of a fragment. Raises
    `Undivided` for a query that is not divided.
    """
    if any(value and key not in _TAKEN for key, value in select.args.items()):
        raise Undivided
    own = described(select, describe)
    items = [_stripped(item) for item in select.expressions]
    if len(items) != len(own):
        raise Undivided  # a star
    query = _Query(rows, [rows.resolved(item) for item in items], select, Parts(names))
    keys = query.keys()
    order = query.order()
    having = query.having()
    clauses = [*query.items, *order, *([] if having is None else [having])]
    distinct = _distinct_values(clauses)
    key_columns = [(key, query.parts.add(key)) for key in keys]
    inner_keys = list(keys)
    for value in distinct:
        _add(value, inner_keys)
    if rows.are_told_apart_by(inner_keys):
        raise Undivided  # each row would be a group, and be aggregated twice
    for value in distinct:
        query.parts.add(value)
    rewrite = _rewriting(key_columns, query.parts)

    def over_parts(node: Node) -> Node:
        return node.copy().transform(rewrite, copy=False)

    # what they need, before its types are known
    for clause in clauses:
        over_parts(clause)
    fragment = _fragment(select, rows, query.parts, inner_keys)
    columns = described(fragment, describe)
    query.parts.tell(columns)
    merging = exp.Select(
        expressions=[
            exp.alias_(over_parts(item), exp.to_identifier(name, quoted=True))
            for item, (name, _) in zip(query.items, own, strict=True)
        ],
    )
    if key_columns:
        merging.set("group", exp.Group(expressions=[column.copy() for _, column in key_columns]))
    elif select.args.get("group"):
        raise Undivided  # by constants
    if having is not None:
        merging.set("having", exp.Having(this=over_parts(having)))
    if order:
        merging.set("order", exp.Order(expressions=[over_parts(each) for each in order]))
    for key in ("limit", "offset", "distinct"):
        if (kept := select.args.get(key)) is not None:
            merging.set(key, kept.copy())
    merging.set("from_", reading(parts_name, columns))
    return fragment, merging


class _Query:
    """The clauses of a query, with the full names of what they mean."""

    def __init__(self, rows: Rows, items: list[Node], select: exp.Select, parts: Parts) -> None:
        self.items = items
        self.parts = parts
        self._rows = rows
        self._select = select
        explicit_aliases(select.expressions)
        self._aliases = {
            str(item.alias).casefold(): meant
            for item, meant in zip(select.expressions, items, strict=True)
            if isinstance(item, exp.Alias)
        }

    def keys(self) -> list[Node]:
        """Return what is grouped by, each once."""
        group = self._select.args.get("group")
        if group is None:
            return []
        if any(value and key not in ("expressions", "all") for key, value in group.args.items()):
            raise Undivided
        if group.args.get("all"):
            if any(item.find(exp.Window) is not None for item in self.items):
                raise Undivided
            found = [item for item in self.items if not _aggregates(item)]
        else:
            found = [self._key(each) for each in group.expressions]
        keys: list[Node] = []
        for key in map(_bare, found):
            if _aggregates(key):
                raise Undivided
            # a constant parts no rows, and may have another type once it is a column
            if key.find(exp.Column) is not None:
                _add(key, keys)
        return keys

    def _key(self, key: Node) -> Node:
        key = _bare(key)
        if isinstance(key, exp.Literal):
            return self.items[_place(key, len(self.items))]
        name = _single_name(key)
        if name is not None and not self._rows.has(name):
            number = self._aliased(name)
            if number is not None:
                return self.items[number]
        return self._rows.resolved(key)

    def having(self) -> Node | None:
        having = self._select.args.get("having")
        return None if having is None else self._rows.resolved(having.this, self._aliases)

    def order(self) -> list[Node]:
        """Return what is ordered by; what an item is, by its place."""
        order = self._select.args.get("order")
        if order is None:
            return []
        return [self._ordered(each) for each in order.expressions]

    def _ordered(self, ordered: Node) -> Node:
        if not isinstance(ordered, exp.Ordered) or ordered.args.get("with_fill"):
            raise Undivided
        ordered = ordered.copy()
        by = _bare(ordered.this)
        if is_all(by):
            return ordered
        number: int | None = None
        if isinstance(by, exp.Literal):
            number = _place(by, len(self.items))
        elif (name := _single_name(by)) is not None:
            number = self._aliased(name)
        if number is None:
            ordered.set("this", self._rows.resolved(by, self._aliases))
        else:
            ordered.set("this", exp.Literal.number(number + 1))
        return ordered

    def _aliased(self, name: str) -> int | None:
        """Return the number of the item that has the alias `name`."""
        for number, item in enumerate(self._select.expressions):
            if isinstance(item, exp.Alias) and same(str(item.alias), name):
                return number
        return None


def is_all(node: Node) -> bool:
    """Say whether `node`, of ORDER BY, is ALL."""
    return isinstance(node, exp.Var) and str(node.name).upper() == "ALL"


def _stripped(item: Node) -> Node:
    return item.this if isinstance(item, exp.Alias) else item


def _bare(node: Node) -> Node:
    """Return what is in brackets."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _single_name(node: Node) -> str | None:
    return str(node.name) if isinstance(node, exp.Column) and len(node.parts) == 1 else None


def _place(literal: exp.Literal, items: int) -> int:
    text = str(literal.this)
    if literal.is_string or not text.isdecimal() or not 1 <= int(text) <= items:
        raise Undivided
    return int(text) - 1


def _aggregates(node: Node) -> bool:
    return any(aggregate_of(each) is not None for each in node.walk())


def _add(expression: Node, known: list[Node]) -> None:
    if not any(are_same(expression, each) for each in known):
        known.append(expression)


def _distinct_values(nodes: Sequence[Node]) -> list[Node]:
    """Return the expressions whose distinct values are aggregated: none or one, since more would
    leave too little for fragments to put together."""
    values: list[Node] = []
    for node in nodes:
        for each in node.walk():
            # that of a FILTER comes first, and counts
            if isinstance(each.parent, exp.Filter):
                continue
            aggregate = aggregate_of(each)
            if aggregate is not None and aggregate.is_distinct:
                _add(distinct_argument(aggregate), values)
    if len(values) > 1:
        raise Undivided
    return values


def _rewriting(keys: Sequence[tuple[Node, exp.Column]], parts: Parts) -> Callable[[Node], Node]:
    """Return what puts columns of the parts into the place of keys and aggregates."""

    def rewrite(node: Node) -> Node:
        for key, column in keys:
            if isinstance(node, Node) and are_same(node, key):
                return column.copy()
        aggregate = aggregate_of(node)
        if aggregate is not None:
            return merged(aggregate, parts)
        if isinstance(node, exp.Column):
            raise Undivided  # neither grouped by nor aggregated
        return node

    return rewrite


def _fragment(select: exp.Select, rows: Rows, parts: Parts, keys: Sequence[Node]) -> exp.Select:
    items = parts.items()
    if not items:
        raise Undivided  # HAVING without anything to have
    fragment = exp.Select(
        expressions=items,
        from_=select.args["from_"].copy(),
    )
    where = select.args.get("where")
    if where is not None:
        fragment.set("where", exp.Where(this=rows.resolved(where.this)))
    if keys:
        fragment.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return fragment
