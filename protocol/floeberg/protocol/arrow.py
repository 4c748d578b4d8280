"""Iceberg types as Arrow types, and back.

There is one Arrow form for each Iceberg type, so that every stream of a scan has the same schema:

| Iceberg                      | Arrow                                                             |
| ---------------------------- | ----------------------------------------------------------------- |
| boolean, int, long           | bool, int32, int64                                                |
| float, double                | float, double                                                     |
| decimal(p, s)                | decimal128(p, s)                                                  |
| date, time                   | date32, time64[us]                                                |
| timestamp, timestamptz       | timestamp[us], timestamp[us, UTC]                                 |
| timestamp_ns, timestamptz_ns | timestamp[ns], timestamp[ns, UTC]                                 |
| string, binary               | string, binary                                                    |
| uuid                         | extension arrow.uuid over fixed_size_binary[16]                   |
| fixed[n]                     | fixed_size_binary[n]                                              |
| unknown                      | null                                                              |
| variant                      | struct<metadata: binary, value: binary>, both required, under the |
|                              | extension name arrow.parquet.variant                              |
| geometry, geography          | binary (WKB) under the extension name geoarrow.wkb                |
| struct, list, map            | struct; list of `element`; map of `key` and `value`               |

pyarrow knows a class for arrow.uuid only. The other extensions travel as the field metadata of
their canonical names, over IPC as well: an Arrow implementation that has the type picks it up
there, and any other sees the storage. Field ids are in the metadata `PARQUET:field_id`, comments
in `doc`.

Spec: "Schemas and Data Types"; Arrow canonical extension types; GeoArrow extension types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal, assert_never, cast

import pyarrow as pa
import pyarrow.types as at

from floeberg.protocol.errors import CorruptMetadata, Unsupported
from floeberg.protocol.name_mapping import MappedField, NameMapping
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    DEFAULT_CRS,
    EDGES,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
    VariantType,
    children,
)

FIELD_ID_KEY = b"PARQUET:field_id"
DOC_KEY = b"doc"
_EXTENSION_NAME_KEY = b"ARROW:extension:name"
_EXTENSION_METADATA_KEY = b"ARROW:extension:metadata"
_VARIANT = b"arrow.parquet.variant"
_WKB = b"geoarrow.wkb"

_VARIANT_STORAGE = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)

# --- Iceberg to Arrow ----------------------------------------------------------------------------


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of rows of `schema`: order, ids and nullability are the schema's.

    >>> schema = Schema((NestedField(1, "id", LongType(), required=True),))
    >>> arrow_schema(schema).field("id")
    pyarrow.Field<id: int64 not null>
    """
    return pa.schema([arrow_field(f) for f in schema.fields])


def arrow_field(field: NestedField) -> pa.Field[Any]:
    """Return the Arrow field of an Iceberg field, its id, comment and extension as metadata."""
    metadata = {FIELD_ID_KEY: str(field.field_id).encode()}
    if field.doc is not None:
        metadata[DOC_KEY] = field.doc.encode()
    return pa.field(
        field.name,
        arrow_type(field.type),
        # Arrow has no required null column; the spec has no required unknown one
        nullable=not field.required or isinstance(field.type, UnknownType),
        metadata=metadata | _extension(field.type),
    )


def arrow_type(type_: Type) -> pa.DataType:
    """Return the Arrow type of values of `type_`; `arrow_field` adds the extension's name."""
    match type_:
        case BooleanType():
            return pa.bool_()
        case IntType():
            return pa.int32()
        case LongType():
            return pa.int64()
        case FloatType():
            return pa.float32()
        case DoubleType():
            return pa.float64()
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case DateType():
            return pa.date32()
        case TimeType():
            return pa.time64("us")
        case TimestampType(zoned, nanos):
            unit: Literal["us", "ns"] = "ns" if nanos else "us"
            return pa.timestamp(unit, tz="UTC") if zoned else pa.timestamp(unit)
        case StringType():
            return pa.string()
        case UuidType():
            return pa.uuid()
        case FixedType(length):
            return pa.binary(length)
        case BinaryType() | GeometryType() | GeographyType():
            return pa.binary()
        case UnknownType():
            return pa.null()
        case VariantType():
            return _VARIANT_STORAGE
        case StructType(fields):
            return pa.struct([arrow_field(f) for f in fields])
        case ListType():
            return pa.list_(arrow_field(children(type_)[0]))
        case MapType():
            key, value = children(type_)
            # the stubs don't know that fields are taken for types
            return pa.map_(cast(Any, arrow_field(key)), cast(Any, arrow_field(value)))
        case _:
            assert_never(type_)


