"""The columns that a file stores, with the field ids by which a table knows them.

Every format gives its columns in this form, so that what follows (which column is which field, what
to decode) is the same for Parquet, Avro and ORC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from floeberg.protocol.name_mapping import MappedField, NameMapping
from floeberg.worker.arrow import ArrowField, ArrowType

FieldIdOf: TypeAlias = Callable[[ArrowField], int | None]
"""How a format spells a column's field id in the metadata of its Arrow field."""


@dataclass(frozen=True, slots=True)
class StoredField:
    """One column of a file, or one field below a column.

    `type` is the Arrow type in which it is decoded. `is_mapped` says that the id comes from the
    table's name mapping, the file having none. Lists have one child, maps two (key, value). Leaves,
    the columns without children, are numbered in depth-first order: this field holds `leaf_count`
    of them from `first_leaf` on.
    """

    name: str
    type: ArrowType
    field_id: int | None
    is_mapped: bool
    children: tuple[StoredField, ...]
    first_leaf: int
    leaf_count: int

    @property
    def leaves(self) -> range:
        return range(self.first_leaf, self.first_leaf + self.leaf_count)

    @classmethod
    def of(
        cls,
        name: str,
        type_: ArrowType,
        own_id: int | None,
        mapped: MappedField | None,
        children: Sequence[StoredField] = (),
    ) -> StoredField:
        """Return a field with the id that the file gives it, else the one that the mapping does.

        Its leaves have no numbers yet, see `number_leaves`.
        """
        is_mapped = own_id is None and mapped is not None
        return cls(
            name=name,
            type=type_,
            field_id=mapped.field_id if is_mapped and mapped is not None else own_id,
            is_mapped=is_mapped,
            children=tuple(children),
            first_leaf=0,
            leaf_count=sum(c.leaf_count for c in children) if children else 1,
        )


def number_leaves(columns: Sequence[StoredField], first_leaf: int = 0) -> tuple[StoredField, ...]:
    """Return the columns of a whole file with their leaves numbered."""
    numbered = []
    for column in columns:
        below = number_leaves(column.children, first_leaf)
        numbered.append(replace(column, children=below, first_leaf=first_leaf))
        first_leaf += column.leaf_count
    return tuple(numbered)


def stored_fields(
    schema: pa.Schema, field_id_of: FieldIdOf, mapping: NameMapping | None = None
) -> tuple[StoredField, ...]:
    """Return the columns of a file with Arrow schema `schema`.

    A column without an id of its own gets the one that `mapping` has for its name.
    Spec: "Column Projection".
    """
    fields = [(field.name, field) for field in schema]
    return number_leaves(_stored_fields(fields, field_id_of, mapping))


def _stored_fields(
    fields: Sequence[tuple[str, ArrowField]],
    field_id_of: FieldIdOf,
    mapping: NameMapping | MappedField | None,
) -> list[StoredField]:
    stored = []
    for name, field in fields:
        mapped = mapping.child(name) if mapping is not None else None
        below = _stored_fields(_children(field.type), field_id_of, mapped)
        stored.append(StoredField.of(name, field.type, field_id_of(field), mapped, below))
    return stored


def _children(type_: ArrowType) -> list[tuple[str, ArrowField]]:
    """Return the fields below `type_`, by the names that name mappings use, whatever the file calls
    them.
    """
    if isinstance(type_, pa.BaseExtensionType):
        return _children(type_.storage_type)
    if isinstance(type_, pa.StructType):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return [(f.name, f) for f in fields]
    if isinstance(type_, pa.MapType):
        return [("key", type_.key_field), ("value", type_.item_field)]
    if is_list(type_):
        return [("element", type_.field(0))]
    return []


def is_list(type_: ArrowType) -> bool:
    """Say whether `type_` is one of Arrow's list types (a map is not)."""
    return (
        pat.is_list(type_)
        or pat.is_large_list(type_)
        or pat.is_fixed_size_list(type_)
        or pat.is_list_view(type_)
        or pat.is_large_list_view(type_)
    )


def has_field_ids(columns: Sequence[StoredField]) -> bool:
    """Say whether the file itself gives any of its columns an id."""
    return any(f.field_id is not None and not f.is_mapped for f in walk(columns))


def walk(columns: Sequence[StoredField]) -> Iterator[StoredField]:
    """Yield every field, parents before their children."""
    for column in columns:
        yield column
        yield from walk(column.children)


def prune(columns: Sequence[StoredField], leaves: Set[int]) -> tuple[StoredField, ...]:
    """Return what is left when only `leaves` are decoded: fields with no leaf among them are gone.

    Leaf numbers stay those of the whole file.
    """
    return tuple(
        replace(column, children=prune(column.children, leaves)) if column.children else column
        for column in columns
        if not leaves.isdisjoint(column.leaves)
    )
