"""Queries of rows that want some of them: the first in an order, any few, or each once."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.server.sql.columns import same
from floeberg.server.sql.grouped import is_all
from floeberg.server.sql.own_rows import Rows, explicit_aliases
from floeberg.server.sql.parts import Described, Names, described, reading
from floeberg.server.sql.unmergeable import Undivided, called, is_of_a_row

_TAKEN = frozenset({"expressions", "from_", "where", "order", "limit", "offset", "distinct"})
_LARGEST = (1 << 63) - 1


def divided(
    select: exp.Select, rows: Rows, describe: Described, names: Names, parts_name: str
) -> tuple[exp.Select, exp.Select]:
    """Return the query of a fragment, and the query that merges the fragments' rows: a fragment
    has all that its share may contribute. Raises `Undivided` for a query that is not divided, and
    for one that only sorts."""
    if any(value and key not in _TAKEN for key, value in select.args.items()):
        raise Undivided
    order = select.args.get("order")
    if not all(map(is_of_a_row, [*select.expressions, *([] if order is None else [order])])):
        raise Undivided
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise Undivided
    kept = _kept(select)
    own = described(_without(select, "order", "limit", "offset"), describe)
    keys = _Keys(select, rows, [name for name, _ in own])
    order = keys.order()
    if order and kept is None and not distinct:
        raise Undivided
    if keys.hidden and (distinct or "unnest" in called(select)):
        raise Undivided
    inner = _without(select, "order", "limit", "offset")
    inner.set("expressions", [*inner.expressions, *(key.copy() for key in keys.hidden)])
    if kept is not None:
        if order:
            inner.set("order", exp.Order(expressions=[_by(key, place) for key, place in order]))
        inner.set("limit", exp.Limit(expression=exp.Literal.number(kept)))
    columns = [names.take(f"c{at}") for at in range(len(own) + len(keys.hidden))]
    fragment = exp.Select(
        expressions=[exp.Star()],
        from_=exp.From(
            this=exp.Subquery(
                this=inner,
                alias=exp.TableAlias(
                    this=exp.to_identifier(names.take("q")),
                    columns=[exp.to_identifier(column) for column in columns],
                ),
            )
        ),
    )
    merging = exp.Select(
        expressions=[
            exp.alias_(exp.column(column), exp.to_identifier(name, quoted=True))
            for column, (name, _) in zip(columns, own, strict=False)
        ],
        from_=reading(parts_name, described(fragment, describe)),
    )
    if order:
        ordered = [_by(key, exp.column(columns[int(place.name) - 1])) for key, place in order]
        merging.set("order", exp.Order(expressions=ordered))
    for key in ("limit", "offset", "distinct"):
        if (stated := select.args.get(key)) is not None:
            merging.set(key, stated.copy())
    return fragment, merging


def _without(select: exp.Select, *keys: str) -> exp.Select:
    copied = select.copy()
    for key in keys:
        copied.set(key, None)
    return copied


def _kept(select: exp.Select) -> int | None:
    """Return how many rows of a share may be wanted, None where all may be."""
    limit, offset = (select.args.get(key) for key in ("limit", "offset"))
    if limit is None:
        if offset is not None:
            raise Undivided
        return None
    if not isinstance(limit, exp.Limit) or limit.args.get("limit_options"):
        raise Undivided
    kept = _number(limit.expression) + (0 if offset is None else _number(offset.expression))
    # tools write the largest number for no limit; beyond it, the engine reads none
    return kept if kept < _LARGEST else None


def _number(node: object) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        return int(node.this)
    raise Undivided


class _Keys:
    """What a query orders by, as places among its columns; what is no column of it is `hidden`, and
    has the places behind."""

    def __init__(self, select: exp.Select, rows: Rows, names: Sequence[str]) -> None:
        self.hidden: list[Node] = []
        self._select = select
        self._rows = rows
        self._names = names

    def order(self) -> list[tuple[exp.Ordered, Node]]:
        order = self._select.args.get("order")
        found: list[tuple[exp.Ordered, Node]] = []
        for each in () if order is None else order.expressions:
            if not isinstance(each, exp.Ordered) or each.args.get("with_fill"):
                raise Undivided
            if is_all(each.this):
                places = list(range(1, len(self._names) + 1))
            else:
                places = [self._place(each.this.unnest())]
            found += [(each, exp.Literal.number(place)) for place in places]
        return found

    def _place(self, by: Node) -> int:
        if isinstance(by, exp.Literal):
            place = _number(by)
            if not 1 <= place <= len(self._names):
                raise Undivided
            return place
        if isinstance(by, exp.Column) and len(by.parts) == 1:
            name = str(by.name)
            found = [at for at, known in enumerate(self._names, 1) if same(known, name)]
            is_alias = name.casefold() in explicit_aliases(self._select.expressions)
            if len(found) > 1 and is_alias:
                raise Undivided
            if found and (is_alias or self._has_only_columns()):
                return found[0]
        if not any(by.find_all(exp.Column)):
            raise Undivided
        aliases = explicit_aliases(self._select.expressions)
        meant = {name: self._rows.resolved(item) for name, item in aliases.items()}
        self.hidden.append(self._rows.resolved(by, meant))
        return len(self._names) + len(self.hidden)

    def _has_only_columns(self) -> bool:
        """Say whether all that has no alias is a column of the rows. The field of a struct is
        called so too, but ORDER BY means the column of that name. Raises `Undivided` for what makes
        columns of the fields."""
        items = [item for item in self._select.expressions if not isinstance(item, exp.Alias)]
        if any(self._has_fields(item) for item in items):
            raise Undivided
        return all(
            item.is_star
            or (isinstance(item, exp.Column) and isinstance(self._rows.resolved(item), exp.Column))
            for item in items
        )

    def _has_fields(self, item: Node) -> bool:
        if isinstance(item, exp.Column) and item.is_star:
            source = str(item.parts[-2].name)
            return self._rows.has(source) or not same(source, self._rows.alias)
        return "unnest" in called(item)


def _by(key: exp.Ordered, place: Node) -> Node:
    ordered = key.copy()
    ordered.set("this", place.copy())
    return ordered