def _extension(type_: Type) -> dict[bytes, bytes]:
    match type_:
        case VariantType():
            return {_EXTENSION_NAME_KEY: _VARIANT, _EXTENSION_METADATA_KEY: b""}
        case GeometryType(crs):
            return _wkb(_geoarrow_crs(crs))
        case GeographyType(crs, edges):
            return _wkb({**_geoarrow_crs(crs), "edges": edges})
        case _:
            return {}


def is_geometry(field: pa.Field[Any]) -> bool:
    """Say whether an Arrow field is the form of a geometry or a geography."""
    return (field.metadata or {}).get(_EXTENSION_NAME_KEY) == _WKB


def _wkb(metadata: dict[str, str]) -> dict[bytes, bytes]:
    return {
        _EXTENSION_NAME_KEY: _WKB,
        _EXTENSION_METADATA_KEY: json.dumps(metadata, separators=(",", ":")).encode(),
    }


def _geoarrow_crs(crs: str) -> dict[str, str]:
    """Say in GeoArrow's words what Iceberg writes as `srid:4326` or `OGC:CRS84`."""
    kind, _, rest = crs.partition(":")
    match kind:
        case "srid":
            return {"crs": rest, "crs_type": "srid"}
        case "projjson":
            return {"crs": crs}  # the name of a table property: no kind of GeoArrow's
        case _:
            return {"crs": crs, "crs_type": "authority_code"}


# --- Arrow to Iceberg ----------------------------------------------------------------------------


def field_id_of(field: pa.Field[Any]) -> int | None:
    """Return the Iceberg field id in an Arrow field's metadata, or None.

    Negative ids are none: Parquet readers give them to fields that have no id.
    """
    raw = (field.metadata or {}).get(FIELD_ID_KEY)
    if raw is None:
        return None
    try:
        field_id = int(raw)
    except ValueError:
        return None
    return field_id if field_id >= 0 else None


def schema_from_arrow(schema: pa.Schema, name_mapping: NameMapping | None = None) -> Schema:
    """Return the Iceberg schema of the fields of `schema` that have field ids, in order.

    A field without an id gets it from `name_mapping`. One that has none there either is not the
    table's and is left out, and so is a list or map without an id below it. Raises `Unsupported`
    for an Arrow type that no Iceberg type stands for, and `CorruptMetadata` for an id used twice.
    """
    mapped = () if name_mapping is None else name_mapping.fields
    result = Schema(_fields_of(schema, MappedField((), None, mapped)))
    result.check_ids("Arrow schema")
    return result


def iceberg_type(type_: pa.DataType) -> Type:
    """Return the Iceberg type of Arrow values of `type_`.

    Accepts more than `arrow_type` produces: large and view types, dictionaries, other units and
    widths, each as the Iceberg type that holds all its values. Raises `Unsupported` for one without
    such a type (uint64, durations, unions), and for nested types without field ids.
    """
    found = _type_of(type_, MappedField(()))
    if found is None:
        raise Unsupported(f"Arrow type {type_} has nested fields without a field id")
    return found


def _fields_of(fields: Iterable[pa.Field[Any]], mapping: MappedField) -> tuple[NestedField, ...]:
    found = (_field_of(f, mapping.child(f.name)) for f in fields)
    return tuple(f for f in found if f is not None)


def _field_of(
    field: pa.Field[Any], mapping: MappedField | None, name: str | None = None
) -> NestedField | None:
    field_id = field_id_of(field)
    if field_id is None and mapping is not None:
        field_id = mapping.field_id
    if field_id is None:
        return None
    metadata = field.metadata or {}
    type_ = _extension_type(metadata) or _type_of(field.type, mapping or MappedField(()))
    if type_ is None:
        return None
    doc = metadata.get(DOC_KEY)
    return NestedField(
        field_id,
        name or field.name,
        type_,
        required=not field.nullable,
        doc=None if doc is None else doc.decode(errors="replace"),
    )


