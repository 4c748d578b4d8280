"""Iceberg schemas as plain JSON dicts: how to write one down, find a field, change it, and turn it
into Arrow.

Spec: "Schemas and Data Types", Appendix C, and for Arrow the Parquet part of Appendix A.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

Json: TypeAlias = Any
"""JSON as `json.loads` returns it; a schema is such a dict, in Appendix C's form."""

FILE_PATH_ID = 2147483546
POS_ID = 2147483545
ROW_ID = 2147483540
LAST_UPDATED_SEQUENCE_NUMBER_ID = 2147483539


# --- writing one down -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A field without its id: what `schema` takes where a bare type isn't enough."""

    type: Json
    required: bool = False
    initial_default: Json = None
    write_default: Json = None
    doc: str | None = None


def required(type_: Json) -> Column:
    return Column(type_, required=True)


def struct(fields: Mapping[str, Json]) -> Json:
    """Name a struct type for `schema`, which gives the ids."""
    return {"type": "struct", "fields": dict(fields)}


def list_of(element: Json) -> Json:
    """Name a list type for `schema`; `required(...)` makes its elements required."""
    return {"type": "list", "element": element}


def map_of(key: Json, value: Json) -> Json:
    """Name a map type for `schema`; `required(...)` makes its values required."""
    return {"type": "map", "key": key, "value": value}


def schema(columns: Mapping[str, Json], *, first_id: int = 1) -> Json:
    """Return a schema whose fields have fresh ids, parents before their children.

    >>> schema({"id": required("long"), "tags": list_of("string")})["fields"][1]
    {'id': 2, 'name': 'tags', 'required': False, 'type': {'type': 'list', 'element-id': 3, \
'element': 'string', 'element-required': False}}
    """
    ids = itertools.count(first_id)
    return {"type": "struct", "schema-id": 0, "fields": _fields(columns, ids)}


def _column(raw: Json) -> Column:
    return raw if isinstance(raw, Column) else Column(raw)


def _fields(columns: Mapping[str, Json], ids: Iterator[int]) -> list[Json]:
    return [new_field(name, raw, ids) for name, raw in columns.items()]


def new_field(name: str, raw: Json, ids: Iterator[int]) -> Json:
    """Return a field in Appendix C's form; its ids, and those below it, come from `ids`."""
    column = _column(raw)
    out = {"id": next(ids), "name": name, "required": column.required}
    out["type"] = _with_ids(column.type, ids)
    for key in ("initial_default", "write_default", "doc"):
        if (value := getattr(column, key)) is not None:
            out[key.replace("_", "-")] = value
    return out


def _with_ids(type_: Json, ids: Iterator[int]) -> Json:
    if isinstance(type_, str):
        return type_
    match type_["type"]:
        case "struct" if isinstance(type_["fields"], Mapping):
            return {"type": "struct", "fields": _fields(type_["fields"], ids)}
        case "list" if "element-id" not in type_:
            element = _column(type_["element"])
            return {
                "type": "list",
                "element-id": next(ids),
                "element": _with_ids(element.type, ids),
                "element-required": element.required,
            }
        case "map" if "key-id" not in type_:
            value = _column(type_["value"])
            key_id, value_id = next(ids), next(ids)
            return {
                "type": "map",
                "key-id": key_id,
                "key": _with_ids(_column(type_["key"]).type, ids),
                "value-id": value_id,
                "value": _with_ids(value.type, ids),
                "value-required": value.required,
            }
        case _:
            return type_  # already in Appendix C's form


# --- finding --------------------------------------------------------------------------------------


def children(type_: Json) -> list[Json]:
    """Return the fields directly below a type; a list has `element`, a map `key` and `value`."""
    if isinstance(type_, str):
        return []
    match type_["type"]:
        case "struct":
            return list(type_["fields"])
        case "list":
            return [_child("element", type_)]
        case _:
            return [{**_child("key", type_), "required": True}, _child("value", type_)]


def _child(name: str, type_: Json) -> Json:
    return {
        "id": type_[f"{name}-id"],
        "name": name,
        "required": type_.get(f"{name}-required", False),
        "type": type_[name],
    }


def walk(type_: Json) -> Iterator[Json]:
    """Yield every field below a type or schema, parents first."""
    for field in children(type_):
        yield field
        yield from walk(field["type"])


def find(schema_: Json, dotted: str) -> Json:
    """Return the field that a dotted name reaches; a top-level name with dots in it wins."""
    for field in schema_["fields"]:
        if field["name"] == dotted:
            return field
    here: Json = schema_
    found = None
    for part in dotted.split("."):
        found = next((f for f in children(here) if f["name"] == part), None)
        if found is None:
            raise KeyError(f"no field {dotted!r}")
        here = found["type"]
    return found


def field_ids(schema_: Json, dotted_names: Sequence[str]) -> list[int]:
    return [find(schema_, name)["id"] for name in dotted_names]


def highest_id(schema_: Json) -> int:
    return max((f["id"] for f in walk(schema_)), default=0)


