"""A table's columns as Flight SQL lists them: an Arrow schema, with what SQL says of each beside
it.

Spec: `FlightSql.proto`, CommandGetTables (`table_schema`), and the column metadata of the Arrow
clients (`ARROW:FLIGHT:SQL:…`).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from floeberg.protocol.arrow import arrow_field
from floeberg.protocol.flight_sql.codes import Searchable
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import DecimalType, NestedField, StringType
from floeberg.server.sql.listed_names import SqlName
from floeberg.server.sql.types_info import sql_name, sql_type

_PREFIX = "ARROW:FLIGHT:SQL:"


def listed_schema(schema: Schema, name: SqlName) -> pa.Schema:
    """Return the Arrow schema of a table's rows, as scans have it, with SQL's metadata."""
    where = {"CATALOG_NAME": name.catalog, "SCHEMA_NAME": name.schema, "TABLE_NAME": name.table}
    return pa.schema([_listed_field(field, where) for field in schema.fields])


def _listed_field(field: NestedField, where: dict[str, str]) -> pa.Field[Any]:
    made = arrow_field(field)
    told = {**where, **_told(field)}
    # the stubs want keys and values that may be text or bytes
    metadata: dict[Any, Any] = {f"{_PREFIX}{key}": value for key, value in told.items()}
    metadata |= made.metadata or {}
    return made.with_metadata(metadata)


def _told(field: NestedField) -> dict[str, str]:
    type_ = field.type
    known = sql_type(type_)
    told = {
        "TYPE_NAME": sql_name(type_),
        "IS_AUTO_INCREMENT": "0",
        "IS_CASE_SENSITIVE": _flag(isinstance(type_, StringType)),
        "IS_READ_ONLY": "1",
        # what is nested isn't compared with a literal
        "IS_SEARCHABLE": _flag(
            known is not None and known.searchable != Searchable.SEARCHABLE_NONE
        ),
    }
    if isinstance(type_, DecimalType):
        told |= {"PRECISION": str(type_.precision), "SCALE": str(type_.scale)}
    elif known is not None and known.size is not None:
        told["PRECISION"] = str(known.size)
        if known.scales is not None:
            told["SCALE"] = str(known.scales[0])
    if field.doc is not None:
        told["REMARKS"] = field.doc
    return told


def _flag(value: bool) -> str:
    return "1" if value else "0"
