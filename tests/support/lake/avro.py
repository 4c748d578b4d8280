"""Iceberg schemas as Avro schemas, with field ids where Appendix A wants them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from typing import Any

import fastavro

from tests.support.lake.schemas import Json, children, decimal_of, fixed_of
from tests.support.lake.values import Plain

_PRIMITIVE: dict[str, Json] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {
        "type": "long",
        "logicalType": "timestamp-micros",
        "adjust-to-utc": False,
    },
    "timestamptz": {
        "type": "long",
        "logicalType": "timestamp-micros",
        "adjust-to-utc": True,
    },
    "timestamp_ns": {
        "type": "long",
        "logicalType": "timestamp-nanos",
        "adjust-to-utc": False,
    },
    "timestamptz_ns": {
        "type": "long",
        "logicalType": "timestamp-nanos",
        "adjust-to-utc": True,
    },
    "string": "string",
    "binary": "bytes",
    "unknown": "null",
}


def sanitized(name: str) -> str:
    """Return `name` with what Avro forbids in names written as `_x` and its code point in hex.

    >>> sanitized("a-b"), sanitized("1x"), sanitized("fine")
    ('a_x2Db', '_1x', 'fine')
    """
    out = re.sub(r"[^A-Za-z0-9_]", lambda m: f"_x{ord(m[0]):X}", name)
    return f"_{out}" if out[:1].isdigit() else out


def record_schema(fields: Iterable[Json], name: str) -> Json:
    """Return the Avro record for Iceberg fields; `name` must be unique in its file."""
    return {"type": "record", "name": name, "fields": [_field(f) for f in fields]}


def _field(field: Json) -> Json:
    name = sanitized(field["name"])
    out: dict[str, Json] = {"name": name, "field-id": field["id"]}
    if name != field["name"]:
        out["iceberg-field-name"] = field["name"]
    inner = _type(field["type"], f"r{field['id']}")
    if field["required"] or inner == "null":
        return {**out, "type": inner}
    return {**out, "type": ["null", inner], "default": None}


def _type(type_: Json, record_name: str) -> Json:
    if isinstance(type_, str):
        if type_ in _PRIMITIVE:
            return _PRIMITIVE[type_]
        if decimal := decimal_of(type_):
            precision, scale = decimal
            return {
                "type": "fixed",
                "name": f"decimal_{record_name}",
                "size": ((10**precision).bit_length() + 8) // 8,
                "logicalType": "decimal",
                "precision": precision,
                "scale": scale,
            }
        if type_ == "uuid":
            return {
                "type": "fixed",
                "name": f"uuid_{record_name}",
                "size": 16,
                "logicalType": "uuid",
            }
        if (length := fixed_of(type_)) is not None:
            return {"type": "fixed", "name": f"fixed_{record_name}", "size": length}
        if type_ == "variant":
            parts = [{"name": n, "type": "bytes"} for n in ("metadata", "value")]
            return {"type": "record", "name": record_name, "fields": parts}
        if type_.startswith(("geometry", "geography")):
            return "bytes"
        raise ValueError(f"no Avro type for {type_!r}")
    below = children(type_)
    match type_["type"]:
        case "struct":
            return record_schema(below, record_name)
        case "list":
            element = _field(below[0])
            return {
                "type": "array",
                "items": element["type"],
                "element-id": below[0]["id"],
            }
        case _:
            entry = record_schema(below, f"k{below[0]['id']}_v{below[1]['id']}")
            return {"type": "array", "logicalType": "map", "items": entry}


def avro_value(type_: Json, value: Plain) -> Any:
    """Return a plain value as fastavro writes it: names sanitised, map entries as records."""
    if value is None or isinstance(type_, str):
        return value
    match type_["type"]:
        case "struct":
            return {
                sanitized(f["name"]): avro_value(f["type"], value.get(f["name"]))
                for f in children(type_)
            }
        case "list":
            return [avro_value(type_["element"], v) for v in value]
        case _:
            return [
                {
                    "key": avro_value(type_["key"], k),
                    "value": avro_value(type_["value"], v),
                }
                for k, v in value
            ]


def to_avro(
    schema: Json,
    records: Iterable[Mapping[str, Any]],
    *,
    codec: str,
    metadata: Mapping[str, str],
) -> bytes:
    out = io.BytesIO()
    fastavro.writer(
        out,
        fastavro.parse_schema(schema),
        records,
        codec=codec,
        metadata=dict(metadata),
    )
    return out.getvalue()


def read_avro(raw: bytes) -> tuple[Json, Mapping[str, str], list[dict[str, Any]]]:
    """Return the file's schema, its key-value metadata and its records."""
    reader = fastavro.reader(io.BytesIO(raw))
    records = [r for r in reader if isinstance(r, dict)]
    return reader.writer_schema, reader.metadata, records