def prune(schema_: Json, ids: Sequence[int]) -> Json:
    """Return the schema with only the fields `ids` and the structs that lead to them."""

    def kept(field: Json) -> Json | None:
        if field["id"] in ids:
            return field
        if isinstance(field["type"], str) or field["type"]["type"] != "struct":
            return None
        below = [k for f in field["type"]["fields"] if (k := kept(f)) is not None]
        return {**field, "type": {"type": "struct", "fields": below}} if below else None

    return {
        **schema_,
        "fields": [k for f in schema_["fields"] if (k := kept(f)) is not None],
    }


# --- changing -------------------------------------------------------------------------------------


def add_column(schema_: Json, dotted: str, column: Json, first_id: int) -> Json:
    """Return the schema with a new field at the end of its struct, which a dotted name reaches."""
    out = copy.deepcopy(schema_)
    *above, name = dotted.split(".")
    target = _struct_at(out, above)
    target["fields"].append(new_field(name, column, itertools.count(first_id)))
    return out


def drop_column(schema_: Json, dotted: str) -> Json:
    out = copy.deepcopy(schema_)
    field = find(out, dotted)
    for struct_ in _structs(out):
        struct_["fields"] = [f for f in struct_["fields"] if f["id"] != field["id"]]
    return out


def change_column(schema_: Json, dotted: str, **changes: Json) -> Json:
    """Return the schema with keys of one field replaced: name, type, required, write_default."""
    out = copy.deepcopy(schema_)
    wanted = find(out, dotted)["id"]
    for struct_ in _structs(out):
        for field in struct_["fields"]:
            if field["id"] == wanted:
                field.update({k.replace("_", "-"): v for k, v in changes.items()})
                return out
    _change_nested(out, wanted, changes)
    return out


def _change_nested(type_: Json, wanted: int, changes: Mapping[str, Json]) -> None:
    """Change the type or the nullability of a list's element or a map's key or value, in place."""
    if isinstance(type_, str):
        return
    for part in ("element", "key", "value"):
        if type_.get(f"{part}-id") == wanted:
            if "type" in changes:
                type_[part] = changes["type"]
            if "required" in changes:
                type_[f"{part}-required"] = changes["required"]
        elif part in type_:
            _change_nested(type_[part], wanted, changes)
    for field in type_.get("fields", ()):
        _change_nested(field["type"], wanted, changes)


def reorder(schema_: Json, names: Sequence[str]) -> Json:
    """Return the schema with its top-level columns in another order."""
    return {**schema_, "fields": [find(schema_, name) for name in names]}


def _structs(type_: Json) -> Iterator[Json]:
    """Yield the structs of a type or schema as they stand, so that they can be changed in place."""
    if isinstance(type_, str):
        return
    if type_["type"] == "struct":
        yield type_
    for field in children(type_):
        yield from _structs(field["type"])


def _struct_at(schema_: Json, path: Sequence[str]) -> Json:
    """Return the struct that `path` leads to, through list elements and map values as well."""
    here = schema_
    for part in path:
        field = next(f for f in children(here) if f["name"] == part)
        here = field["type"]
    return here


# --- Arrow ----------------------------------------------------------------------------------------

_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "uuid": pa.uuid(),
    "binary": pa.binary(),
    # no ids inside: the two parts of a variant go by name
    "variant": pa.struct(
        [
            pa.field("metadata", pa.binary(), False),
            pa.field("value", pa.binary(), False),
        ]
    ),
}


def decimal_of(type_: Json) -> tuple[int, int] | None:
    """Return a decimal's precision and scale; None for another type."""
    match = (
        re.fullmatch(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", type_)
        if isinstance(type_, str)
        else None
    )
    return (int(match[1]), int(match[2])) if match else None


def fixed_of(type_: Json) -> int | None:
    """Return a fixed type's length; None for another type."""
    match = re.fullmatch(r"fixed\[\s*(\d+)\s*\]", type_) if isinstance(type_, str) else None
    return int(match[1]) if match else None


def arrow_type(type_: Json, *, with_ids: bool = True) -> pa.DataType:
    """Return the Arrow type in which a file stores an Iceberg type (Appendix A, "Parquet")."""
    if isinstance(type_, str):
        if type_ in _ARROW:
            return _ARROW[type_]
        if decimal := decimal_of(type_):
            return pa.decimal128(*decimal)
        if (length := fixed_of(type_)) is not None:
            return pa.binary(length)
        if type_.startswith(("geometry", "geography")):
            return pa.binary()
        raise ValueError(f"no Arrow type for {type_!r}")
    fields = [arrow_field(f, with_ids=with_ids) for f in children(type_) if f["type"] != "unknown"]
    match type_["type"]:
        case "struct":
            return pa.struct(fields)
        case "list":
            return pa.list_(fields[0])
        case _:
            # the stubs don't know that it takes fields
            return pa.map_(*fields)  # type: ignore[call-overload,no-any-return]


def arrow_field(field: Json, *, with_ids: bool = True) -> pa.Field[Any]:
    metadata = {b"PARQUET:field_id": str(field["id"]).encode()} if with_ids else None
    return pa.field(
        field["name"],
        arrow_type(field["type"], with_ids=with_ids),
        nullable=not field["required"],
        metadata=metadata,
    )


def arrow_schema(schema_: Json, *, with_ids: bool = True) -> pa.Schema:
    """Return the Arrow schema of a file with these columns; none of type `unknown` is stored."""
    return pa.schema(
        [arrow_field(f, with_ids=with_ids) for f in schema_["fields"] if f["type"] != "unknown"]
    )
