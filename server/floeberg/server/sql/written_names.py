"""The names of columns that a statement leaves to DuckDB: those that it gives to the text as it was
sent. What is made of that is written otherwise, and reads other tables."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.process.sql.item_names import item_names
from floeberg.server.sql.statements import Kind, Statement

_MOST_CHARACTERS = 20_000
"""Another parser reads the text for it, and as much again for each item."""
_MOST_ITEMS = 100


def named_as_written(statement: Statement, text: str) -> Statement:
    """Return the statement, which is `text`, with names for the unnamed items of its outermost
    SELECT, as far as DuckDB reads the text."""
    if statement.kind is not Kind.QUERY or statement.explained or len(text) > _MOST_CHARACTERS:
        return statement
    unnamed = _unnamed(_first_select(statement.tree))
    if not unnamed or len(unnamed) > _MOST_ITEMS:
        return statement
    names = item_names(text)
    assert statement.tree is not None
    tree = statement.tree.copy()
    select = _first_select(tree)
    if select is None or len(names) != len(select.expressions):
        return statement
    for at in unnamed:
        name = names[at]
        if name is not None:
            alias = exp.to_identifier(name, quoted=True)
            select.set("expressions", exp.Alias(this=select.expressions[at], alias=alias), at)
    return replace(statement, tree=tree)


def _first_select(tree: object) -> exp.Select | None:
    while isinstance(tree, exp.Subquery | exp.SetOperation):
        if isinstance(tree, exp.SetOperation) and tree.args.get("by_name"):
            return None  # a name says which column of the others is meant
        tree = tree.this
    return tree if isinstance(tree, exp.Select) else None


def _unnamed(select: exp.Select | None) -> list[int]:
    if select is None:
        return []
    return [at for at, item in enumerate(select.expressions) if _is_unnamed(item)]


def _is_unnamed(item: Node) -> bool:
    return not isinstance(item, exp.Alias | exp.Aliases | exp.Column | exp.Dot | exp.Star)