def _extension_type(metadata: dict[bytes, bytes]) -> Type | None:
    name = metadata.get(_EXTENSION_NAME_KEY)
    if name == _VARIANT:
        return VariantType()
    if name == _WKB:
        return _geo_type(metadata.get(_EXTENSION_METADATA_KEY, b""))
    return None


def _geo_type(raw: bytes) -> Type:
    try:
        metadata = json.loads(raw or b"{}")
    except ValueError as exc:
        raise CorruptMetadata(f"the metadata of a geoarrow.wkb field is not JSON: {raw!r}") from exc
    if not isinstance(metadata, dict):
        raise CorruptMetadata(f"the metadata of a geoarrow.wkb field is no object: {raw!r}")
    crs = _iceberg_crs(metadata)
    edges = metadata.get("edges", "planar")
    if edges == "planar":
        return GeometryType(crs)
    if edges not in EDGES:
        raise Unsupported(f"geoarrow.wkb with {edges!r} edges")
    return GeographyType(crs, edges)


def _iceberg_crs(metadata: dict[str, Any]) -> str:
    match metadata:
        case {"crs": str(crs), "crs_type": "srid"}:
            return f"srid:{crs}"
        case {"crs": str(crs)}:
            return crs
        case {"crs": {"id": {"authority": authority, "code": code}}}:
            return f"{authority}:{code}"
        case {"crs": dict()}:
            raise Unsupported("a CRS as PROJJSON without an identifier")
        case _:
            return DEFAULT_CRS


def _type_of(type_: Any, mapping: MappedField) -> Type | None:
    """Return the Iceberg type, or None when a field id is missing below a list or map."""
    # `type_` is Any: the stubs don't know the attributes that the predicates establish
    if at.is_struct(type_):
        return StructType(_fields_of(type_.fields, mapping))
    if at.is_map(type_):
        key = _field_of(type_.key_field, mapping.child("key"), "key")
        value = _field_of(type_.item_field, mapping.child("value"), "value")
        if key is None or value is None:
            return None
        return MapType(key.field_id, key.type, value.field_id, value.type, value.required)
    if _is_list(type_):
        element = _field_of(type_.value_field, mapping.child("element"), "element")
        if element is None:
            return None
        return ListType(element.field_id, element.type, element.required)
    if at.is_dictionary(type_) or at.is_run_end_encoded(type_):
        return _type_of(type_.value_type, mapping)
    if type_ in _EXTENSIONS:
        return _EXTENSIONS[type_]
    if isinstance(type_, pa.BaseExtensionType):
        return _type_of(type_.storage_type, mapping)
    return _primitive_of(type_)


def _is_list(type_: pa.DataType) -> bool:
    return (
        at.is_list(type_)
        or at.is_large_list(type_)
        or at.is_fixed_size_list(type_)
        or at.is_list_view(type_)
        or at.is_large_list_view(type_)
    )


_EXTENSIONS: dict[pa.DataType, Type] = {pa.uuid(): UuidType(), pa.bool8(): BooleanType()}
_SIMPLE: dict[pa.DataType, Type] = {
    pa.bool_(): BooleanType(),
    pa.int8(): IntType(),
    pa.int16(): IntType(),
    pa.int32(): IntType(),
    pa.uint8(): IntType(),
    pa.uint16(): IntType(),
    pa.uint32(): LongType(),
    pa.int64(): LongType(),
    pa.float16(): FloatType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.date32(): DateType(),
    pa.date64(): DateType(),
    pa.string(): StringType(),
    pa.large_string(): StringType(),
    pa.string_view(): StringType(),
    pa.binary(): BinaryType(),
    pa.large_binary(): BinaryType(),
    pa.binary_view(): BinaryType(),
    pa.null(): UnknownType(),
}


def _primitive_of(type_: Any) -> Type:
    if (simple := _SIMPLE.get(type_)) is not None:
        return simple
    if at.is_decimal(type_) and type_.precision <= 38 and type_.scale >= 0:
        return DecimalType(type_.precision, type_.scale)
    if at.is_timestamp(type_):
        return TimestampType(zoned=type_.tz is not None, nanos=type_.unit == "ns")
    # time64[ns] has no Iceberg type that holds it
    if at.is_time(type_) and type_.unit != "ns":
        return TimeType()
    if at.is_fixed_size_binary(type_):
        return FixedType(type_.byte_width)
    raise Unsupported(f"no Iceberg type stands for Arrow type {type_}")
