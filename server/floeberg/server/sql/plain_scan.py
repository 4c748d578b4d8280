"""Statements that are just a scan: columns of one table, a filter, a limit.

The workers answer such a statement by themselves, and no SQL engine sees a row of it. So it is one
only if the scan gives the very rows that the engine would: its filter must be exact, and its
columns are the table's as they are. Everything else is None here, and goes another road.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeGuard

import pyarrow as pa
from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.protocol.arrow import arrow_field
from floeberg.protocol.expressions.model import TRUE, And, Expression
from floeberg.protocol.scans import ScanRequest
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import NestedField
from floeberg.server.sql.columns import Column, Source, below, find_column, same, words_of
from floeberg.server.sql.conditions import FindColumn, exact_filter
from floeberg.server.sql.constant_expressions import constant_of
from floeberg.server.sql.constants import Null, Number
from floeberg.server.sql.names import Session, TableReference, Version
from floeberg.server.sql.occurrences import renames, states_only
from floeberg.server.sql.statements import Kind, Statement
from floeberg.server.sql.types import is_cast, is_type

SchemaOf = Callable[[TableReference], Schema]
"""Gives the schema that a table is read with; raises what the lookup of the table raises."""


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the answer: what it is called, and the column or field of a struct that it is."""

    name: str
    source: Column

    @property
    def field(self) -> NestedField:
        """The answer's field: it may be null where the column, or a struct around it, may be."""
        return replace(self.source.fields[-1], name=self.name, required=self.source.required)


@dataclass(frozen=True)
class PlainScan:
    """A scan that answers a statement. `columns` are the answer's, in order; several may come from
    one column of the scan. `read` is the schema that the table is read with."""

    table: TableReference
    read: Schema
    columns: tuple[OutputColumn, ...]
    filter: Expression
    limit: int | None

    @cached_property
    def select(self) -> tuple[str, ...]:
        """The columns that are read, each once, by floeberg's names."""
        return tuple(dict.fromkeys(column.source.name for column in self.columns))

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the answer."""
        return pa.schema([arrow_field(column.field) for column in self.columns])

    @property
    def is_direct(self) -> bool:
        """Whether the scan's own columns are the answer's: none is renamed, repeated, or lies in a
        struct."""
        return all(c.source.fields == (c.field,) for c in self.columns) and len(self.select) == len(
            self.columns
        )

    def request(self, version: Version) -> ScanRequest:
        """Return the scan of the table at the `version` that its name turned out to mean."""
        return ScanRequest(
            filter=self.filter,
            select=self.select,
            snapshot_id=version.snapshot_id,
            ref=version.ref,
            as_of_ms=version.as_of_ms,
            limit=self.limit,
        )


_TAKEN = frozenset({"expressions", "from_", "where", "limit"})


def plain_scan(statement: Statement, session: Session, schema_of: SchemaOf) -> PlainScan | None:
    """Return the scan that is the statement, or None where it is more than one.

    Parameters must have been bound. Raises what `schema_of` raises, and what
    `Session.reference` does.
    """
    if statement.kind is not Kind.QUERY:
        return None
    return _plain(statement.tree, session, schema_of)


def _plain(select: object, session: Session, schema_of: SchemaOf) -> PlainScan | None:
    while isinstance(select, exp.Subquery) and states_only(select, {"this"}):
        select = select.this
    if not isinstance(select, exp.Select) or not states_only(select, _TAKEN):
        return None
    limit = _limit(select, session)
    from_ = select.args.get("from_")
    behind = from_.this if isinstance(from_, exp.From) else None
    if limit is None:
        return None
    if _is_plain_table(behind):
        return _of_table(select, behind, limit, session, schema_of)
    # tools put a query into brackets, to look at its columns or its first rows
    if (
        isinstance(behind, exp.Subquery)
        and states_only(behind, {"this", "alias"})
        and not renames(behind)
    ):
        inner = _plain(behind.this, session, schema_of)
        return None if inner is None else _around(select, behind, inner, limit, session)
    return None


def _of_table(
    select: exp.Select, table: exp.Table, limit: int, session: Session, schema_of: SchemaOf
) -> PlainScan | None:
    reference = session.reference(table)
    if reference.information_schema is not None:
        return None
    source = source_of(table, reference, schema_of(reference))

    def find(node: Node) -> Column | None:
        found = find_column(node, [source])
        return None if found is None else found[1]

    names = [field.name for field in source.schema.fields]
    columns = _columns(select, _Scope(find, source.behind_name, names))
    if not columns:
        return None
    filter_ = _filter(select, find, session)
    if filter_ is None:
        return None
    return PlainScan(reference, source.schema, columns, filter_, limit if limit >= 0 else None)


def _around(
    select: exp.Select, behind: exp.Subquery, inner: PlainScan, limit: int, session: Session
) -> PlainScan | None:
    """Return the scan that a query is whose table is another scan in brackets."""
    alias = behind.alias

    def behind_name(words: Sequence[str]) -> Sequence[str] | None:
        return words[1:] if alias and len(words) > 1 and same(words[0], alias) else None

    def find(node: Node) -> Column | None:
        words = words_of(node)
        if not words:
            return None
        readings = [words]
        if (rest := behind_name(words)) is not None:
            readings.append(tuple(rest))
        found = [
            (column, reading[1:])
            for reading in readings
            for column in inner.columns
            if same(column.name, reading[0])
        ]
        if len(found) != 1:
            return None
        column, fields = found[0]
        return below(column.source, fields, inner.read)

    names = [column.name for column in inner.columns]
    columns = _columns(select, _Scope(find, behind_name, names))
    if not columns:
        return None
    filter_ = _filter(select, find, session)
    if filter_ is None or (inner.limit is not None and filter_ != TRUE):
        return None
    limits = [each for each in (limit if limit >= 0 else None, inner.limit) if each is not None]
    filters = [each for each in (inner.filter, filter_) if each != TRUE]
    joined = And(tuple(filters)) if len(filters) > 1 else filters[0] if filters else TRUE
    return PlainScan(inner.table, inner.read, columns, joined, min(limits, default=None))


def source_of(table: exp.Table, reference: TableReference, schema: Schema) -> Source:
    """Return what a table behind FROM is to the rest of its query."""
    if table.alias:
        return Source((table.alias,), schema)
    names = reference.parts
    for meaning in reference.meanings[:1]:
        full = meaning.name.parts
        if full[-len(names) :] == names:
            names = full
    return Source(names, schema)


def _is_plain_table(table: object) -> TypeGuard[exp.Table]:
    if not isinstance(table, exp.Table):
        return False
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return False
    return isinstance(table.this, exp.Identifier | exp.Dot) and states_only(
        table, {"this", "db", "catalog", "alias", "version", "when"}
    )


def _limit(select: exp.Select, session: Session) -> int | None:
    """Return how many rows are asked for, -1 for all, or None where it is not plain."""
    limit = select.args.get("limit")
    if limit is None:
        return -1
    if not isinstance(limit, exp.Limit) or limit.args.get("limit_options"):
        return None
    if limit.args.get("offset") or limit.args.get("expressions"):
        return None
    match constant_of(limit.expression, session.zone):
        case Null():
            return -1
        case Number(value, _, 0) if 0 <= value < 1 << 63:
            return int(value)
        case _:
            return None


def _filter(select: exp.Select, find: FindColumn, session: Session) -> Expression | None:
    where = select.args.get("where")
    return TRUE if where is None else exact_filter(where.this, find, session.zone)


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the items of a select list may name: columns, by `find`, and all of them, `names`;
    `behind_name` takes the name of what they are of from before them."""

    find: FindColumn
    behind_name: Callable[[Sequence[str]], Sequence[str] | None]
    names: Sequence[str]


