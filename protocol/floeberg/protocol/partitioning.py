"""Partition specs: how a table's rows were grouped into files, then and now.

Spec: "Partitioning", Appendix C, "Partition Specs".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from floeberg.protocol.errors import CorruptMetadata
from floeberg.protocol.schema import Schema
from floeberg.protocol.transforms import Transform, Void, parse_transform, result_type
from floeberg.protocol.types import (
    Json,
    NestedField,
    StructType,
    Type,
    UnknownType,
    parse_id,
    unknown_keys,
)

FIRST_PARTITION_FIELD_ID = 1000
_SPEC_KEYS = frozenset({"spec-id", "fields"})
_FIELD_KEYS = frozenset({"source-id", "source-ids", "field-id", "name", "transform"})


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One value of the partition tuple. More than one source id needs a multi-argument transform
    (v3)."""

    source_ids: tuple[int, ...]
    field_id: int
    name: str
    transform: Transform
    extra: Json = field(default=None, compare=False, repr=False)

    @property
    def source_id(self) -> int:
        return self.source_ids[0]


@dataclass(frozen=True)
class PartitionSpec:
    spec_id: int
    fields: tuple[PartitionField, ...]
    extra: Json = field(default=None, compare=False, repr=False)

    @classmethod
    def from_json(cls, raw: Json, where: str = "partition spec") -> PartitionSpec:
        """Parse the object form, or v1's bare list of fields (spec id 0, ids from 1000 where
        absent)."""
        if isinstance(raw, list):
            raw = {"spec-id": 0, "fields": raw}
        if not isinstance(raw, dict) or not isinstance(raw.get("fields"), list):
            raise CorruptMetadata(f"{where}: a partition spec is an object with 'fields'")
        fields = []
        for i, item in enumerate(raw["fields"]):
            try:
                sources = item.get("source-ids") or [item["source-id"]]
                fields.append(
                    PartitionField(
                        tuple(parse_id(s, where) for s in sources),
                        parse_id(item.get("field-id", FIRST_PARTITION_FIELD_ID + i), where),
                        str(item["name"]),
                        parse_transform(str(item["transform"])),
                        unknown_keys(item, _FIELD_KEYS),
                    )
                )
            except (KeyError, TypeError, ValueError, AttributeError) as exc:
                raise CorruptMetadata(
                    f"{where}: partition field {i} is malformed: {item!r}"
                ) from exc
        spec_id = parse_id(raw.get("spec-id", 0), where)
        return cls(spec_id, tuple(fields), unknown_keys(raw, _SPEC_KEYS))

    def to_json(self) -> Json:
        fields = [field_to_json(f) for f in self.fields]
        return {"spec-id": self.spec_id, "fields": fields, **(self.extra or {})}

    @property
    def is_unpartitioned(self) -> bool:
        """Say whether the spec has no field but `void` ones: its files hold rows of any
        partition."""
        return all(isinstance(f.transform, Void) for f in self.fields)

    @cached_property
    def by_source(self) -> dict[int, tuple[PartitionField, ...]]:
        """The single-argument fields over each source column."""
        found: dict[int, tuple[PartitionField, ...]] = {}
        for f in self.fields:
            if len(f.source_ids) == 1:
                found[f.source_id] = (*found.get(f.source_id, ()), f)
        return found

    def partition_type(self, *schemas: Schema) -> StructType:
        """Return the struct type of this spec's partition tuples, all fields optional.

        Source columns are looked up in `schemas` in turn. A field whose source none of them knows,
        or whose transform is unknown, gets the `unknown` type.
        """
        return StructType(
            tuple(NestedField(f.field_id, f.name, _result_type(f, schemas)) for f in self.fields)
        )


def _result_type(f: PartitionField, schemas: Sequence[Schema]) -> Type:
    if len(f.source_ids) > 1:
        return UnknownType()
    found = (schema.find(f.source_id) for schema in schemas)
    source = next((s for s in found if s is not None), None)
    return UnknownType() if source is None else result_type(f.transform, source.type)


def field_to_json(f: PartitionField) -> Json:
    sources: dict[str, Json] = (
        {"source-id": f.source_ids[0]}
        if len(f.source_ids) == 1
        else {"source-ids": list(f.source_ids)}
    )
    return {
        **sources,
        "field-id": f.field_id,
        "name": f.name,
        "transform": str(f.transform),
        **(f.extra or {}),
    }


UNPARTITIONED = PartitionSpec(0, ())
