"""DuckDB's types as Arrow's: what a column of an answer is told, and cast, to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from floeberg.protocol.errors import UnsupportedSql
from floeberg.protocol.suggestions import quoted

_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "utinyint": pa.uint8(),
    "usmallint": pa.uint16(),
    "uinteger": pa.uint32(),
    "ubigint": pa.uint64(),
    # Arrow has no integers as wide
    "hugeint": pa.decimal128(38, 0),
    "float": pa.float32(),
    "double": pa.float64(),
    "varchar": pa.string(),
    "enum": pa.string(),
    "blob": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamp_s": pa.timestamp("s"),
    "timestamp_ms": pa.timestamp("ms"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamp with time zone": pa.timestamp("us", tz="UTC"),
    "timestamptz_ns": pa.timestamp("ns", tz="UTC"),
    "interval": pa.month_day_nano_interval(),
    "uuid": pa.uuid(),
    "null": pa.null(),
}


def arrow_type(type_: DuckDBPyType, column: str) -> pa.DataType:
    """Return the Arrow type of an answer's column: that which DuckDB exports, but for UUIDs, which
    stay UUIDs, enums, which are their text, and times with a zone, which are in UTC as those of
    scans are.

    Raises `UnsupportedSql` for what has no such type; `column` names it.
    """
    plain = _TYPES.get(type_.id)
    if plain is not None:
        return plain
    # the stubs don't tell the kinds of children apart
    parts: dict[str, Any] = (
        dict(type_.children) if type_.id in ("decimal", "list", "array", "struct", "map") else {}
    )

    def part(name: str) -> pa.DataType:
        return arrow_type(parts[name], column)

    match type_.id:
        case "decimal":
            return pa.decimal128(parts["precision"], parts["scale"])
        case "list":
            return pa.list_(part("child"))
        case "array":
            size: int = parts["size"]
            return pa.list_(part("child"), size)
        case "struct":
            return pa.struct([(name, part(name)) for name in parts])
        case "map" if parts["key"].id != "null":  # a key is never null, to Arrow
            return pa.map_(part("key"), part("value"))
        case _:
            raise UnsupportedSql(
                f"column {quoted(column)} is of type {type_}, which is not sent to clients; cast it"
                " to VARCHAR, or to another type"
            )
