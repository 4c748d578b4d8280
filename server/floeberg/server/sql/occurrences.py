"""Where the tables of the catalogs stand in a query, each time that one does.

A name behind FROM may be that of a WITH, as far as it can be seen from there: in the parts of the
WITH that follow, in the query that it belongs to, and, if it is RECURSIVE, in itself.
"""

from __future__ import annotations

from typing import TypeGuard

from sqlglot import exp


def find_tables(tree: exp.Expression) -> list[exp.Table]:
    """Return the tables that are not made by the query itself, nor by a function, in an order that
    is the same for every copy of `tree`."""
    tables: list[exp.Table] = []
    nobody: frozenset[str] = frozenset()
    waiting: list[tuple[exp.Expression, frozenset[str]]] = [(tree, nobody)]
    while waiting:
        node, made = waiting.pop()
        if _is_named(node) and not (len(node.parts) == 1 and node.name.casefold() in made):
            tables.append(node)
        with_ = node.args.get("with_")
        below: list[tuple[exp.Expression, frozenset[str]]] = []
        if isinstance(with_, exp.With):
            is_recursive = bool(with_.args.get("recursive"))
            for part in with_.expressions:
                name = str(part.alias).casefold()
                below.append((part, made | {name} if is_recursive else made))
                made = made | {name}
        for key, child in node.args.items():
            if key != "with_":
                children = child if isinstance(child, list) else [child]
                below += [(c, made) for c in children if isinstance(c, exp.Expression)]
        waiting += reversed(below)
    return tables


def _is_named(node: object) -> TypeGuard[exp.Table]:
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier | exp.Dot)


def query_of(node: exp.Expression) -> exp.Select | None:
    """Return the SELECT that `node` stands in, and no other between them."""
    return node.find_ancestor(exp.Select)


def is_direct(table: exp.Table) -> bool:
    """Say whether a table stands right behind FROM or a JOIN of a SELECT, with nothing but a name
    to it: no sample, no pivot, no other names for its columns, no joins in brackets."""
    above: object = table.parent
    if not isinstance(above, exp.From | exp.Join) or not isinstance(above.parent, exp.Select):
        return False
    if any(table.args.get(key) for key in ("sample", "pivots", "joins", "laterals")):
        return False
    return not renames(table)


def renames(source: exp.Table | exp.Subquery) -> bool:
    """Say whether an alias gives the columns of what it is of other names."""
    alias = source.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns"))
