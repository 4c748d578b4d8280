"""Single fields at any depth of structs, read out of a file as flat columns.

That is what filters compare and what equality deletes match.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from floeberg.protocol.schema import Schema
from floeberg.protocol.types import NestedField, StructType
from floeberg.worker.arrow import ArrowArray


@dataclass(frozen=True, slots=True)
class FlatField:
    """A field of a schema, alone in its top-level `column`, with `depth` structs above it.

    Of a field that is itself a struct nothing is read: filters ask only whether it is null.
    """

    column: NestedField
    depth: int

    @classmethod
    def of(cls, schema: Schema, field_id: int) -> FlatField:
        column = schema.prune([field_id]).fields[0]
        return cls(_without_fields_of(column, field_id), len(schema.path(field_id)) - 1)

    def as_optional(self) -> FlatField:
        """Return the same field as one that a file may lack, whatever the schema says."""
        return replace(self, column=_optional(self.column))

    def flatten(self, column: ArrowArray) -> ArrowArray:
        """Return the field's values out of the projected `column`; null below null structs."""
        for _ in range(self.depth):
            column = column.flatten()[0]
        return column

    @property
    def field(self) -> NestedField:
        """The field itself."""
        found = self.column
        for _ in range(self.depth):
            assert isinstance(found.type, StructType), "filters and keys reach through structs only"
            found = found.type.fields[0]
        return found


def _without_fields_of(field: NestedField, struct_id: int) -> NestedField:
    """Return `field` with the struct `struct_id`, if it is one, emptied of its fields."""
    if not isinstance(field.type, StructType):
        return field
    kept = () if field.field_id == struct_id else field.type.fields
    below = tuple(_without_fields_of(f, struct_id) for f in kept)
    return replace(field, type=StructType(below))


def _optional(field: NestedField) -> NestedField:
    if not isinstance(field.type, StructType):
        return replace(field, required=False)
    below = tuple(_optional(f) for f in field.type.fields)
    return replace(field, type=StructType(below), required=False)
