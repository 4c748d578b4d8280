"""Decide which rows of a chunk are kept: those that no delete names and for which the filter is
true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from floeberg.protocol.expressions.model import TRUE, BoundExpression, field_ids
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import NestedField
from floeberg.worker.arrow import ArrowArray
from floeberg.worker.deletes.loading import TaskDeletes
from floeberg.worker.deletes.positions import are_all_deleted, keep_mask
from floeberg.worker.files.rows import RowGroupStatistics
from floeberg.worker.projection.flat import FlatField
from floeberg.worker.reading.masks import Mask, both, mask_of
from floeberg.worker.reading.predicates import Test, compile_filter, is_true


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The deletes and the residual of one task, over the flat `fields` that they look at."""

    fields: tuple[FlatField, ...]
    deletes: TaskDeletes
    residual: Test | None

    @classmethod
    def of(cls, residual: BoundExpression, schema: Schema, deletes: TaskDeletes) -> RowFilter:
        found = {field_id: FlatField.of(schema, field_id) for field_id in field_ids(residual)}
        for equality in deletes.equality:
            found |= {flat.field.field_id: flat for flat in equality.fields}
        test = compile_filter(residual) if residual != TRUE else None
        return cls(tuple(found.values()), deletes, test)

    @property
    def keeps_all(self) -> bool:
        """Say whether there is nothing that a row could be left out for."""
        deletes = self.deletes
        return self.residual is None and not deletes.equality and not len(deletes.positions)

    @property
    def columns(self) -> list[NestedField]:
        """What to project for `keep`, in this order."""
        return [flat.column for flat in self.fields]

    def may_keep(self, group: RowGroupStatistics) -> bool:
        """Say whether a row group may hold a kept row: not if every position is deleted."""
        return not are_all_deleted(group.first_row, group.num_rows, self.deletes.positions)

    def keep(self, first_row: int, num_rows: int, columns: Sequence[ArrowArray]) -> Mask | None:
        """Return which of the rows are kept, None when all are. `columns` are those of `columns`,
        projected.
        """
        flat = {
            field.field.field_id: field.flatten(column)
            for field, column in zip(self.fields, columns, strict=True)
        }
        keep: Mask | None = None
        if len(self.deletes.positions):
            undeleted = keep_mask(first_row, num_rows, self.deletes.positions)
            keep = None if undeleted is None else mask_of(undeleted)
        for equality in self.deletes.equality:
            matched = equality.keys.matches([flat[f.field.field_id] for f in equality.fields])
            keep = both(keep, mask_of(~matched))
        if self.residual is not None:
            keep = both(keep, is_true(self.residual, flat, num_rows))
        return keep
