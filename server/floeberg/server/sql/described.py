"""DESCRIBE: the columns of a table or of a query, as DuckDB describes its own, and what is said of
them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from floeberg.protocol.arrow import DOC_KEY
from floeberg.protocol.schema import Schema
from floeberg.server.sql.types_info import quoted_name, sql_name

DESCRIBED = pa.schema(
    [
        (name, pa.string())
        for name in ("column_name", "column_type", "null", "key", "default", "extra", "comment")
    ]
)
"""The columns of a description; tables have no keys, nor anything `extra`, and rows are not
inserted here."""


def describe_table(schema: Schema) -> pa.Table:
    """Return the description of a table, of which `schema` is what the caller sees."""
    return _described(
        (field.name, sql_name(field.type, nested=True), field.required, field.doc)
        for field in schema.fields
    )


def describe_rows(schema: pa.Schema) -> pa.Table:
    """Return the description of a query's rows."""

    def comment(field: pa.Field[Any]) -> str | None:
        doc = (field.metadata or {}).get(DOC_KEY)
        return None if doc is None else doc.decode()

    return _described(
        (field.name, arrow_sql_name(field.type), not field.nullable, comment(field))
        for field in schema
    )


def _described(columns: Iterable[tuple[str, str, bool, str | None]]) -> pa.Table:
    rows = [
        {
            "column_name": name,
            "column_type": type_,
            "null": "NO" if required else "YES",
            "comment": comment,
        }
        for name, type_, required, comment in columns
    ]
    return pa.Table.from_pylist(rows, schema=DESCRIBED)


_NAMES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
    pa.time64("ns"): "TIME_NS",
    pa.timestamp("s"): "TIMESTAMP_S",
    pa.timestamp("ms"): "TIMESTAMP_MS",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("ns"): "TIMESTAMP_NS",
    pa.string(): "VARCHAR",
    pa.large_string(): "VARCHAR",
    pa.string_view(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.large_binary(): "BLOB",
    pa.binary_view(): "BLOB",
    pa.uuid(): "UUID",
    pa.month_day_nano_interval(): "INTERVAL",
    pa.null(): '"NULL"',
}


# Any: whose attributes are there is known by asking for the kind, which no stub says
def arrow_sql_name(type_: Any) -> str:
    """Return what SQL calls an Arrow type, as `sql_name` does an Iceberg type; one that SQL has no
    name for is called as Arrow does.

    >>> arrow_sql_name(pa.map_(pa.string(), pa.list_(pa.decimal128(9, 2))))
    'MAP(VARCHAR, DECIMAL(9,2)[])'
    """
    known = _NAMES.get(type_)
    if known is not None:
        return known
    if at.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if at.is_timestamp(type_):
        return "TIMESTAMP WITH TIME ZONE"
    if at.is_fixed_size_binary(type_):
        return "BLOB"
    if at.is_dictionary(type_) or at.is_run_end_encoded(type_):
        return arrow_sql_name(type_.value_type)
    if at.is_fixed_size_list(type_):
        return f"{arrow_sql_name(type_.value_type)}[{type_.list_size}]"
    if at.is_list(type_) or at.is_large_list(type_) or at.is_list_view(type_):
        return f"{arrow_sql_name(type_.value_type)}[]"
    if at.is_map(type_):
        return f"MAP({arrow_sql_name(type_.key_type)}, {arrow_sql_name(type_.item_type)})"
    if at.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        inside = ", ".join(f"{quoted_name(f.name)} {arrow_sql_name(f.type)}" for f in fields)
        return f"STRUCT({inside})"
    if isinstance(type_, pa.BaseExtensionType):
        return arrow_sql_name(type_.storage_type)
    return str(type_)