def _columns(select: exp.Select, scope: _Scope) -> tuple[OutputColumn, ...] | None:
    columns: list[OutputColumn] = []
    for item in select.expressions:
        star = _star(item, scope)
        if star is not None:
            columns += star
            continue
        column = _column(item, scope)
        if column is None:
            return None
        columns.append(column)
    return tuple(columns)


def _star(item: Node, scope: _Scope) -> list[OutputColumn] | None:
    """Return the columns of `*`, `t.*` and `* EXCLUDE (…)`, or None for anything else."""
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        above = [str(part.name) for part in item.parts[:-1]]
        if scope.behind_name([*above, "*"]) is None:
            return None
        item = item.this
    if not isinstance(item, exp.Star) or not states_only(item, {"except_"}):
        return None
    known = {name.casefold() for name in scope.names}
    excluded: set[str] = set()
    for name in item.args.get("except_") or ():
        words = words_of(name) if isinstance(name, Node) else None
        if isinstance(name, exp.Identifier):
            words = (str(name.name),)
        if words is None or len(words) != 1 or words[0].casefold() not in known:
            return None
        excluded.add(words[0].casefold())
    columns: list[OutputColumn] = []
    for name in scope.names:
        if name.casefold() not in excluded:
            column = scope.find(exp.column(exp.to_identifier(name, quoted=True)))
            if column is None:
                return None  # two columns that differ in case only
            columns.append(OutputColumn(name, column))
    return columns


def _column(item: Node, scope: _Scope) -> OutputColumn | None:
    """Return the column that an item of the select list is, cast to its own type at most."""
    name: str | None = None
    if isinstance(item, exp.Alias):
        name, item = item.alias, item.this
    elif not isinstance(item, exp.Column | exp.Dot):
        return None  # without an alias, the engine names it by what is written
    while isinstance(item, exp.Paren) or is_cast(item):
        if isinstance(item, exp.Paren):
            item = item.this
            continue
        inner = scope.find(item.this)
        if inner is None or not is_type(item.to, inner.type):
            return None
        item = item.this
    column = scope.find(item)
    if column is None:
        return None
    if name is None:
        words = words_of(item)
        assert words is not None
        # a column is called as the table has it, a field as it was asked for
        name = words[-1]
        if len(scope.behind_name(words) or words) == 1:
            name = next(known for known in scope.names if same(known, name))
    return OutputColumn(name, column)
