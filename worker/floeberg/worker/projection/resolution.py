"""Decide, for each projected field, where its values come from in one file.

In the spec's order: the column with the field's id; the partition's value, where the field is
partitioned by identity; the column that the name mapping gives the id; the initial default; null.
Spec: "Column Projection", "Default values".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa

from floeberg.protocol.arrow import arrow_type
from floeberg.protocol.errors import CorruptDataFile, CorruptMetadata, CorruptTable, Unsupported
from floeberg.protocol.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UnknownType,
    Value,
    VariantType,
    children,
)
from floeberg.protocol.values import NestedValue, from_json
from floeberg.worker.files.stored import StoredField, is_list
from floeberg.worker.projection.constants import array_of
from floeberg.worker.projection.sources import (
    ConstantSource,
    LeafSource,
    ListSource,
    MapSource,
    Source,
    StructSource,
)


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves fields against the columns of the file at `location`.

    `constants` holds the values of identity partition fields by the id of their source column.
    `corrupt` is raised when the file contradicts the table.
    """

    location: str
    constants: Mapping[int, Value | None]
    corrupt: type[CorruptTable] = CorruptDataFile

    def resolve(
        self, fields: Sequence[NestedField], stored: Sequence[StoredField], parent: str = ""
    ) -> tuple[Source, ...]:
        """Return the source of each of `fields`, siblings in a struct stored as `stored`."""
        return tuple(self._field(field, stored, parent) for field in fields)

    def _field(self, field: NestedField, stored: Sequence[StoredField], parent: str) -> Source:
        name = f"{parent}{field.name}"
        if isinstance(field.type, UnknownType):
            return self._constant(field.type, None)
        position, column = _find(field.field_id, stored)
        if column is not None and (not column.is_mapped or field.field_id not in self.constants):
            return self._stored(field, position, column, name)
        if field.field_id in self.constants:
            return self._constant(field.type, self.constants[field.field_id])
        return self._default(field, name)

    def _constant(self, type_: Type, value: NestedValue) -> Source:
        return ConstantSource(array_of([value], type_, arrow_type(type_)))

    def _default(self, field: NestedField, name: str) -> Source:
        if field.initial_default is None:
            if field.required:
                raise self.corrupt(
                    f"{self.location} has no column for the required field {name!r}"
                    f" (id {field.field_id}), and the field has no default"
                )
            return self._constant(field.type, None)
        if isinstance(field.type, StructType):
            # the default of a struct says only that it is there; its fields have their own
            below = self.resolve(field.type.fields, (), f"{name}.")
            return StructSource(None, below, arrow_type(field.type), name, field.required)
        try:
            value = from_json(field.type, field.initial_default)
        except ValueError as exc:
            raise CorruptMetadata(
                f"the initial default of {name!r} (id {field.field_id}) is no {field.type}: {exc}"
            ) from exc
        return self._constant(field.type, value)

    def _stored(self, field: NestedField, position: int, column: StoredField, name: str) -> Source:
        target = arrow_type(field.type)
        match field.type:
            case StructType(fields) if isinstance(column.type, pa.StructType):
                below = self.resolve(fields, column.children, f"{name}.")
                return StructSource(position, below, target, name, field.required)
            case ListType() if is_list(column.type):
                element = self._only(children(field.type)[0], column.children[0], 0, name)
                return ListSource(position, element, target, name, field.required)
            case MapType() if isinstance(column.type, pa.MapType):
                key, value = (
                    self._only(child, stored, i, name)
                    for i, (child, stored) in enumerate(
                        zip(children(field.type), column.children, strict=True)
                    )
                )
                return MapSource(position, key, value, target, name, field.required)
            case StructType() | ListType() | MapType():
                raise self._mismatch(field, column, name)
            case VariantType():
                return self._variant(field, position, column, name)
            case _ if column.children:
                raise self._mismatch(field, column, name)
            case _:
                return LeafSource(position, target, name, field.required)

    def _only(self, child: NestedField, column: StoredField, position: int, name: str) -> Source:
        """Resolve a list's element or a map's key or value: the place says which it is, with or
        without an id.
        """
        below = f"{name}.{child.name}"
        if isinstance(child.type, UnknownType):
            return self._constant(child.type, None)
        return self._stored(child, position, column, below)

    def _variant(self, field: NestedField, position: int, column: StoredField, name: str) -> Source:
        """A variant's two parts have no ids: they go by name."""
        parts = {child.name: i for i, child in enumerate(column.children)}
        if "typed_value" in parts:
            raise Unsupported(
                f"{self.location} holds the shredded variant {name!r}, which is not read"
            )
        if not {"metadata", "value"} <= parts.keys():
            raise self._mismatch(field, column, name)
        target = arrow_type(field.type)
        below = tuple(
            LeafSource(parts[part], pa.binary(), f"{name}.{part}", required=True)
            for part in ("metadata", "value")
        )
        return StructSource(position, below, target, name, field.required)

    def _mismatch(self, field: NestedField, column: StoredField, name: str) -> CorruptTable:
        return self.corrupt(
            f"{self.location} stores {name!r} (id {field.field_id}) as {column.type},"
            f" which cannot be read as {field.type}"
        )


def _find(
    field_id: int, stored: Sequence[StoredField]
) -> tuple[int, StoredField] | tuple[int, None]:
    for position, column in enumerate(stored):
        if column.field_id == field_id:
            return position, column
    return -1, None


def needed_leaves(sources: Sequence[Source], stored: Sequence[StoredField]) -> Set[int]:
    """Return the leaves of `stored` that `sources`, resolved against it, read.

    A struct of which no field is read still needs one leaf below it, for where it is null.
    """
    return frozenset(leaf for source in sources for leaf in _leaves(source, stored))


def _leaves(source: Source, stored: Sequence[StoredField]) -> Iterator[int]:
    match source:
        case ConstantSource() | StructSource(position=None):
            return
        case LeafSource(position=position):
            yield from stored[position].leaves
        case StructSource(position=int(position), children=below):
            column = stored[position]
            found = needed_leaves(below, column.children)
            yield from found or [_witness(column)]
        case ListSource(position=position, element=element):
            column = stored[position]
            found = needed_leaves([element], column.children)
            yield from found or [_witness(column)]
        case MapSource(position=position, key=key, value=value):
            column = stored[position]
            # pyarrow decodes no map without its keys, nor one without its values
            found = needed_leaves([key, value], column.children)
            yield from found
            yield from (_witness(c) for c in column.children if found.isdisjoint(c.leaves))


def _witness(column: StoredField) -> int:
    """Return the leaf below `column` that is cheapest to decode: one that is not repeated, if there
    is one.
    """
    for child in column.children:
        if isinstance(column.type, pa.StructType) and not child.children:
            return child.first_leaf
    for child in column.children:
        if isinstance(child.type, pa.StructType):
            return _witness(child)
    return column.first_leaf
