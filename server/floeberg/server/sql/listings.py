"""What there is, as tables: catalogs, schemas, tables with their columns, and keys, of which there
are none.

A listing holds what its caller may see. Tables are told as they are now, whatever the session says
of a snapshot. Columns and their nullability are the specification's.

Spec: `FlightSql.proto`, CommandGetCatalogs, -DbSchemas, -Tables, -TableTypes, -PrimaryKeys,
-ExportedKeys, -ImportedKeys and -CrossReference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from floeberg.protocol.flight_sql import GetDbSchemas, GetTables
from floeberg.server.access import Caller
from floeberg.server.sql.like import like, literal
from floeberg.server.sql.listed_columns import listed_schema
from floeberg.server.sql.listed_names import TABLE, SqlName
from floeberg.server.sql.served_tables import ServedTable, schemas_of, served_tables


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
    pattern = command.table_pattern
    by_name = () if pattern is None else (pattern, literal(pattern))
    columns = schemas_of(found, caller, lambda name: name.table in by_name, is_cancelled)
    rows = []
    for served, known in zip(found, columns, strict=True):
        if known is not None:
            listed = listed_schema(known, served.name)
            rows.append(_row(served.name) | {"table_schema": listed.serialize().to_pybytes()})
    return pa.Table.from_pylist(rows, schema=schema)


def _served(
    caller: Caller, catalog: str | None, schema_pattern: str | None
) -> Iterator[ServedTable]:
    """Yield the tables of one catalog, or of all, whose schemas match."""
    matches = like(schema_pattern)
    for served in served_tables(caller, None if catalog is None else (catalog,)):
        if matches(served.name.schema):
            yield served


def _row(name: SqlName) -> dict[str, object]:
    return {
        "catalog_name": name.catalog,
        "db_schema_name": name.schema,
        "table_name": name.table,
        "table_type": TABLE,
    }
