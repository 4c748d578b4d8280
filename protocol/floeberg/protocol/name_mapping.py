"""Fallback field ids, by name, for data files that were written without any.

A table that took over files of another system says in the property `schema.name-mapping.default`
which column of such a file is which field. Spec: "Column Projection", "Name Mapping
Serialization".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from floeberg.protocol.errors import CorruptMetadata
from floeberg.protocol.types import Json

PROPERTY = "schema.name-mapping.default"


@dataclass(frozen=True)
class MappedField:
    """The field that a column called one of `names` stands for, and what is below it.

    `field_id` is None for a column that the table does not have. Lists have a child `element`,
    maps `key` and `value`. Names are literal: `a.b` is one name.
    """

    names: tuple[str, ...]
    field_id: int | None = None
    fields: tuple[MappedField, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, MappedField]:
        return {name: f for f in self.fields for name in f.names}

    def child(self, name: str) -> MappedField | None:
        """Return the mapping of the column called `name` directly below, if there is one."""
        return self._by_name.get(name)

    def to_json(self) -> Json:
        out: dict[str, Json] = {} if self.field_id is None else {"field-id": self.field_id}
        out["names"] = list(self.names)
        if self.fields:
            out["fields"] = [f.to_json() for f in self.fields]
        return out


@dataclass(frozen=True)
class NameMapping:
    """The mapping of a file's top-level columns.

    >>> mapping = NameMapping.parse('[{"field-id": 1, "names": ["id", "record_id"]}]')
    >>> mapping.child("record_id").field_id
    1
    """

    fields: tuple[MappedField, ...]

    @classmethod
    def parse(cls, text: str, where: str = PROPERTY) -> NameMapping:
        """Parse JSON text. Raises `CorruptMetadata` for another shape or an ambiguous name."""
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise CorruptMetadata(f"{where}: the name mapping is not valid JSON: {exc}") from exc
        return cls(_parse_fields(raw, where))

    def to_json(self) -> Json:
        return [f.to_json() for f in self.fields]

    @cached_property
    def _root(self) -> MappedField:
        return MappedField((), None, self.fields)

    def child(self, name: str) -> MappedField | None:
        """Return the mapping of the top-level column called `name`, if there is one."""
        return self._root.child(name)

    def find(self, path: Sequence[str]) -> MappedField | None:
        """Return the mapping of the column at `path`, one name a level, if there is one."""
        found: MappedField | None = self._root
        for name in path:
            if found is None:
                return None
            found = found.child(name)
        return found


def _parse_fields(raw: Json, where: str) -> tuple[MappedField, ...]:
    if not isinstance(raw, list):
        raise CorruptMetadata(f"{where}: a name mapping is a list of objects with 'names'")
    fields = tuple(_parse_field(item, where) for item in raw)
    seen: set[str] = set()
    for name in (name for f in fields for name in f.names):
        if name in seen:
            raise CorruptMetadata(f"{where}: the name mapping gives {name!r} two meanings")
        seen.add(name)
    return fields


def _parse_field(raw: Json, where: str) -> MappedField:
    match raw:
        case {"names": [*names], **rest} if all(isinstance(n, str) for n in names):
            field_id = rest.get("field-id")
            if field_id is not None and type(field_id) is not int:
                raise CorruptMetadata(f"{where}: field id {field_id!r} is not an integer")
            fields = rest.get("fields")
            # a writer may repeat a name within one field, which is harmless
            return MappedField(
                tuple(dict.fromkeys(names)),
                field_id,
                () if fields is None else _parse_fields(fields, where),
            )
        case _:
            raise CorruptMetadata(f"{where}: {raw!r} is not a field of a name mapping")
