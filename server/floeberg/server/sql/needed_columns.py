"""Which columns of its tables a query needs.

All that a name may mean is kept: a column is left out only if nothing in the whole query has its
name, or only with the name of another table before it. So a name means the same with the others
left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.protocol.errors import UnsupportedSql
from floeberg.protocol.metadata_columns import PLAIN_COLUMNS
from floeberg.server.sql.columns import Source, same, words_of
from floeberg.server.sql.occurrences import query_of, renames


@dataclass(slots=True)
class _Needs:
    table: exp.Table
    source: Source
    query: exp.Select | None
    all: bool = False
    names: set[str] = field(default_factory=set)


def needed_columns(tree: Node, tables: Sequence[tuple[exp.Table, Source]]) -> list[tuple[str, ...]]:
    """Return the names of the columns that `tree` needs of each of its tables, in the schema's
    order; perhaps none, where the rows are only counted. Behind them stand those of metadata
    columns, `_file` and so on, which are in no schema.

    Raises `UnsupportedSql` where all columns are needed and a metadata column too: `*` doesn't have
    it, and would.
    """
    needs = [_Needs(table, source, query_of(table)) for table, source in tables]
    for need in needs:
        if renames(need.table) or need.table.args.get("pivots"):
            need.all = True
    for node in tree.walk():
        match node:
            case exp.Star():
                _note_star(node, needs)
            case exp.Columns() | exp.Pivot() | exp.PositionalColumn():
                _note_all(needs, query_of(node))
            case exp.Anonymous() if str(node.name).lower() == "columns":
                _note_all(needs, query_of(node))
            case exp.Join():
                if str(node.args.get("method") or "").upper() == "NATURAL":
                    _note_all(needs, query_of(node))
            case exp.Column():
                if not isinstance(node.this, exp.Star):
                    _note_words(needs, words_of(_whole(node)) or words_of(node) or ())
            case exp.Identifier():
                if not _only_names(node):
                    _note_words(needs, (str(node.name),))
            case exp.Var():
                _note_words(needs, (str(node.name),))
    given = _given_names(tree)
    return [
        (
            *(
                f.name
                for f in need.source.schema.fields
                if need.all or f.name.casefold() in need.names
            ),
            *_metadata_columns(need, given),
        )
        for need in needs
    ]


def _given_names(tree: Node) -> set[str]:
    """Return the names that the statement's queries give to columns themselves."""
    found = {str(item.alias).casefold() for item in tree.find_all(exp.Alias)}
    for alias in tree.find_all(exp.TableAlias):
        found |= {str(column.name).casefold() for column in alias.args.get("columns") or ()}
    return found


def _metadata_columns(need: _Needs, given: set[str]) -> Iterator[str]:
    for column in PLAIN_COLUMNS:
        if column.name in need.names and not need.source.has_column(column.name):
            if need.all and column.name in given:
                continue  # it is that one, as far as can be seen
            if need.all:
                raise UnsupportedSql(
                    f"* stands in a query that reads {column.name}, which * does not have: name the"
                    " columns instead"
                )
            yield column.name


def _only_names(node: exp.Identifier) -> bool:
    """Say whether an identifier is looked at with what it is a part of, or names what stands before
    it: a table, a query, an item."""
    match node.parent:
        case exp.Column() | exp.Table():
            return True
        case exp.TableAlias():
            return node.arg_key == "this"
        case _:
            return node.arg_key == "alias"


def _whole(node: Node) -> Node:
    """Return the reference that begins with the column `node`: `a.b.c.d.e` is more than one."""
    while isinstance(node.parent, exp.Dot) and node.arg_key == "this":
        if not isinstance(node.parent.expression, exp.Identifier):
            break
        node = node.parent
    return node


def _note_all(needs: list[_Needs], query: exp.Select | None) -> None:
    for need in needs:
        if need.query is query:
            need.all = True


def _note_star(star: exp.Star, needs: list[_Needs]) -> None:
    above = star.parent
    item = above if isinstance(above, exp.Column) else star
    if isinstance(above, exp.Count) or _is_only_tested(item.parent):
        return
    query = query_of(star)
    if not isinstance(above, exp.Column):
        _note_all(needs, query)
        return
    words = [str(part.name) for part in above.parts[:-1] if isinstance(part, exp.Identifier)]
    # a table's, or a struct's
    for need in needs:
        if words and need.query is query and same(words[-1], need.source.alias):
            need.all = True
    _note_words(needs, words)


def _is_only_tested(query: object) -> bool:
    """Say whether nothing is asked of a query but whether it has rows, and its items do not matter
    to that: DISTINCT and GROUP BY ALL make fewer of the rows whose items are the same."""
    return (
        isinstance(query, exp.Select)
        and isinstance(query.parent, exp.Exists)
        and not (query.args.get("distinct") or query.args.get("group"))
    )


def _note_words(needs: list[_Needs], words: Sequence[str]) -> None:
    for need in needs:
        need.names.update(_meant(need, words))


def _meant(need: _Needs, words: Sequence[str]) -> Iterator[str]:
    if not words:
        return
    # it may be one of this table's columns whatever follows
    if len(words) == 1 or need.source.has_column(words[0]):
        yield words[0].casefold()
    if len(words) == 1 and same(words[0], need.source.alias):
        need.all = True  # the whole row
    for i, word in enumerate(words[:-1]):
        if same(word, need.source.alias):
            yield from (after.casefold() for after in words[i + 1 :])
