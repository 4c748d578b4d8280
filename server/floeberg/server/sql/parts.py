"""What fragments give: columns with names of their own, and how a merging statement reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.server.sql.parsing import to_sql
from floeberg.server.sql.restoring import is_carried, is_cast_back
from floeberg.server.sql.unmergeable import Undivided, are_same

Described = Callable[[str], Sequence[tuple[str, str]] | None]
"""Gives the columns of a query over the inputs, each by its name and its type as the engine writes
it, without reading a row; None for a query that the engine does not take."""


class Names:
    """Names that nothing else in a query has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {name.casefold() for name in taken}

    def take(self, wanted: str) -> str:
        """Return a name that begins with `wanted`."""
        name, count = wanted, 0
        while name.casefold() in self._taken:
            name, count = f"{wanted}_{count}", count + 1
        self._taken.add(name.casefold())
        return name


class Parts:
    """The columns of the fragments, one for each expression that is asked for."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._columns: list[tuple[str, Node]] = []
        self._types: dict[str, str] = {}

    def add(self, expression: Node) -> exp.Column:
        """Return the column that has the values of `expression`."""
        for name, known in self._columns:
            if are_same(known, expression):
                return exp.column(name)
        return self._added(expression)

    def _added(self, expression: Node) -> exp.Column:
        name = self._names.take(f"c{len(self._columns)}")
        self._columns.append((name, expression))
        return exp.column(name)

    def type_of(self, column: exp.Column) -> str | None:
        """Return the type of a column as the engine writes it, None before it was told."""
        return self._types.get(str(column.name))

    def tell(self, columns: Sequence[tuple[str, str]]) -> None:
        """Take the names and types of the fragments' columns."""
        self._types.update(columns)

    def items(self) -> list[Node]:
        """Return the fragments' select list."""
        return [
            exp.Alias(this=expression.copy(), alias=exp.to_identifier(name))
            for name, expression in self._columns
        ]


def described(select: Node, describe: Described) -> Sequence[tuple[str, str]]:
    """Return the columns of `select`. Raises `Undivided` where the engine does not take it."""
    columns = describe(to_sql(select))
    if columns is None:
        raise Undivided
    return columns


def reading(parts: str, columns: Sequence[tuple[str, str]]) -> exp.From:
    """Return a FROM that reads `columns`, by name and type, of the fragments' rows, as the types
    that the fragments had them in. Raises `Undivided` for a type that gets lost on the way."""
    if not all(is_carried(type_) for _, type_ in columns):
        raise Undivided
    table = exp.to_table(parts)
    if not any(is_cast_back(type_) for _, type_ in columns):
        return exp.From(this=table)
    items = [
        exp.alias_(_cast(exp.column(name), type_), name) if is_cast_back(type_) else name
        for name, type_ in columns
    ]
    restored = exp.Select(
        expressions=[exp.column(item) if isinstance(item, str) else item for item in items],
        from_=exp.From(this=table),
    )
    return exp.From(
        this=exp.Subquery(this=restored, alias=exp.TableAlias(this=exp.to_identifier(parts)))
    )


def _cast(column: Node, type_: str) -> Node:
    # in the words of the engine, which needs no reading by another parser
    return exp.Cast(this=column, to=exp.DataType(this=exp.DType.USERDEFINED, kind=type_))
