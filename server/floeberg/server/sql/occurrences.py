"""Where the tables of the catalogs stand in a query, each time that one does.

A name behind FROM may be that of a WITH, as far as it can be seen from there: in the parts of the
WITH that follow, in the query that it belongs to, and, if it is RECURSIVE, in itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeGuard

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

MOST_LEVELS = 25
"""Through so many queries, each within another one, filters and fragments are looked for."""


def find_tables(tree: Node) -> list[exp.Table]:
    """Return the tables that are not made by the query itself, nor by a function, in an order that
    is the same for every copy of `tree`."""
    tables: list[exp.Table] = []
    nobody: frozenset[str] = frozenset()
    waiting: list[tuple[Node, frozenset[str]]] = [(tree, nobody)]
    while waiting:
        node, made = waiting.pop()
        if _is_named(node) and not (len(node.parts) == 1 and node.name.casefold() in made):
            tables.append(node)
        with_ = node.args.get("with_")
        below: list[tuple[Node, frozenset[str]]] = []
        if isinstance(with_, exp.With):
            is_recursive = bool(with_.args.get("recursive"))
            for part in with_.expressions:
                name = str(part.alias).casefold()
                below.append((part, made | {name} if is_recursive else made))
                made = made | {name}
        for key, child in node.args.items():
            if key != "with_":
                children = child if isinstance(child, list) else [child]
                below += [(c, made) for c in children if isinstance(c, Node)]
        waiting += reversed(below)
    return tables


def _is_named(node: object) -> TypeGuard[exp.Table]:
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier | exp.Dot)


def states_only(node: Node, keys: Collection[str]) -> bool:
    """Say whether nothing but `keys` is stated of a node; false and empty is not stated."""
    return all(key in keys for key, value in node.args.items() if value)


def query_of(node: Node) -> exp.Select | None:
    """Return the SELECT that `node` stands in, and no other between them."""
    return node.find_ancestor(exp.Select)


def is_direct(source: exp.Table | exp.Subquery) -> bool:
    """Say whether a table, or a query in brackets, stands right behind FROM or a JOIN of a SELECT,
    with nothing but a name to it: no sample, no pivot, no other names for its columns, no joins in
    the same brackets."""
    above: object = source.parent
    if not isinstance(above, exp.From | exp.Join) or not isinstance(above.parent, exp.Select):
        return False
    if isinstance(source, exp.Subquery):
        known = {"this", "alias"}
    else:
        known = {"this", "db", "catalog", "alias", "version", "when"}
    return states_only(source, known) and not renames(source)


class Readings:
    """Where the parts of a query are read, while `tree` does not change; `tables` are those that
    `find_tables` gives of it."""

    def __init__(self, tree: Node, tables: Sequence[exp.Table]) -> None:
        stored = {id(table) for table in tables}
        self._made: Counter[str] = Counter()
        self._readers: dict[str, list[exp.Table]] = {}
        for node in tree.find_all(exp.CTE, exp.Table):
            if isinstance(node, exp.CTE):
                self._made[str(node.alias).casefold()] += 1
            elif isinstance(node, exp.Table) and id(node) not in stored and len(node.parts) == 1:
                self._readers.setdefault(node.name.casefold(), []).append(node)

    def of(self, select: exp.Select) -> exp.Table | exp.Subquery | None:
        """Return what reads the rows of `select`, a query in brackets or in a WITH: the brackets,
        or the name behind a FROM, if there is just one."""
        above: object = select.parent
        if isinstance(above, exp.Subquery):
            return above
        if not isinstance(above, exp.CTE) or not isinstance(above.parent, exp.With):
            return None
        alias = above.args.get("alias")
        if above.parent.args.get("recursive") or (alias and alias.args.get("columns")):
            return None
        name = str(above.alias).casefold()
        readers = self._readers.get(name, [])
        return readers[0] if self._made[name] == 1 and len(readers) == 1 else None


def renames(source: exp.Table | exp.Subquery) -> bool:
    """Say whether an alias gives the columns of what it is of other names."""
    alias = source.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns"))
