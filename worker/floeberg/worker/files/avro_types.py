"""An Avro schema as what decoding needs: a layout for fastavro, Arrow types, field ids.

Names matter to name mappings only. fastavro gets the layout with fields named by their place, so
that names which Avro does not allow decode too, and without logical types, so that times and
decimals come as the integers and bytes that are stored.
Spec: Appendix A, "Avro".
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from floeberg.protocol.types import Json
from floeberg.protocol.values import decimal_of
from floeberg.worker.arrow import ArrowType

Convert: TypeAlias = Callable[[Any], Any]
"""From what fastavro gives to what `pyarrow.array` takes; never called with None."""

_PRIMITIVES: Mapping[str, ArrowType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_TIMESTAMP_UNITS: Mapping[str, Any] = {"millis": "ms", "micros": "us", "nanos": "ns"}


@dataclass(frozen=True, slots=True)
class AvroType:
    """One type of a schema: `layout` for fastavro, `arrow` for pyarrow, and `convert` from one to
    the other.

    `children` are the fields below with their names and ids: those of a record, the element of an
    array, key and value of a map.
    """

    layout: Json
    arrow: ArrowType
    convert: Convert | None = None
    children: tuple[AvroField, ...] = ()


@dataclass(frozen=True, slots=True)
class AvroField:
    name: str
    field_id: int | None
    type: AvroType


def place_name(position: int) -> str:
    """Return what the layout calls the field at `position` of a record."""
    return f"f{position}"


def read_schema(schema: Json) -> AvroType:
    """Return the record that an Avro data file consists of.

    Raises ValueError for what is no Avro schema, or none that a table may have.
    """
    found = _Reader().read(schema, "")
    if not isinstance(found.arrow, pa.StructType):
        raise ValueError("its schema is not a record")
    return found


class _Reader:
    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}

    def read(self, schema: Json, namespace: str) -> AvroType:
        match schema:
            case str():
                return self._by_name(schema, namespace)
            case list():
                return self._optional(schema, namespace)
            case {"type": "record", "fields": list(fields)}:
                return self._record(schema, fields, namespace)
            case {"type": "array", "items": items, "logicalType": "map"}:
                return self._pairs(self.read(items, namespace))
            case {"type": "array", "items": items}:
                return _list_of(self.read(items, namespace), schema.get("element-id"))
            case {"type": "map", "values": values}:
                ids = (schema.get("key-id"), schema.get("value-id"))
                return _map_of(self.read(values, namespace), *ids)
            case {"type": "fixed", "size": int(size)}:
                return self._fixed(schema, size, namespace)
            case {"type": "enum", "symbols": list(symbols)}:
                layout = {"type": "enum", "name": self._new_name(), "symbols": symbols}
                return self._define(schema, namespace, AvroType(layout, pa.string()))
            case {"type": str(name), "logicalType": str(logical)}:
                return _logical(self._by_name(name, namespace), logical, schema)
            case {"type": inner}:
                return self.read(inner, namespace)
            case _:
                raise ValueError(f"{schema!r} is not an Avro schema")

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in _PRIMITIVES:
            return AvroType(name, _PRIMITIVES[name])
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise ValueError(f"its schema names the type {name!r}, which is not defined before")
        # a type is laid out where it is first used, and named from then on
        return replace(found, layout=found.layout["name"])

    def _define(self, schema: Json, namespace: str, type_: AvroType) -> AvroType:
        self._named[_full_name(schema, namespace)] = type_
        return type_

    def _new_name(self) -> str:
        return f"t{len(self._named)}"

    def _optional(self, branches: list[Json], namespace: str) -> AvroType:
        others = [b for b in branches if b != "null"]
        if len(others) == len(branches) == 1:
            return self.read(others[0], namespace)
        if len(others) != 1:
            raise ValueError(
                f"its schema has the union {branches!r}: only optional fields are read"
            )
        inner = self.read(others[0], namespace)
        layout = [inner.layout if b != "null" else b for b in branches]
        return replace(inner, layout=layout, convert=_unless_null(inner.convert))

    def _record(self, schema: Json, raw_fields: list[Json], namespace: str) -> AvroType:
        full = _full_name(schema, namespace)
        inner_namespace = full.rpartition(".")[0]
        fields = tuple(
            AvroField(str(f["name"]), f.get("field-id"), self.read(f["type"], inner_namespace))
            for f in raw_fields
        )
        layout = {
            "type": "record",
            "name": self._new_name(),
            "fields": [
                {"name": place_name(i), "type": f.type.layout} for i, f in enumerate(fields)
            ],
        }
        arrow = pa.struct([(place_name(i), f.type.arrow) for i, f in enumerate(fields)])
        converts = {place_name(i): f.type.convert for i, f in enumerate(fields)}
        return self._define(
            schema, namespace, AvroType(layout, arrow, _record_convert(converts), fields)
        )

    def _fixed(self, schema: Json, size: int, namespace: str) -> AvroType:
        layout = {"type": "fixed", "name": self._new_name(), "size": size}
        plain = AvroType(layout, pa.binary(size))
        logical = schema.get("logicalType")
        type_ = _logical(plain, logical, schema) if isinstance(logical, str) else plain
        return self._define(schema, namespace, type_)

    def _pairs(self, entry: AvroType) -> AvroType:
        """A map that is stored as an array of records of key and value."""
        if len(entry.children) != 2:
            raise ValueError("its schema has a map whose entries are not pairs")
        key, value = entry.children
        convert = entry.convert

        def pairs(entries: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
            converted = map(convert, entries) if convert is not None else entries
            return [(e["f0"], e["f1"]) for e in converted]

        layout = {"type": "array", "items": entry.layout}
        arrow = pa.map_(key.type.arrow, value.type.arrow)
        return AvroType(
            layout, arrow, pairs, (replace(key, name="key"), replace(value, name="value"))
        )


def _full_name(schema: Json, namespace: str) -> str:
    name = str(schema["name"])
    space = schema.get("namespace", namespace)
    return name if "." in name or not space else f"{space}.{name}"


def _list_of(element: AvroType, element_id: int | None) -> AvroType:
    return AvroType(
        {"type": "array", "items": element.layout},
        pa.list_(element.arrow),
        _each(element.convert),
        (AvroField("element", element_id, element),),
    )


def _map_of(value: AvroType, key_id: int | None, value_id: int | None) -> AvroType:
    convert = value.convert

    def pairs(entries: dict[str, Any]) -> list[tuple[str, Any]]:
        if convert is None:
            return list(entries.items())
        return [(k, convert(v)) for k, v in entries.items()]

    key = AvroField("key", key_id, AvroType("string", pa.string()))
    return AvroType(
        {"type": "map", "values": value.layout},
        pa.map_(pa.string(), value.arrow),
        pairs,
        (key, AvroField("value", value_id, value)),
    )


def _logical(plain: AvroType, logical: str, schema: Json) -> AvroType:
    """Return `plain` as its logical type means it; one that does not fit changes nothing."""
    stored = plain.arrow
    if logical == "decimal" and (pat.is_binary(stored) or pat.is_fixed_size_binary(stored)):
        scale = int(schema.get("scale", 0))
        arrow = pa.decimal128(int(schema["precision"]), scale)
        return replace(plain, arrow=arrow, convert=_decimal_convert(scale))
    if logical == "uuid" and pat.is_string(stored):
        return replace(plain, arrow=pa.binary(16), convert=lambda text: uuid.UUID(text).bytes)
    if pat.is_int32(stored):
        meant: Mapping[str, ArrowType] = {"date": pa.date32(), "time-millis": pa.time32("ms")}
        return replace(plain, arrow=meant.get(logical, stored))
    if pat.is_int64(stored):
        return replace(plain, arrow=_time(logical, schema))
    return plain


def _time(logical: str, schema: Json) -> ArrowType:
    if logical == "time-micros":
        return pa.time64("us")
    kind, _, unit = logical.rpartition("-")
    if kind not in ("timestamp", "local-timestamp") or unit not in _TIMESTAMP_UNITS:
        return pa.int64()
    zone: Any = "UTC" if schema.get("adjust-to-utc", False) else None
    return pa.timestamp(_TIMESTAMP_UNITS[unit], tz=zone)


# --- conversions ----------------------------------------------------------------------------------


def _decimal_convert(scale: int) -> Convert:
    return lambda raw: decimal_of(int.from_bytes(raw, "big", signed=True), scale)


def _unless_null(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _each(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda values: [convert(v) for v in values]


def _record_convert(converts: Mapping[str, Convert | None]) -> Convert | None:
    wanted = [(name, convert) for name, convert in converts.items() if convert is not None]
    if not wanted:
        return None

    def convert_record(record: dict[str, Any]) -> dict[str, Any]:
        return record | {name: convert(record[name]) for name, convert in wanted}

    return convert_record
