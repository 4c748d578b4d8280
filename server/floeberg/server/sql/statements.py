"""Checked statements: what a client may ask, and nothing else.

A statement reads: SELECT, WITH, VALUES and set operations, each with EXPLAIN or without, SHOW and
DESCRIBE. Everything that would change, configure or reach beyond the catalogs is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node
from sqlglot.expressions.dml import DML

from floeberg.protocol.errors import BadSql, ReadOnly, UnsupportedSql
from floeberg.protocol.suggestions import cut, quoted
from floeberg.server.sql.functions import check_functions
from floeberg.server.sql.parameters import Parameter, literal_of
from floeberg.server.sql.parsing import MAX_CHARACTERS, parse_sql, to_sql

MAX_PARAMETERS = 1000


class Kind(StrEnum):
    """What a statement does; `DESCRIBE` is of a table or of a query."""

    QUERY = "query"
    SHOW_TABLES = "show tables"
    SHOW_ALL_TABLES = "show all tables"
    SHOW_SCHEMAS = "show schemas"
    SHOW_DATABASES = "show databases"
    DESCRIBE = "describe"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that has passed all checks. Its tree is shared and never changed.

    `tree` is the query, what DESCRIBE describes (an `exp.Table`, or a query), or the `exp.Table`
    whose name is that of the schema of SHOW TABLES, or of the catalog of SHOW SCHEMAS, or None.
    `parameters` counts the parameters that are not bound yet; `has_time` says that the time when it
    was asked is in the tree, so that it does not come again.
    """

    kind: Kind
    tree: Node | None
    explained: bool = False
    analyzed: bool = False
    parameters: int = 0
    has_time: bool = False

    def bind(self, values: Sequence[Parameter]) -> Statement:
        """Return the statement with a literal in the place of each parameter.

        A value means what a literal means, so what it is compared with decides: text compares with
        a date as a date. Raises `BadSql` for another number of values than parameters, and
        `UnsupportedSql` for a value that no literal stands for, and for more than a statement may
        hold.
        """
        if len(values) != self.parameters:
            raise BadSql(
                f"parameters in the statement: {self.parameters}, values given: {len(values)};"
                " give one for each"
            )
        if self.tree is None or not values:
            return self
        literals = [literal_of(value) for value in values]
        self._check_length([len(to_sql(literal)) for literal in literals])

        def bound(node: Node) -> Node:
            if isinstance(node, exp.Placeholder):
                return literals[int(node.name) - 1].copy()
            return node

        return replace(self, tree=self.tree.transform(bound), parameters=0)

    def _check_length(self, lengths: Sequence[int]) -> None:
        assert self.tree is not None
        placed = self.tree.find_all(exp.Placeholder)
        characters = sum(lengths[int(node.name) - 1] for node in placed)
        if characters > MAX_CHARACTERS:
            raise UnsupportedSql(
                f"the values of the parameters take {characters:,} characters where they stand, and"
                f" a statement may have {MAX_CHARACTERS:,}; join with a table rather than send so"
                " much"
            )

    def sql(self) -> str:
        """Return the query, or what is described, as DuckDB's SQL."""
        return "" if self.tree is None else to_sql(self.tree)


_SHOWN = {
    "TABLES": Kind.SHOW_TABLES,
    "ALL TABLES": Kind.SHOW_ALL_TABLES,
    "SCHEMAS": Kind.SHOW_SCHEMAS,
    "DATABASES": Kind.SHOW_DATABASES,
    "CATALOGS": Kind.SHOW_DATABASES,
}


def parse_statement(text: str) -> Statement:
    """Return the only statement in `text`, checked.

    Raises `BadSql` for what is not SQL, `ReadOnly` for what would change something, and
    `UnsupportedSql` for what is not served; each says what to write instead.

    >>> parse_statement("SELECT * FROM orders WHERE id = ?").parameters
    1
    """
    parsed = parse_sql(text)
    tree = parsed.tree
    kind = Kind.QUERY
    shown: Node | None = tree
    match tree:
        case exp.Query() | exp.Values():
            pass
        case exp.Show():
            kind = _SHOWN[str(tree.this)]
            shown = tree.args.get("from_")
        case exp.Describe():
            kind = Kind.DESCRIBE
            shown = tree.this
            if not isinstance(shown, exp.Query | exp.Values | exp.Table):
                raise UnsupportedSql("DESCRIBE takes a table or a query, as in DESCRIBE db.orders")
        case DML() | exp.DDL():
            raise ReadOnly(type(tree).__name__.upper())
        case _:
            raise BadSql("the statement is no query; send one, such as SELECT 1")
    if parsed.explained and kind is not Kind.QUERY:
        raise UnsupportedSql("EXPLAIN tells the plan of a query; SHOW and DESCRIBE have none")
    if shown is not None:
        _check_nodes(shown)
        check_functions(shown)
    return Statement(kind, shown, parsed.explained, parsed.analyzed, _count_parameters(shown))


_TABLE_PARTS = frozenset(
    {"this", "db", "catalog", "alias", "version", "when", "sample", "pivots", "joins", "laterals"}
)


def _check_nodes(tree: Node) -> None:
    for node in tree.walk():
        match node:
            case DML() | exp.DDL() | exp.Drop() | exp.Alter():
                raise ReadOnly(type(node).__name__.upper())
            case exp.Into():
                raise ReadOnly("SELECT INTO")
            case exp.Lock():
                raise UnsupportedSql("nothing is locked here; leave out FOR UPDATE and FOR SHARE")
            case exp.Describe() | exp.Show() | exp.Command() | exp.Summarize():
                raise UnsupportedSql(
                    f"{type(node).__name__.upper()} inside of a query is not served; send it by"
                    " itself"
                )
            case exp.Table():
                for part, value in node.args.items():
                    if value and part not in _TABLE_PARTS:
                        raise UnsupportedSql(
                            f"{part.upper()} of a table is not served; leave it out"
                        )
            case exp.Star() if node.args.get("ilike"):
                raise UnsupportedSql("* LIKE is not served; name the columns")
            case exp.Parameter() | exp.SessionParameter():
                raise _named(node.name)


def _count_parameters(tree: Node | None) -> int:
    highest = 0
    for node in tree.find_all(exp.Placeholder) if tree is not None else ():
        name = str(node.name)
        if not (name.isascii() and name.isdigit()):
            raise _named(name)
        number = int(name[:9])
        if not 1 <= number <= MAX_PARAMETERS:
            raise UnsupportedSql(
                f"parameter ${cut(name, 20)} is not between $1 and ${MAX_PARAMETERS}"
            )
        highest = max(highest, number)
    return highest


def _named(name: str) -> UnsupportedSql:
    return UnsupportedSql(
        f"parameter {quoted(name)} has a name; write ? or $1, $2, … instead. A table with its"
        f' version goes into quotes: "t@{cut(name, 20)}"'
    )
