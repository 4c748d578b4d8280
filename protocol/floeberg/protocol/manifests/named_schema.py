"""Look at a schema whose fields are named by id, as `AvroFile.named` has it."""

from __future__ import annotations

from floeberg.protocol.types import Json


class NotWalkable(Exception):
    """The schema has a shape that no walker is written for: the plain decoder must have a look."""


class NamedTypes:
    """The types that `schema` defines by a name, wherever in it."""

    def __init__(self, schema: Json) -> None:
        self._known: dict[str, Json] = {}
        self._learn(schema)

    def _learn(self, schema: Json) -> None:
        match schema:
            case list():
                for inner in schema:
                    self._learn(inner)
            case dict():
                if "name" in schema:
                    self._known[schema["name"]] = schema
                for field in schema.get("fields", ()):
                    self._learn(field["type"])
                for inner in (schema.get("items"), schema.get("values")):
                    self._learn(inner)

    def resolve(self, schema: Json) -> Json:
        """Return what a name stands for, and everything else as it is."""
        return self._known.get(schema, schema) if isinstance(schema, str) else schema


def only_branch(schema: Json) -> Json:
    """Return the only branch of a union that is not null, or the schema itself."""
    if not isinstance(schema, list):
        return schema
    branches = [s for s in schema if s != "null"]
    if len(branches) != 1:
        raise NotWalkable("a union of several types")
    return branches[0]


def fields_of(schema: Json) -> list[Json]:
    """Return the fields of a record, each of another id."""
    if kind_of(schema) != "record":
        raise NotWalkable(f"{kind_of(schema)} where a record belongs")
    names = [f["name"] for f in schema["fields"]]
    if len(set(names)) != len(names):
        raise NotWalkable("two fields of one id")
    fields: list[Json] = schema["fields"]
    return fields


def kind_of(schema: Json) -> str:
    """Return the Avro type of a schema that is no union."""
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


def id_of(named_field: Json) -> int | None:
    """Return a field's id, None where it has none."""
    name: str = named_field["name"]
    if name[0] != "f":
        return None
    if not name[1:].isdecimal():
        raise NotWalkable("an id that is no number")
    return int(name[1:])


def entry_of(named: Json) -> Json:
    """Return the schema of entries; a union of records would be read by its first byte."""
    if isinstance(named, list):
        raise NotWalkable("a union where an entry belongs")
    return named
