"""Which road a query takes: what is scanned, what is computed of it, and where.

The first that fits:

- *scan*: the answer is that of one scan, which clients read from the workers;
- *projection*: likewise, but for the columns' names and order, or the fields of structs;
- *fragments*: workers compute parts of the answer from the shares of one scan that each of them
  reads, and one of them merges the parts, if they are not the answer by themselves;
- *engine*: a worker's SQL engine computes it from the rows of all scans.

Knows what will be read, and what its rows are. Nothing is planned here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.process.sql.binding import Binding, bind_statement
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.errors import BadRequest, BadSql, UnsupportedSql
from floeberg.server.flight.scans import TableScan
from floeberg.server.sql.counted import Counted, counted
from floeberg.server.sql.fragments import fragments_of
from floeberg.server.sql.names import Session
from floeberg.server.sql.parsing import to_sql
from floeberg.server.sql.plain_scan import PlainScan, plain_scan
from floeberg.server.sql.remembered import Remembered
from floeberg.server.sql.splitting import Split, split
from floeberg.server.sql.statements import Statement
from floeberg.server.sql.tables import Tables, ToldRows


class Road(StrEnum):
    SCAN = "scan"
    PROJECTION = "projection"
    FRAGMENTS = "fragments"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True)
class NamedSource:
    """What a statement reads under `name`."""

    name: str
    source: TableScan | ToldRows


@dataclass(frozen=True, slots=True)
class Merge:
    """What makes the answer of the rows of fragments, which have `schema`; it reads them under
    `name`."""

    sql: str
    name: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Route:
    """A query on its road: its rows have `schema`.

    `sql` is computed of the sources; on the road of a scan there is none. That of a projection and
    of fragments is computed of each endpoint of the only scan by itself, and what `merge` says of
    all their rows.
    """

    road: Road
    schema: pa.Schema
    sources: tuple[NamedSource, ...]
    sql: str = ""
    merge: Merge | None = None
    counted: Counted | None = None
    """Where the answer is how many rows the only scan has: metadata may know that of files."""


def find_route(statement: Statement, session: Session, tables: Tables) -> Route:
    """Return the road of a query whose parameters are bound.

    Raises `BadSql` and `UnsupportedSql` for what would not run, and what looking up its tables
    raises.
    """
    plain = plain_scan(statement, session, tables.schema)
    if plain is not None and (scan := tables.plain(plain)) is not None:
        source = NamedSource("i0", scan)
        if plain.is_direct:
            return Route(Road.SCAN, scan.schema, (source,))
        return Route(Road.PROJECTION, plain.schema, (source,), _projection(plain, source.name))
    parts = split(statement, session, tables.schema)
    sources = tuple(NamedSource(one.name, tables.read(one)) for one in parts.inputs)
    inputs = tuple((one.name, one.source.schema) for one in sources)
    try:
        computed = _computed(parts, inputs, session.zone.name, comes_again=not statement.has_time)
    except BadSql as error:
        raise _of_whole_tables(error, parts, tables, session.zone.name) from error
    first = sources[0].source if sources else None
    if computed.fragment and isinstance(first, TableScan):
        if (count := counted(statement, session, tables.schema)) is not None:
            # the filter that is exact, of the columns that cost least
            exact = tables.filtered(first, count.scan)
            sources = (NamedSource(sources[0].name, exact),)
        return Route(
            Road.FRAGMENTS, computed.schema, sources, computed.fragment, computed.merge, count
        )
    return Route(Road.ENGINE, computed.schema, sources, parts.sql)


@dataclass(frozen=True, slots=True)
class _Computed:
    """The schema of a statement's rows, and how it is computed in fragments, if it is."""

    schema: pa.Schema
    fragment: str = ""
    merge: Merge | None = None


_Inputs: TypeAlias = tuple[tuple[str, pa.Schema], ...]

_BOUND: Remembered[tuple[Split, _Inputs, str], _Computed] = Remembered()
"""A tool that prepares a statement and runs it, or runs it again and again with other tickets, has
it bound once."""


def _computed(parts: Split, inputs: _Inputs, timezone: str, *, comes_again: bool) -> _Computed:
    key = parts, inputs, timezone
    if not comes_again:
        return _bound(*key)
    return _BOUND.get(key, len(parts.sql), lambda: _bound(*key))


def _bound(parts: Split, inputs: _Inputs, timezone: str) -> _Computed:
    with Binding(dict(inputs), timezone) as binding:

        def describe(sql: str) -> list[tuple[str, str]] | None:
            try:
                return binding.columns(sql)
            except BadRequest:
                return None

        schema = binding.schema(parts.sql)
        divided = fragments_of(parts, describe)
        if divided is None:
            return _Computed(schema)
        if divided.merge is None:
            return _Computed(schema, divided.fragment)
        try:
            merge = Merge(divided.merge, divided.name, binding.schema(divided.fragment))
        except UnsupportedSql:
            # parts of a type that is not sent between workers either
            return _Computed(schema)
        return _Computed(schema, divided.fragment, merge)


def _of_whole_tables(error: BadSql, parts: Split, tables: Tables, timezone: str) -> BadSql:
    """Return the error as it is over all columns of the tables: some are suggested for one that is
    not there, and inputs have only those that the statement names."""
    whole = {one.name: arrow_schema(tables.schema(one.table)) for one in parts.inputs}
    try:
        bind_statement(parts.sql, whole, timezone)
    except BadSql as better:
        return better
    return error


def _projection(plain: PlainScan, name: str) -> str:
    """Return what makes the columns of the answer of those of the scan."""
    columns = []
    for column in plain.columns:
        first, *below = column.source.fields
        node: Node = exp.column(exp.to_identifier(first.name, quoted=True))
        for field in below:
            node = exp.Dot(this=node, expression=exp.to_identifier(field.name, quoted=True))
        columns.append(exp.alias_(node, column.name, quoted=True))
    return to_sql(exp.select(*columns).from_(exp.to_identifier(name)))


def in_one_endpoint(route: Route) -> Route:
    """Return a route to the same rows whose answer is a single endpoint."""
    match route.road, route.merge:
        case Road.SCAN, _:
            (only,) = route.sources
            sql = to_sql(exp.select("*").from_(exp.to_identifier(only.name)))
            return replace(route, road=Road.ENGINE, sql=sql)
        case Road.PROJECTION | Road.FRAGMENTS, None:
            return replace(route, road=Road.ENGINE)
        case _:
            return route
