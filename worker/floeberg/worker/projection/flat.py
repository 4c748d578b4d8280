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
    """A field of a schema: `column` is its top-level column with nothing else in it, `depth`
    structs above.

    Everything in `column` is optional: that a required value is missing is for the projection to
    say, not for a filter or delete that looks at it. A struct has no fields left: filters ask of it
    only whether it is null.
    """

    column: NestedField
    depth: int

    @classmethod
    def of(cls, schema: Schema, field_id: int) -> FlatField:
        column = schema.prune([field_id]).fields[0]
        return cls(_optional(column, field_id), len(schema.path(field_id)) - 1)

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


def _optional(field: NestedField, wanted: int) -> NestedField:
    if isinstance(field.type, StructType):
        below = (
            tuple(_optional(f, wanted) for f in field.type.fields)
            if field.field_id != wanted
            else ()
        )
        return replace(field, type=StructType(below), required=False)
    return replace(field, required=False)
