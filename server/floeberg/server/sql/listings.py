"""What there is, as tables: catalogs, schemas, tables with their columns, and keys, of which there
are none.

A listing holds what its caller may see. Tables are told as they are now, whatever the session says
of a snapshot. Columns and their nullability are the specification's.

Spec: `FlightSql.proto`, CommandGetCatalogs, -DbSchemas, -Tables, -TableTypes, -PrimaryKeys,
-ExportedKeys, -ImportedKeys and -CrossReference.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass

import pyarrow as pa

from floeberg.protocol.errors import Cancelled, FloebergError, UnknownTable
from floeberg.protocol.flight_sql import GetDbSchemas, GetTables
from floeberg.protocol.scans import ScanRequest, resolve
from floeberg.server.access import Caller
from floeberg.server.sql.like import like, literal
from floeberg.server.sql.listed_columns import listed_schema
from floeberg.server.sql.listed_names import TABLE, SqlName

logger = logging.getLogger(__name__)

_LOADED_AT_ONCE = 8


def _columns(**types: pa.DataType) -> pa.Schema:
    """Return a schema; a name that ends in `_` is that of a column which may hold nulls."""
    return pa.schema(
        [pa.field(n.removesuffix("_"), t, nullable=n.endswith("_")) for n, t in types.items()]
    )


_TEXT = pa.string()
CATALOGS = _columns(catalog_name=_TEXT)
SCHEMAS = _columns(catalog_name_=_TEXT, db_schema_name=_TEXT)
TABLES = _columns(catalog_name_=_TEXT, db_schema_name_=_TEXT, table_name=_TEXT, table_type=_TEXT)
TABLES_WITH_SCHEMA = TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))
TABLE_TYPES = _columns(table_type=_TEXT)
PRIMARY_KEYS = _columns(
    catalog_name_=_TEXT,
    db_schema_name_=_TEXT,
    table_name=_TEXT,
    column_name=_TEXT,
    key_name_=_TEXT,
    key_sequence=pa.int32(),
)
FOREIGN_KEYS = _columns(
    pk_catalog_name_=_TEXT,
    pk_db_schema_name_=_TEXT,
    pk_table_name=_TEXT,
    pk_column_name=_TEXT,
    fk_catalog_name_=_TEXT,
    fk_db_schema_name_=_TEXT,
    fk_table_name=_TEXT,
    fk_column_name=_TEXT,
    key_sequence=pa.int32(),
    fk_key_name_=_TEXT,
    pk_key_name_=_TEXT,
    update_rule=pa.uint8(),
    delete_rule=pa.uint8(),
)


def list_catalogs(caller: Caller) -> pa.Table:
    rows = [{"catalog_name": name} for name in sorted(caller.catalogs.names)]
    return pa.Table.from_pylist(rows, schema=CATALOGS)


def list_schemas(command: GetDbSchemas, caller: Caller) -> pa.Table:
    """Return the namespaces that hold tables. Raises what `list_tables` does."""
    found = _served(caller, command.catalog, command.schema_pattern)
    rows = [
        {"catalog_name": catalog, "db_schema_name": schema}
        for catalog, schema in sorted({(t.name.catalog, t.name.schema) for t in found})
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS)


def list_table_types() -> pa.Table:
    return pa.Table.from_pylist([{"table_type": TABLE}], schema=TABLE_TYPES)


def list_tables(command: GetTables, caller: Caller, is_cancelled: Callable[[], bool]) -> pa.Table:
    """Return the tables that are asked for, in the order of their names.

    A catalog that doesn't answer hides no other; its error is raised where it was asked for, or
    none is left. So is the error of a table whose columns were asked for by its name; among others,
    it has no columns. Raises `Cancelled` soon after `is_cancelled` says so.
    """
    schema = TABLES_WITH_SCHEMA if command.with_schema else TABLES
    # clients write the type as they like
    if command.types and TABLE not in (type_.lower() for type_ in command.types):
        return schema.empty_table()
    matches = like(command.table_pattern)
    found = sorted(
        (
            t
            for t in _served(caller, command.catalog, command.schema_pattern)
            if matches(t.name.table)
        ),
        key=lambda served: served.name,
    )
    if not command.with_schema:
        return pa.Table.from_pylist([_row(served.name) for served in found], schema=schema)
    rows = []
    for served, columns in zip(
        found, _each_with_columns(found, caller, command.table_pattern, is_cancelled), strict=True
    ):
        if columns is not None:
            rows.append(_row(served.name) | {"table_schema": columns.serialize().to_pybytes()})
    return pa.Table.from_pylist(rows, schema=schema)


@dataclass(frozen=True, slots=True)
class _Served:
    name: SqlName
    identifier: tuple[str, ...]


def _served(caller: Caller, catalog: str | None, schema_pattern: str | None) -> Iterator[_Served]:
    """Yield the tables of one catalog, or of all, whose schemas match."""
    matches = like(schema_pattern)
    for named, identifier in _identifiers(caller, catalog):
        if identifier:
            name = SqlName.of(named, identifier)
            if matches(name.schema):
                yield _Served(name, identifier)


def _identifiers(caller: Caller, catalog: str | None) -> Sequence[tuple[str, tuple[str, ...]]]:
    if catalog is not None:
        if catalog not in caller.catalogs.names:
            return []
        return [(catalog, i) for i in caller.catalogs.get(catalog).list_tables()]
    listing = caller.catalogs.list_tables()
    if listing.failures and not listing.tables:
        raise next(iter(listing.failures.values()))
    return listing.tables


def _row(name: SqlName) -> dict[str, object]:
    return {
        "catalog_name": name.catalog,
        "db_schema_name": name.schema,
        "table_name": name.table,
        "table_type": TABLE,
    }


# --- columns -------------------------------------------------------------------------------------


def _each_with_columns(
    found: Sequence[_Served],
    caller: Caller,
    pattern: str | None,
    is_cancelled: Callable[[], bool],
) -> Iterator[pa.Schema | None]:
    """Yield the columns of each table, None where it is gone meanwhile."""

    def columns(served: _Served) -> pa.Schema | None:
        if is_cancelled():
            raise Cancelled("nobody waits for the listing any more")
        by_name = pattern is not None and served.name.table in (pattern, literal(pattern))
        return _columns_of(served, caller, raises=by_name)

    if all(caller.catalogs.get(served.name.catalog).is_local for served in found):
        yield from map(columns, found)
        return
    with ThreadPoolExecutor(_LOADED_AT_ONCE, thread_name_prefix="listing") as pool:
        # each in a context of its own, which knows the request
        loading = [pool.submit(copy_context().run, columns, served) for served in found]
        try:
            for future in loading:
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _columns_of(served: _Served, caller: Caller, *, raises: bool) -> pa.Schema | None:
    name = served.name
    try:
        table = caller.catalogs.get(name.catalog).load(served.identifier)
        scan = resolve(table.metadata, ScanRequest(), view=caller.view(table))
        return listed_schema(scan.projection, name)
    except UnknownTable:
        return None
    except FloebergError as error:
        if raises:
            raise
        # one that is damaged must not hide the others, nor be missing without a word
        logger.warning("table not described", extra={"table": str(name), "error": str(error)})
        return pa.schema([])
