"""What a file holds, whatever its format: fields with their ids, and rows of plain values.

Parquet and ORC are decoded by pyarrow, Avro by fastavro. Spec: Appendix A, and the Puffin spec for
vectors.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyroaring import BitMap

from tests.support.plain import Json, Plain, arrow_values, scalar


@dataclass(frozen=True)
class StoredField:
    """A field of a file. `unit` is that of times (s, ms, us, ns, day); ids are absent where the
    file has none.

    A list has one child, a map two, a struct its fields; a struct's value is a sequence in their
    order.
    """

    name: str
    field_id: int | None
    kind: str
    unit: str | None
    children: Sequence[StoredField] = ()


@dataclass(frozen=True)
class StoredFile:
    fields: Sequence[StoredField]
    rows: Sequence[Sequence[Plain]]

    def column(self, field_id: int, name: str) -> int:
        """Return the place of a top-level column, by id or, in a file without ids, by name."""
        for i, field in enumerate(self.fields):
            if field.field_id == field_id:
                return i
        return next(i for i, f in enumerate(self.fields) if f.field_id is None and f.name == name)


def read_file(path: Path, format_: str) -> StoredFile:
    match format_.lower():
        case "parquet":
            # nanoseconds would overflow for INT96 values that are a placeholder for "forever"
            with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
                return _of_arrow(file.read())
        case "orc":
            return _of_arrow(orc.ORCFile(path).read())
        case "avro":
            return _of_avro(path.read_bytes())
        case _:
            raise ValueError(f"{path} is of an unknown format, {format_}")


def read_vector(path: Path, offset: int, length: int) -> set[int]:
    """Return the positions of a deletion vector; its magic, length and checksum must be right."""
    blob = path.read_bytes()[offset : offset + length]
    assert len(blob) == length
    assert struct.unpack(">i", blob[:4])[0] == length - 8
    assert blob[4:8] == b"\xd1\xd3\x39\x64"
    assert struct.unpack(">I", blob[-4:])[0] == zlib.crc32(blob[4:-4])
    (count,) = struct.unpack_from("<q", blob, 8)
    positions: set[int] = set()
    rest = blob[16:-4]
    for _ in range(count):
        (key,) = struct.unpack_from("<I", rest)
        bitmap = BitMap.deserialize(rest[4:])
        positions |= {(key << 32) | low for low in bitmap}
        rest = rest[4 + len(bitmap.serialize()) :]
    return positions


# --- Parquet, ORC ---------------------------------------------------------------------------------


def _of_arrow(table: pa.Table) -> StoredFile:
    columns = [arrow_values(table.column(i)) for i in range(table.num_columns)]
    rows = list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
    return StoredFile([_arrow_field(f) for f in table.schema], rows)


def _arrow_field(field: Any) -> StoredField:
    metadata: Mapping[bytes, bytes] = field.metadata or {}
    raw_id = metadata.get(b"PARQUET:field_id", metadata.get(b"iceberg.id"))
    type_ = field.type
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    unit = getattr(type_, "unit", None)
    children: list[StoredField] = []
    kind = "leaf"
    if pa.types.is_struct(type_):
        kind = "struct"
        children = [_arrow_field(type_.field(i)) for i in range(type_.num_fields)]
    elif pa.types.is_map(type_):
        kind = "map"
        children = [_arrow_field(type_.key_field), _arrow_field(type_.item_field)]
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        kind = "list"
        children = [_arrow_field(type_.value_field)]
    elif pa.types.is_date32(type_):
        unit = "day"
    return StoredField(field.name, int(raw_id) if raw_id else None, kind, unit, children)


# --- Avro -----------------------------------------------------------------------------------------


def _of_avro(raw: bytes) -> StoredFile:
    reader = fastavro.reader(io.BytesIO(raw))
    schema: Json = reader.writer_schema
    fields = [_avro_field(f["name"], f.get("field-id"), f["type"]) for f in schema["fields"]]
    rows = [
        [_avro_value(f["type"], record[f["name"]]) for f in schema["fields"]]
        for record in reader
        if isinstance(record, dict)
    ]
    return StoredFile(fields, rows)


def _inner(schema: Json) -> Json:
    """Return what an optional field's union holds beside null."""
    if isinstance(schema, list):
        rest = [s for s in schema if s != "null"]
        return rest[0] if rest else "null"
    return schema


def _avro_field(name: str, field_id: int | None, schema: Json) -> StoredField:
    schema = _inner(schema)
    if isinstance(schema, str):
        return StoredField(name, field_id, "leaf", None)
    logical = schema.get("logicalType")
    match schema["type"]:
        case "record":
            children = [
                _avro_field(f.get("iceberg-field-name", f["name"]), f.get("field-id"), f["type"])
                for f in schema["fields"]
            ]
            return StoredField(name, field_id, "struct", None, children)
        case "array" if logical == "map":
            key, value = _inner(schema["items"])["fields"]
            children = [_avro_field(f["name"], f.get("field-id"), f["type"]) for f in (key, value)]
            return StoredField(name, field_id, "map", None, children)
        case "array":
            element = _avro_field("element", schema.get("element-id"), schema["items"])
            return StoredField(name, field_id, "list", None, [element])
        case "map":
            children = [
                StoredField("key", schema.get("key-id"), "leaf", None),
                _avro_field("value", schema.get("value-id"), schema["values"]),
            ]
            return StoredField(name, field_id, "map", None, children)
        case _:
            # fastavro turns times into Python's, which `scalar` counts in microseconds
            unit = {"date": "day", "timestamp-nanos": "ns"}.get(logical or "")
            if unit is None and logical in (
                "time-micros",
                "time-millis",
                "timestamp-micros",
                "timestamp-millis",
            ):
                unit = "us"
            return StoredField(name, field_id, "leaf", unit)


def _avro_value(schema: Json, value: Any) -> Plain:
    schema = _inner(schema)
    if value is None or isinstance(schema, str):
        return value
    match schema["type"]:
        case "record":
            return [_avro_value(f["type"], value[f["name"]]) for f in schema["fields"]]
        case "array" if schema.get("logicalType") == "map":
            key, item = _inner(schema["items"])["fields"]
            return [
                (
                    _avro_value(key["type"], e[key["name"]]),
                    _avro_value(item["type"], e[item["name"]]),
                )
                for e in value
            ]
        case "array":
            return [_avro_value(schema["items"], v) for v in value]
        case "map":
            return [(k, _avro_value(schema["values"], v)) for k, v in value.items()]
        case _:
            return scalar(value)


def avro_by_id(raw: bytes) -> tuple[list[dict[int, Any]], Mapping[str, str]]:
    """Return a manifest's or manifest list's records by field id, structs inside too, and the
    file's properties.

    Field names changed over the years, ids didn't. A file of the first writers has none, and fails.
    """
    reader = fastavro.reader(io.BytesIO(raw))
    schema = reader.writer_schema
    return [_by_id(schema, record) for record in reader], reader.metadata


def _by_id(schema: Json, value: Any) -> Any:
    schema = _inner(schema)
    if isinstance(schema, dict) and schema["type"] == "record" and value is not None:
        return {f["field-id"]: _by_id(f["type"], value[f["name"]]) for f in schema["fields"]}
    return scalar(value)
