"""Name mappings that grow with the schema, and whether one leads to every column of a file.

Spec: "Name Mapping", Appendix C.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.lake.schemas import children
from tests.support.plain import Json


def mapped(type_: Json, known: Sequence[Json]) -> list[Json]:
    """Return a mapping for the fields below a type or schema.

    What is known already stays, since files were written with those names; a name that another
    field of the same struct had is not given twice.
    """
    out = [dict(m) for m in known]
    by_id = {m["field-id"]: m for m in out}
    for field in children(_struct(type_)):
        entry = by_id.get(field["id"])
        if entry is None:
            entry = {"field-id": field["id"], "names": []}
            out.append(entry)
        taken = {name for m in out for name in m["names"]}
        if field["name"] not in taken:
            entry["names"] = [*entry["names"], field["name"]]
        if below := mapped(field["type"], entry.get("fields", ())):
            entry["fields"] = below
    return out


def covers(mapping: Sequence[Json], type_: Json) -> bool:
    """Say whether every field below `type_` is mapped by its present name."""
    for field in children(_struct(type_)):
        entry = next((m for m in mapping if m["field-id"] == field["id"]), None)
        if entry is None or field["name"] not in entry["names"]:
            return False
        if not covers(entry.get("fields", ()), field["type"]):
            return False
    return True


def _struct(type_: Json) -> Json:
    is_schema = isinstance(type_, dict) and "fields" in type_
    return {**type_, "type": "struct"} if is_schema else type_
