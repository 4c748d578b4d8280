"""Skip row groups whose statistics prove that none of their rows satisfies the residual.

A row group is asked what a file is asked in planning, its footer's statistics in the place of the
manifest's metrics. May keep a row group without a wanted row, never drops one that has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from floeberg.protocol.arrow import arrow_type
from floeberg.protocol.expressions.metrics import file_may_match
from floeberg.protocol.expressions.model import BoundExpression
from floeberg.protocol.files import Metrics
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import Type, Value
from floeberg.protocol.values import decimal_of, to_bytes
from floeberg.worker.arrow import ArrowArray, ArrowType
from floeberg.worker.files.rows import MayMatch, RowGroupStatistics
from floeberg.worker.files.stored import StoredField
from floeberg.worker.projection.conversion import CannotConvert, convert, decode_layout
from floeberg.worker.projection.flat import FlatField
from floeberg.worker.projection.sources import LeafSource, Source, StructSource


@dataclass(frozen=True, slots=True)
class _StoredLeaf:
    """A field that a filter looks at, where the file stores it."""

    field_id: int
    type: Type
    leaf: int
    stored_type: ArrowType


def row_group_test(
    residual: BoundExpression,
    schema: Schema,
    fields: Sequence[FlatField],
    sources: Sequence[Source],
    columns: Sequence[StoredField],
) -> MayMatch:
    """Return the test that `residual` makes of a row group's statistics.

    `sources` say where the `fields` that the residual looks at come from in a file with these
    `columns`. Only what is stored has statistics: a constant or a default has none to go by.
    """
    leaves = list(_stored_leaves(fields, sources, columns))

    def may_match(group: RowGroupStatistics) -> bool:
        return file_may_match(residual, schema, _metrics(group, leaves), group.num_rows)

    return may_match


def _stored_leaves(
    fields: Sequence[FlatField], sources: Sequence[Source], columns: Sequence[StoredField]
) -> Iterator[_StoredLeaf]:
    for flat, source in zip(fields, sources, strict=True):
        stored = _find(source, columns)
        if stored is not None:
            field = flat.field
            yield _StoredLeaf(field.field_id, field.type, stored.first_leaf, stored.type)


def _find(source: Source, columns: Sequence[StoredField]) -> StoredField | None:
    """Follow a flat field's source through structs down to its leaf."""
    match source:
        case LeafSource(position=position):
            return columns[position]
        case StructSource(position=int(position), children=(child,)):
            return _find(child, columns[position].children)
        case _:
            return None


def _metrics(group: RowGroupStatistics, leaves: Sequence[_StoredLeaf]) -> Metrics:
    found = {leaf.field_id: (leaf, group.leaf(leaf.leaf)) for leaf in leaves}
    return Metrics(
        value_counts=dict.fromkeys(found, group.num_rows),
        null_value_counts={
            i: s.null_count for i, (_, s) in found.items() if s.null_count is not None
        },
        lower_bounds=_bounds({i: (leaf, s.smallest) for i, (leaf, s) in found.items()}),
        upper_bounds=_bounds({i: (leaf, s.largest) for i, (leaf, s) in found.items()}),
    )


def _bounds(raw: Mapping[int, tuple[_StoredLeaf, object]]) -> dict[int, bytes]:
    bounds: dict[int, bytes] = {}
    for field_id, (leaf, physical) in raw.items():
        if physical is None:
            continue
        try:
            bounds[field_id] = to_bytes(
                leaf.type, bound_value(physical, leaf.stored_type, leaf.type)
            )
        except (CannotConvert, pa.ArrowException, ValueError, TypeError, OverflowError):
            continue  # a bound that cannot be understood is no bound
    return bounds


def bound_value(physical: Any, stored_type: ArrowType, type_: Type) -> Value:
    """Return a bound in Parquet's physical form as a value of the table's type.

    `stored_type` is the Arrow type in which the column is decoded. Raises ValueError, TypeError or
    an Arrow error for what has no such value.

    >>> from floeberg.protocol.types import TimestampType
    >>> bound_value(-1, pa.timestamp("ms"), TimestampType())
    -1000
    """
    single = convert(_physical_array(physical, stored_type), arrow_type(type_))
    plain = decode_layout(single)
    if pat.is_date(plain.type):
        plain = plain.view(pa.int32())
    elif pat.is_timestamp(plain.type) or pat.is_time(plain.type):
        plain = plain.view(pa.int64())
    value: Value = plain[0].as_py()
    return value


def _physical_array(physical: Any, stored_type: ArrowType) -> ArrowArray:
    type_ = stored_type
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if pat.is_dictionary(type_):
        type_ = type_.value_type
    if pat.is_unsigned_integer(type_):
        raise CannotConvert("bounds of unsigned integers come signed")
    if pat.is_decimal(type_):
        if isinstance(physical, bytes):
            physical = int.from_bytes(physical, "big", signed=True)
        return pa.array([decimal_of(physical, type_.scale)], type_)
    if isinstance(physical, bytes) and not pat.is_fixed_size_binary(type_):
        return pa.array([physical], pa.binary())
    return pa.array([physical], type_)
