"""Which road a query takes: what is scanned, what is computed of it, and where.

The first that fits:

- *scan*: the answer is that of one scan, which clients read from the workers;
- *projection*: likewise, but for the columns' names and order, or the fields of structs;
- *engine*: a worker's SQL engine computes it from the rows of all scans.

Knows what will be read, and what its rows are. Nothing is planned here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import pyarrow as pa
from sqlglot import exp

from floeberg.process.sql.binding import bind_statement
from floeberg.server.flight.scans import TableScan
from floeberg.server.sql.names import Session
from floeberg.server.sql.parsing import to_sql
from floeberg.server.sql.plain_scan import PlainScan, plain_scan
from floeberg.server.sql.splitting import split
from floeberg.server.sql.statements import Statement
from floeberg.server.sql.tables import MetadataRows, Tables

_BOUND_STATEMENTS = 1024
"""Remembered, so that a tool that prepares a statement and runs it, or runs it again and again with
other tickets, has it bound once."""


class Road(StrEnum):
    SCAN = "scan"
    PROJECTION = "projection"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True)
class NamedSource:
    """What a statement reads under `name`."""

    name: str
    source: TableScan | MetadataRows


@dataclass(frozen=True, slots=True)
class Route:
    """A query on its road: its rows have `schema`.

    `sql` is computed of the sources; on the road of a scan there is none. That of a projection is
    computed of each endpoint of the only scan by itself.
    """

    road: Road
    schema: pa.Schema
    sources: tuple[NamedSource, ...]
    sql: str = ""


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
    return Route(
        Road.ENGINE, _bound_schema(parts.sql, sources, session.zone.name), sources, parts.sql
    )


def _bound_schema(sql: str, sources: Sequence[NamedSource], timezone: str) -> pa.Schema:
    """Return the schema of the rows of a statement."""
    return _bound(sql, tuple((one.name, one.source.schema) for one in sources), timezone)


@lru_cache(maxsize=_BOUND_STATEMENTS)
def _bound(sql: str, inputs: tuple[tuple[str, pa.Schema], ...], timezone: str) -> pa.Schema:
    return bind_statement(sql, dict(inputs), timezone)


def _projection(plain: PlainScan, name: str) -> str:
    """Return what makes the columns of the answer of those of the scan."""
    columns = []
    for column in plain.columns:
        first, *below = column.source.fields
        node: exp.Expression = exp.column(exp.to_identifier(first.name, quoted=True))
        for field in below:
            node = exp.Dot(this=node, expression=exp.to_identifier(field.name, quoted=True))
        columns.append(exp.alias_(node, column.name, quoted=True))
    return to_sql(exp.select(*columns).from_(exp.to_identifier(name)))
