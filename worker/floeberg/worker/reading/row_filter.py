"""Decide which rows of a chunk are kept: those that no delete names and for which the filter is
true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
class Residual:
    """What is left of a filter, as a test over the flat `fields` that it looks at; None, where
    nothing is left. Tasks may share it."""

    expression: BoundExpression
    fields: tuple[FlatField, ...]
    test: Test | None

    @classmethod
    def of(cls, expression: BoundExpression, schema: Schema) -> Residual:
        fields = tuple(FlatField.of(schema, field_id) for field_id in field_ids(expression))
        return cls(expression, fields, None if expression == TRUE else compile_filter(expression))


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The deletes and the residual of one task, over the flat `fields` that they look at."""

    fields: tuple[FlatField, ...]
    deletes: TaskDeletes
    residual: Test | None

    @classmethod
    def of(cls, residual: Residual, deletes: TaskDeletes) -> RowFilter:
        if not deletes.equality:
            return cls(residual.fields, deletes, residual.test)
        found = {flat.field.field_id: flat for flat in residual.fields}
        for equality in deletes.equality:
            found |= {flat.field.field_id: flat for flat in equality.fields}
        return cls(tuple(found.values()), deletes, residual.test)

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
        if self.deletes.equality:
            matched = self._matched(flat, num_rows)
            if self.deletes.matching is not None:
                self.deletes.matching.add(first_row, matched)
            keep = both(keep, mask_of(~matched))
        if self.residual is not None:
            keep = both(keep, is_true(self.residual, flat, num_rows))
        return keep

    def _matched(self, flat: Mapping[int, ArrowArray], num_rows: int) -> npt.NDArray[np.bool_]:
        """Return which rows any equality delete names."""
        matched = np.zeros(num_rows, dtype=np.bool_)
        for equality in self.deletes.equality:
            matched |= equality.keys.matches([flat[f.field.field_id] for f in equality.fields])
        return matched
