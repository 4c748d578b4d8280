"""Changes of a schema by field id, at any depth.

Schemas are Appendix C's JSON and are never changed in place.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import assert_never

from tests.fuzz.cases import (
    AddField,
    Change,
    DropField,
    MakeOptional,
    MoveField,
    Promote,
    RenameField,
)
from tests.support.lake.schemas import walk
from tests.support.plain import Json

_DEFAULTS = ("initial-default", "write-default")
_MIDNIGHT = {"timestamp": "T00:00:00.000000", "timestamp_ns": "T00:00:00.000000000"}


class Inapplicable(Exception):
    """A step that has lost what it was about; the case goes on without it."""


def evolved(schema: Json, change: Change) -> Json:
    """Return the schema after a change; raise `Inapplicable` when its field isn't there."""
    out = copy.deepcopy(schema)
    match change:
        case AddField(parent, field, place):
            if any(f["id"] == field["id"] for f in walk(out)):
                raise Inapplicable(f"field {field['id']} is there already")
            fields = _fields_below(out, parent)
            fields.insert(min(place, len(fields)), copy.deepcopy(field))
        case DropField(field_id):
            fields, at = _place_of(out, field_id)
            del fields[at]
        case RenameField(field_id, name):
            fields, at = _place_of(out, field_id)
            fields[at]["name"] = name
        case MoveField(field_id, place):
            fields, at = _place_of(out, field_id)
            fields.insert(min(place, len(fields)), fields.pop(at))
        case Promote(field_id, type_):
            _change(out, field_id, "type", type_)
            _promote_defaults(out, field_id, type_)
        case MakeOptional(field_id):
            _change(out, field_id, "required", False)
        case _:
            assert_never(change)
    return out


def structs(type_: Json) -> Iterator[tuple[int | None, list[Json]]]:
    """Yield the structs that may change, as the id of the field that holds one, and its fields.

    Those below a map's key stay as they are (spec: "Schema Evolution").
    """
    for holder, holding in _holders(type_, None):
        if holding["type"] == "struct":
            yield holder, holding["fields"]


def _holders(type_: Json, field_id: int | None) -> Iterator[tuple[int | None, Json]]:
    """Yield the nested types below and including `type_`, with the id of the field of each."""
    if isinstance(type_, str):
        return
    yield field_id, type_
    if type_["type"] == "struct":
        for field in type_["fields"]:
            yield from _holders(field["type"], field["id"])
    else:
        part = "element" if type_["type"] == "list" else "value"
        yield from _holders(type_[part], type_[f"{part}-id"])


def _promote_defaults(schema: Json, field_id: int, type_: Json) -> None:
    """Write a date's defaults as those of the timestamp that it becomes."""
    if type_ not in _MIDNIGHT:
        return
    for _, fields in structs({**schema, "type": "struct"}):
        for field in fields:
            if field["id"] == field_id and field.get("initial-default") is not None:
                for key in _DEFAULTS:
                    field[key] += _MIDNIGHT[type_]


def _fields_below(schema: Json, parent: int | None) -> list[Json]:
    for holder, fields in structs({**schema, "type": "struct"}):
        if holder == parent:
            return fields
    raise Inapplicable(f"no struct {parent}")


def _place_of(schema: Json, field_id: int) -> tuple[list[Json], int]:
    for _, fields in structs({**schema, "type": "struct"}):
        for at, field in enumerate(fields):
            if field["id"] == field_id:
                return fields, at
    raise Inapplicable(f"no field {field_id}")


def _change(schema: Json, field_id: int, key: str, value: Json) -> None:
    for _, holding in _holders({**schema, "type": "struct"}, None):
        for field in holding.get("fields", ()):
            if field["id"] == field_id:
                field[key] = value
                return
        for part in ("element", "key", "value"):
            if holding.get(f"{part}-id") == field_id:
                holding[part if key == "type" else f"{part}-{key}"] = value
                return
    raise Inapplicable(f"no field {field_id}")
