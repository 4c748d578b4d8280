"""What a name in a query means among a table's columns, by DuckDB's rules.

Names have no case, quoted or not; a dot reaches from a table into its columns, and from a struct
into its fields. What could mean two things means nothing here, and is left to the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.protocol.errors import FloebergError
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import NestedField, StructType, Type


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct below one. `name` is the dotted name that floeberg's filters
    and selections know it by, `fields` the way down to it."""

    name: str
    fields: tuple[NestedField, ...]

    @property
    def type(self) -> Type:
        return self.fields[-1].type

    @property
    def required(self) -> bool:
        """Whether no row has null here."""
        return all(field.required for field in self.fields)


def words_of(node: Node) -> tuple[str, ...] | None:
    """Return the names that a reference is made of, from the left, `a.b` and `a['b']` alike; None
    for what is no reference."""
    match node:
        case exp.Column():
            parts = node.parts
            if any(not isinstance(part, exp.Identifier) for part in parts):
                return None
            return tuple(str(part.name) for part in parts)
        case exp.Paren():
            return words_of(node.this)
        case exp.Dot(expression=exp.Identifier() as last):
            above = words_of(node.this)
            return None if above is None else (*above, str(last.name))
        case exp.Bracket(expressions=[exp.Literal(is_string=True) as last]):
            above = words_of(node.this)
            return None if above is None else (*above, str(last.this))
        case _:
            return None


def same(one: str, other: str) -> bool:
    """Say whether two identifiers are the same to SQL.

    >>> same("Orders", "ORDERS")
    True
    """
    return one.casefold() == other.casefold()


@dataclass(frozen=True, slots=True)
class Source:
    """A table behind FROM: what it is called there, and its columns.

    `names` are the ways to name it: `("o",)` where it has an alias, else the table's name with as
    much as is known of what it is in, `("lake", "db", "orders")`.
    """

    names: tuple[str, ...]
    schema: Schema

    @property
    def alias(self) -> str:
        return self.names[-1]

    def behind_name(self, words: Sequence[str]) -> Sequence[str] | None:
        """Return what follows this table's name in `words`, or None where they do not begin with
        it, or are nothing else."""
        for count in range(1, min(len(self.names), len(words) - 1) + 1):
            if all(map(same, words[:count], self.names[-count:])):
                return words[count:]
        return None

    def has_column(self, name: str) -> bool:
        return any(same(field.name, name) for field in self.schema.fields)

    def column(self, words: Sequence[str]) -> Column | None:
        """Return the column that `words`, without the table's name, reach."""
        fields: tuple[NestedField, ...] = self.schema.fields
        path: list[NestedField] = []
        for word in words:
            found = [field for field in fields if same(field.name, word)]
            if len(found) != 1:
                return None
            path.append(found[0])
            below = found[0].type
            fields = below.fields if isinstance(below, StructType) else ()
        if not path:
            return None
        return _known(path, self.schema)


def _known(path: Sequence[NestedField], schema: Schema) -> Column | None:
    """Return the column at the end of a path from the schema's columns down, unless another has its
    dotted name."""
    name = ".".join(field.name for field in path)
    try:
        meant = schema.lookup(name)
    except FloebergError:
        return None
    # a column whose own name has dots hides the field
    return Column(name, tuple(path)) if meant.field_id == path[-1].field_id else None


def below(column: Column, words: Sequence[str], schema: Schema) -> Column | None:
    """Return the field that `words` reach below a column of `schema`, itself for none; None where
    there is no such field."""
    path = list(column.fields)
    for word in words:
        type_ = path[-1].type
        inner = type_.fields if isinstance(type_, StructType) else ()
        found = [field for field in inner if same(field.name, word)]
        if len(found) != 1:
            return None
        path.append(found[0])
    return _known(path, schema)


def find_column(node: Node, sources: Sequence[Source]) -> tuple[Source, Column] | None:
    """Return the one column of one of the `sources` that a reference means, or None where it means
    none of them, or may mean several."""
    words = words_of(node)
    if not words:
        return None
    found: list[tuple[Source, Sequence[str]]] = []
    for source in sources:
        if source.has_column(words[0]):
            found.append((source, words))
        if (rest := source.behind_name(words)) is not None:
            found.append((source, rest))
    if len(found) != 1:
        return None
    source, rest = found[0]
    column = source.column(rest)
    return None if column is None else (source, column)
