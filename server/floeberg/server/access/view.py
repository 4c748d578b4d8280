"""A table as a caller sees it whom a policy restricts: fewer rows, fewer columns, nulls.

All of it is in the plan, so that a worker can't return more: the rows in the filter that tasks
carry; hidden columns are in no schema that names are looked up in; and a masked column stands in it
under a field id that no file has, so that reading it gives null without a look at the file.

Names mean what they meant in any of the table's schemas: a column that was renamed or dropped is
masked in older snapshots too. What can't be applied refuses the table (`NotPermitted`), and never
shows more of it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from floeberg.protocol.errors import BadRequest, NotPermitted
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.json_form import (
    MalformedExpression,
    bound_from_json,
    bound_to_json,
)
from floeberg.protocol.expressions.model import (
    FALSE,
    TRUE,
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
    Op,
)
from floeberg.protocol.expressions.rewriting import conjunction, disjunction
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.protocol.sorting import SortOrder
from floeberg.protocol.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    children,
    walk,
)
from floeberg.server.access.policies import Access

logger = logging.getLogger(__name__)

_MASK = 2_000_000_000
"""What is added to the field ids of a masked column: no table has ids as high, and those from
2147483447 on are reserved."""


@dataclass(frozen=True, slots=True)
class TableView:
    """What a restricted caller sees of one table. `rows` is bound to the table's current schema."""

    metadata: TableMetadata
    rows: BoundExpression
    masked: Set[int]
    hidden: Set[int]

    @classmethod
    def of(cls, metadata: TableMetadata, access: Access) -> TableView:
        """Raises `NotPermitted` for a policy that names what the table has never had."""
        # what is required now may hold nulls in older snapshots: no test for null is folded away
        columns = tuple(replace(f, required=False) for f in metadata.schema().fields)
        current = replace(metadata.schema(), fields=columns)
        try:
            rows = bind(access.rows, current, case_sensitive=True)
        except BadRequest as exc:
            raise _inapplicable(metadata, f"rows: {exc}") from exc
        return cls(metadata, rows, _ids(metadata, access.masked), _ids(metadata, access.hidden))

    def shown(self, schema: Schema) -> Schema:
        """Return `schema` without hidden columns, and with masked ones under ids of no file."""
        if self.masked and any(f.field_id >= _MASK for f in walk(schema.as_struct())):
            raise _inapplicable(self.metadata, "a field id is taken for that of a masked column")
        kept = (self._shown(field) for field in schema.fields)
        return replace(
            schema, fields=tuple(f for f in kept if f is not None), identifier_field_ids=()
        )

    def narrowed(self, filter: BoundExpression, schema: Schema) -> BoundExpression:
        """Return `filter`, which is bound to what is `shown` of `schema`, for the caller's rows
        alone, bound to `schema` itself. Masked columns are null in it.

        Raises `NotPermitted` where `schema` lacks a column that says which rows those are.
        """
        try:
            rows = bound_from_json(bound_to_json(self.rows), schema)
        except MalformedExpression as exc:
            raise NotPermitted(
                "this snapshot has another schema than the one that a policy for you is made for;"
                " read a later one"
            ) from exc
        return conjunction((_on_nulls(filter), rows))

    def may_tell(self, source_ids: Sequence[int]) -> bool:
        """Say whether what is made of these columns may be told."""
        return not {*source_ids} & (self.masked | self.hidden)

    def specs(self) -> tuple[PartitionSpec, ...]:
        """Return the table's partition specs, without the fields that are made of masked or hidden
        columns."""
        return tuple(
            replace(spec, fields=tuple(f for f in spec.fields if self.may_tell(f.source_ids)))
            for spec in self.metadata.partition_specs
        )

    def sort_orders(self) -> tuple[SortOrder, ...]:
        """Return the table's sort orders, likewise."""
        return tuple(
            replace(order, fields=tuple(f for f in order.fields if self.may_tell(f.source_ids)))
            for order in self.metadata.sort_orders
        )

    def _shown(self, field: NestedField) -> NestedField | None:
        if field.field_id in self.hidden:
            return None
        if field.field_id in self.masked:
            return _masked_field(field)
        below = {f.field_id for f in walk(field.type)}
        if not below & (self.hidden | self.masked):
            return field
        shown = self._shown_type(field.type)
        return None if shown is None else replace(field, type=shown)

    def _shown_type(self, type_: Type) -> Type | None:
        """Return what is shown of a nested type, None for nothing."""
        match type_:
            case StructType(fields):
                kept = tuple(f for f in map(self._shown, fields) if f is not None)
                return StructType(kept) if kept else None
            case ListType():
                (element,) = self._shown_parts(type_)
                return None if element is None else replace(type_, element=element)
            case MapType():
                key, value = self._shown_parts(type_)
                if key is None or value is None:
                    return None
                return replace(type_, key=key, value=value)
            case _:
                return type_

    def _shown_parts(self, type_: ListType | MapType) -> list[Type | None]:
        """Return what is shown of a list's elements, or of a map's keys and values, which are
        masked and hidden with the whole column alone."""
        parts = children(type_)
        if any(part.field_id in self.masked | self.hidden for part in parts):
            raise _inapplicable(self.metadata, "a list's elements, or a map's keys or values alone")
        return [self._shown_type(part.type) for part in parts]


def _masked_field(field: NestedField) -> NestedField:
    return NestedField(field.field_id + _MASK, field.name, _masked_type(field.type), doc=field.doc)


def _masked_type(type_: Type) -> Type:
    """Return a type of the same form whose field ids are those of no file, at any depth."""
    match type_:
        case StructType(fields):
            return StructType(tuple(map(_masked_field, fields)))
        case ListType():
            return ListType(type_.element_id + _MASK, _masked_type(type_.element))
        case MapType():
            return MapType(
                type_.key_id + _MASK,
                _masked_type(type_.key),
                type_.value_id + _MASK,
                _masked_type(type_.value),
            )
        case _:
            return type_


def _on_nulls(filter: BoundExpression) -> BoundExpression:
    """Return the filter where masked columns are null.

    A bound filter has no `not`, so what is unknown of a null may as well be false.
    """
    match filter:
        case BoundPredicate() | BoundNullTest() if filter.field_id < _MASK:
            return filter
        case BoundPredicate(op=op):
            return TRUE if op is Op.IS_NULL else FALSE
        case BoundNullTest(negated=negated):
            return FALSE if negated else TRUE
        case BoundAnd(operands):
            return conjunction(map(_on_nulls, operands))
        case BoundOr(operands):
            return disjunction(map(_on_nulls, operands))
        case Constant():
            return filter


def _ids(metadata: TableMetadata, names: tuple[str, ...]) -> frozenset[int]:
    """Return the fields that any of the table's schemas calls by one of `names`, whatever their
    case. Raises `NotPermitted` for a name that none has."""
    found: set[int] = set()
    for name in names:
        named = {id_ for schema in metadata.schemas for id_ in schema.ids_named(name)}
        if not named:
            raise _inapplicable(metadata, f"no schema has had a column {name!r}")
        found |= named
    return frozenset(found)


def _inapplicable(metadata: TableMetadata, why: str) -> NotPermitted:
    # the caller is not told: the reason may name what is kept back
    logger.error("policy can't be applied", extra={"table": metadata.location, "why": why})
    return NotPermitted(
        "a policy for you can't be applied to this table, so that nothing of it is shown; whoever"
        " keeps the policies finds the reason in the coordinator's log"
    )
