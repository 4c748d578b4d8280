"""Whether a file may hold a row that satisfies a filter, by the counts and bounds of its columns.

The answer may be yes for a file without such a row, and is never no for one that has one. What is
absent is unknown: a column without metrics may have been added after the file was written, and then
hold its default, or be known from the partition only. Counts that contradict the file's record
count are wrong, and unknown too. Spec: "Field-level Metrics and Statistics", "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from floeberg.protocol.expressions.bounds import decode_bounds, may_match
from floeberg.protocol.expressions.model import (
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
    Op,
)
from floeberg.protocol.files import Metrics
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import DoubleType, FloatType, ListType, MapType


def file_may_match(
    bound: BoundExpression,
    schema: Schema,
    metrics: Metrics,
    record_count: int,
    *,
    may_be_imported: bool = False,
) -> bool:
    """Say whether a file with `record_count` rows may hold one that satisfies `bound`.

    `schema` is the one that `bound` was bound to. A negative record count is unknown. The same
    answer is right for a delete file, whose metrics describe the rows that it deletes.
    `may_be_imported` says that the file may have been written before it became part of an Iceberg
    table, see `decode_bounds`.
    """
    if record_count == 0:
        return False
    return _may_match(bound, _File(schema, metrics, record_count, may_be_imported))


@dataclass(frozen=True, slots=True)
class _File:
    schema: Schema
    metrics: Metrics
    record_count: int
    may_be_imported: bool

    def has_one_value_a_row(self, field_id: int) -> bool:
        """Say whether the field is a column, or below structs only: lists and maps repeat their
        fields."""
        above = [self.schema.find(i) for i in self.schema.path(field_id)[:-1]]
        return not any(f is None or isinstance(f.type, ListType | MapType) for f in above)

    def count(self, counts: Mapping[int, int], field_id: int) -> int | None:
        """Return a count, or None where it is unknown or cannot be."""
        count = counts.get(field_id)
        return count if count is not None and 0 <= count <= self.record_count else None

    def has_no_nulls(self, field_id: int) -> bool:
        """Say whether the field is null in no row.

        Some formats do not count the rows whose surrounding struct is null: where the counted
        values are not all rows, their nulls are not all nulls.
        """
        if self.count(self.metrics.null_value_counts, field_id) != 0:
            return False
        if field_id not in self.metrics.value_counts:
            return len(self.schema.path(field_id)) == 1
        return self.metrics.value_counts[field_id] == self.record_count

    def is_all(self, field_id: int, *counts: Mapping[int, int]) -> bool:
        """Say whether the field's counts, of which none may be unknown, add up to all rows."""
        if self.count(self.metrics.value_counts, field_id) != self.record_count:
            return False
        parts = [self.count(mapping, field_id) for mapping in counts]
        return sum(p for p in parts if p is not None) == self.record_count and None not in parts


def _may_match(bound: BoundExpression, file: _File) -> bool:
    match bound:
        case Constant(value):
            return value
        case BoundPredicate():
            return _field_may_match(bound, file)
        case BoundNullTest():
            return True  # what writers count for structs, lists and maps differs
        case BoundAnd(operands):
            return all(_may_match(operand, file) for operand in operands)
        case BoundOr(operands):
            return any(_may_match(operand, file) for operand in operands)


def _field_may_match(predicate: BoundPredicate, file: _File) -> bool:
    field_id, metrics = predicate.field_id, file.metrics
    if file.schema.find(field_id) is None or not file.has_one_value_a_row(field_id):
        return True
    if predicate.op is Op.IS_NULL:
        return not file.has_no_nulls(field_id)
    if file.is_all(field_id, metrics.null_value_counts):
        return False  # nothing but is-null is true of a null
    is_float = isinstance(predicate.type, FloatType | DoubleType)
    match predicate.op:
        case Op.NOT_NULL:
            return True
        case Op.IS_NAN:
            return file.count(metrics.nan_value_counts, field_id) != 0
        case Op.NE | Op.NOT_IN if is_float:
            return True  # NaN, which bounds leave out, satisfies them
        case _:
            if is_float and file.is_all(
                field_id, metrics.null_value_counts, metrics.nan_value_counts
            ):
                return False
            if predicate.op is Op.NOT_NAN:
                return True
            bounds = decode_bounds(
                predicate.type,
                metrics.lower_bounds.get(field_id),
                metrics.upper_bounds.get(field_id),
                may_be_imported=file.may_be_imported,
            )
            return may_match(predicate, bounds)
