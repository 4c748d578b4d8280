"""What names mean in a query that reads the rows of one source, which all have a full name here.

A name may be that of a column, or that of an item of the select list, an alias. Where it is both,
the engine chooses by the place that it stands in; no choice is made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.server.sql.columns import same
from floeberg.server.sql.unmergeable import Undivided, are_same


@dataclass(frozen=True, slots=True)
class Rows:
    """The source: what it is called, if it has a name, and its columns. No two rows have the same
    values in all of `identifiers`, if there are any."""

    alias: str
    columns: Sequence[str]
    identifiers: Sequence[str] = ()

    def has(self, name: str) -> bool:
        return any(same(name, column) for column in self.columns)

    def are_told_apart_by(self, keys: Sequence[Node]) -> bool:
        """Say whether the values of `keys`, with full names, are known to differ for all rows."""
        names = {str(key.name) for key in keys if isinstance(key, exp.Column)}
        return bool(self.identifiers) and names.issuperset(self.identifiers)

    def resolved(self, node: Node, aliases: Mapping[str, Node] | None = None) -> Node:
        """Return `node` with the full name of each column, and with what they stand for in the
        place of `aliases`, whose keys are in lower case.

        Raises `Undivided` where a name is none of both, or may be either.
        """

        def full(each: Node) -> Node:
            match each:
                case exp.Lambda() | exp.Star() | exp.Columns() | exp.PositionalColumn():
                    if isinstance(each.parent, exp.Count):
                        return each
                    raise Undivided
                case exp.Column():
                    return self._meant(each, aliases or {})
            return each

        # a root has no parent to be replaced in
        return node.copy().transform(full, copy=False)

    def _meant(self, column: exp.Column, aliases: Mapping[str, Node]) -> Node:
        parts = column.parts
        if any(not isinstance(part, exp.Identifier) for part in parts):
            raise Undivided
        words = [str(part.name) for part in parts]
        is_column = self.has(words[0])
        is_behind = len(words) > 1 and bool(self.alias) and same(words[0], self.alias)
        expression = aliases.get(words[0].casefold()) if len(words) == 1 else None
        if expression is not None:
            if is_column and not self._is_column(expression, words[0]):
                raise Undivided
            return exp.Paren(this=expression.copy())
        if is_column == is_behind:
            raise Undivided
        name, *below = words if is_column else words[1:]
        found = [known for known in self.columns if same(known, name)]
        if len(found) != 1:
            raise Undivided
        meant: Node = exp.Column(
            this=exp.to_identifier(found[0], quoted=True),
            table=exp.to_identifier(self.alias, quoted=True) if self.alias else None,
        )
        for field in below:
            meant = exp.Dot(this=meant, expression=exp.to_identifier(field, quoted=True))
        return meant

    @staticmethod
    def _is_column(node: Node, name: str) -> bool:
        meant = node.unnest()
        return isinstance(meant, exp.Column) and same(str(meant.name), name)


def explicit_aliases(items: Sequence[Node]) -> dict[str, Node]:
    """Return what the aliases in a select list stand for, by their names in lower case.

    Raises `Undivided` where one name stands for two things.
    """
    aliases: dict[str, Node] = {}
    for item in items:
        if isinstance(item, exp.Alias):
            name = str(item.alias).casefold()
            if not are_same(aliases.setdefault(name, item.this), item.this):
                raise Undivided
    return aliases
