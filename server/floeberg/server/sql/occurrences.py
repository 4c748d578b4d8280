"""Where the tables of the catalogs stand in a query, each time that one does.

A name behind FROM may be that of a WITH, as far as it can be seen from there: in the parts of the
WITH that follow, in the query that it belongs to, and, if it is RECURSIVE, in itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node


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
    if any(value and key not in known for key, value in source.args.items()):
        return False
    return not renames(source)


def reading_of(select: exp.Select, tables: Sequence[exp.Table]) -> exp.Table | exp.Subquery | None:
    """Return what reads the rows of `select`, a query in brackets or in a WITH: the brackets, or
    the name behind a FROM, if there is just one. `tables` are those that `find_tables` gives."""
    above: object = select.parent
    if isinstance(above, exp.Subquery):
        return above
    if not isinstance(above, exp.CTE) or not isinstance(above.parent, exp.With):
        return None
    alias = above.args.get("alias")
    if above.parent.args.get("recursive") or (alias and alias.args.get("columns")):
        return None
    name = str(above.alias).casefold()
    root = select.root()
    if sum(str(part.alias).casefold() == name for part in root.find_all(exp.CTE)) > 1:
        return None
    stored = {id(table) for table in tables}
    readers = [
        table
        for table in root.find_all(exp.Table)
        if id(table) not in stored and len(table.parts) == 1 and table.name.casefold() == name
    ]
    return readers[0] if len(readers) == 1 else None


def renames(source: exp.Table | exp.Subquery) -> bool:
    """Say whether an alias gives the columns of what it is of other names."""
    alias = source.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns"))
