"""Statements that are just a scan: columns of one table, a filter, a limit.

The workers answer such a statement by themselves, and no SQL engine sees a row of it. So it is one
only if the scan gives the very rows that the engine would: its filter must be exact, and its
columns are the table's as they are. Everything else is None here, and goes another road.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeGuard

import pyarrow as pa
from sqlglot import exp

from floeberg.protocol.arrow import arrow_field
from floeberg.protocol.expressions.model import TRUE, Expression
from floeberg.protocol.scans import ScanRequest
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import NestedField
from floeberg.server.sql.columns import Column, Source, find_column, words_of
from floeberg.server.sql.conditions import exact_filter
from floeberg.server.sql.constants import Null, Number, constant_of
from floeberg.server.sql.names import Session, TableReference, Version
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
    one column of the scan."""

    table: TableReference
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
    select = statement.tree
    while isinstance(select, exp.Subquery) and _only(select, {"this"}):
        select = select.this
    if statement.kind is not Kind.QUERY or not isinstance(select, exp.Select):
        return None
    if not _only(select, _TAKEN):
        return None
    from_ = select.args.get("from_")
    table = from_.this if isinstance(from_, exp.From) else None
    if not _is_plain_table(table):
        return None
    limit = _limit(select, session)
    if limit is None:
        return None
    reference = session.reference(table)
    if reference.information_schema is not None:
        return None
    source = source_of(table, reference, schema_of(reference))
    columns = _columns(select, source)
    if not columns:
        return None
    filter_ = _filter(select, source, session)
    if filter_ is None:
        return None
    return PlainScan(reference, columns, filter_, limit if limit >= 0 else None)


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


def _only(node: exp.Expression, keys: frozenset[str] | set[str]) -> bool:
    """Say whether nothing but `keys` is stated of a node; false and empty is not stated."""
    return all(key in keys for key, value in node.args.items() if value)


def _is_plain_table(table: object) -> TypeGuard[exp.Table]:
    if not isinstance(table, exp.Table):
        return False
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return False
    return isinstance(table.this, exp.Identifier | exp.Dot) and _only(
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


def _filter(select: exp.Select, source: Source, session: Session) -> Expression | None:
    where = select.args.get("where")
    if where is None:
        return TRUE

    def find(node: exp.Expression) -> Column | None:
        found = find_column(node, [source])
        return None if found is None else found[1]

    return exact_filter(where.this, find, session.zone)


def _columns(select: exp.Select, source: Source) -> tuple[OutputColumn, ...] | None:
    columns: list[OutputColumn] = []
    for item in select.expressions:
        star = _star(item, source)
        if star is not None:
            columns += star
            continue
        column = _column(item, source)
        if column is None:
            return None
        columns.append(column)
    return tuple(columns)


def _star(item: exp.Expression, source: Source) -> list[OutputColumn] | None:
    """Return the columns of `*`, `t.*` and `* EXCLUDE (…)`, or None for anything else."""
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        above = [str(part.name) for part in item.parts[:-1]]
        if source.behind_name([*above, "*"]) is None:
            return None
        item = item.this
    if not isinstance(item, exp.Star) or not _only(item, {"except_"}):
        return None
    excluded: set[str] = set()
    for name in item.args.get("except_") or ():
        words = words_of(name) if isinstance(name, exp.Expression) else None
        if isinstance(name, exp.Identifier):
            words = (str(name.name),)
        if words is None or len(words) != 1 or not source.has_column(words[0]):
            return None
        excluded.add(words[0].casefold())
    found = [
        source.column((field.name,))
        for field in source.schema.fields
        if field.name.casefold() not in excluded
    ]
    if any(column is None for column in found):
        return None  # two columns that differ in case only
    return [OutputColumn(c.fields[-1].name, c) for c in found if c is not None]


def _column(item: exp.Expression, source: Source) -> OutputColumn | None:
    """Return the column that an item of the select list is, cast to its own type at most."""
    name: str | None = None
    if isinstance(item, exp.Alias):
        name, item = item.alias, item.this
    elif isinstance(item, exp.Column | exp.Dot):
        pass
    else:
        return None  # without an alias, the engine names it by what is written
    while isinstance(item, exp.Paren) or is_cast(item):
        if isinstance(item, exp.Paren):
            item = item.this
            continue
        inner = find_column(item.this, [source])
        if inner is None or not is_type(item.to, inner[1].type):
            return None
        item = item.this
    found = find_column(item, [source])
    if found is None:
        return None
    column = found[1]
    if name is None:
        words = words_of(item)
        assert words is not None
        # a column is called as the table has it, a field as it was asked for
        name = column.fields[0].name if len(column.fields) == 1 else words[-1]
    return OutputColumn(name, column)
