"""A file's row as a row of the table: each field by id, partition, name, default, or null.

Spec: "Column Projection", "Default values".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.filters import at
from tests.support.plain import Json, Plain, Row, from_json, hashable, promoted
from tests.support.stored import StoredField, StoredFile


@dataclass(frozen=True)
class Contents:
    """A data or delete file's rows, and what the spec lets a column be when the file lacks it."""

    location: str
    stored: StoredFile
    constants: Mapping[int, Plain]
    mapping: Sequence[Json]

    def row(self, values: Sequence[Plain], fields: Sequence[Json]) -> Row:
        """Return one row's columns by the rules of "Column Projection"."""
        root = StoredField("", None, "struct", None, self.stored.fields)
        return _struct(fields, root, values, self.constants, self.mapping, self.location)

    def key(self, values: Sequence[Plain], fields: Sequence[Json]) -> Any:
        """Return one row's values of key columns as one value; `pruned_to` made the columns."""
        parts = [self.row(values, [f]) for f in fields]
        return tuple(hashable(at(part, _path_of(f))) for part, f in zip(parts, fields, strict=True))


def _struct(
    fields: Sequence[Json],
    stored: StoredField,
    values: Sequence[Plain],
    constants: Mapping[int, Plain],
    mapping: Sequence[Json],
    where: str,
) -> Row:
    out: Row = {}
    for field in fields:
        by_id, by_name = _find(field, stored, mapping)
        found = by_id if by_id is not None else by_name
        if by_id is None and field["id"] in constants:
            out[field["name"]] = promoted(field["type"], None, constants[field["id"]])
        elif found is not None:
            child, below = stored.children[found], _below(field, mapping)
            out[field["name"]] = _value(
                field["type"], child, values[found], constants, below, where
            )
        elif field.get("initial-default") is not None:
            out[field["name"]] = _default(field)
        else:
            assert not field.get("required"), f"{where} lacks the required {field['name']}"
            out[field["name"]] = None
    return out


def _find(
    field: Json, stored: StoredField, mapping: Sequence[Json]
) -> tuple[int | None, int | None]:
    """Return where the field is in the file: by its stored id, and by name mapping."""
    names = {n for m in mapping if m.get("field-id") == field["id"] for n in m["names"]}
    by_id = by_name = None
    for i, child in enumerate(stored.children):
        if child.field_id == field["id"]:
            by_id = i
        elif child.field_id is None and child.name in names:
            by_name = i
    return by_id, by_name


def _below(field: Json, mapping: Sequence[Json]) -> Sequence[Json]:
    return next((m.get("fields", []) for m in mapping if m.get("field-id") == field["id"]), [])


def _value(
    type_: Json,
    stored: StoredField,
    value: Plain,
    constants: Mapping[int, Plain],
    mapping: Sequence[Json],
    where: str,
) -> Plain:
    if value is None:
        return None
    if isinstance(type_, str):
        if type_ == "variant":
            return dict(zip(("metadata", "value"), value, strict=True))
        return promoted(type_, stored.unit, value)
    match type_["type"]:
        case "struct":
            return _struct(type_["fields"], stored, value, constants, mapping, where)
        case "list":
            (element,) = stored.children
            below = _named(mapping, "element")
            return [_value(type_["element"], element, v, {}, below, where) for v in value]
        case _:
            key, item = stored.children
            return [
                (
                    _value(type_["key"], key, k, {}, _named(mapping, "key"), where),
                    _value(type_["value"], item, v, {}, _named(mapping, "value"), where),
                )
                for k, v in value
            ]


def _named(mapping: Sequence[Json], name: str) -> Sequence[Json]:
    return next((m.get("fields", []) for m in mapping if name in m["names"]), [])


def _default(field: Json) -> Plain:
    """Return a field's initial default; a struct's takes its fields' own."""
    raw = field.get("initial-default")
    type_ = field["type"]
    if raw is None:
        return None
    if isinstance(type_, str):
        return from_json(type_, raw)
    match type_["type"]:
        case "struct":
            return {
                f["name"]: _default(
                    {**f, "initial-default": raw[str(f["id"])]} if str(f["id"]) in raw else f
                )
                for f in type_["fields"]
            }
        case "list":
            return [_default({"type": type_["element"], "initial-default": v}) for v in raw]
        case _:
            pairs = zip(raw["keys"], raw["values"], strict=True)
            return [
                (
                    _default({"type": type_["key"], "initial-default": k}),
                    _default({"type": type_["value"], "initial-default": v}),
                )
                for k, v in pairs
            ]


def pruned_to(fields: Sequence[Json], field_id: int) -> Json | None:
    """Return the column that leads to a field, with only the structs on the way.

    None of them is required: what a file lacks is null to whoever compares it.
    """
    for field in fields:
        field = {**field, "required": False}
        if field["id"] == field_id:
            return field
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            below = pruned_to(field["type"]["fields"], field_id)
            if below is not None:
                return {**field, "type": {"type": "struct", "fields": [below]}}
    return None


def _path_of(field: Json) -> list[str]:
    """Return the names on the way down a column that `pruned_to` made."""
    if isinstance(field["type"], str):
        return [field["name"]]
    return [field["name"], *_path_of(field["type"]["fields"][0])]
