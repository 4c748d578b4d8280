"""Evaluate predicates on the partition values of all entries of a segment.

A row's answer is what `expressions.evaluation.is_true` gives for its partition tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np

from floeberg.protocol.expressions.evaluation import is_true
from floeberg.protocol.expressions.model import (
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
    Op,
)
from floeberg.protocol.manifests import Numbers, PartitionColumn, PartitionKind, Segment, Strings
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.types import Value
from floeberg.protocol.values import unscaled_of
from floeberg.server.planning.vectorised.ordered import (
    ByteColumn,
    Mask,
    NumberColumn,
    OrderedColumn,
    as_binary,
    is_member,
)
from floeberg.server.planning.vectorised.statistics import Rows

_COMPARISONS = frozenset({Op.EQ, Op.LT, Op.LE, Op.GT, Op.GE})


class SegmentPartitions:
    """The partition tuples of a segment's entries, or of those that `rows` names, ascending."""

    def __init__(self, segment: Segment, rows: Rows | None = None) -> None:
        self._rows = len(segment) if rows is None else len(rows)
        self._columns = segment.partition
        missing = segment.numbers(s.HAS_NO_PARTITION)
        if rows is not None:
            self._columns = {i: column.take(rows) for i, column in self._columns.items()}
            missing = None if missing is None else missing.take(rows)
        self._has_no_tuple: Mask | None = None if missing is None else missing.values != 0

    def lack(self, fields: frozenset[int]) -> Mask | None:
        """Say of each row whether its tuple lacks any of `fields`; None is none of them."""
        if not fields:
            return None
        if not fields <= self._columns.keys():
            return np.ones(self._rows, dtype=np.bool_)
        return self._has_no_tuple

    def are_true(self, bound: BoundExpression) -> Mask:
        """Say of each row whether `bound`, a filter by partition fields, is true of its tuple.

        A field that a tuple lacks is null. TypeError where values and literals do not compare.
        """
        match bound:
            case Constant(value):
                return np.full(self._rows, value)
            case BoundPredicate():
                return self._holds(bound)
            case BoundNullTest():
                valid = self._valid(self._column(bound.field_id))
                return valid if bound.negated else ~valid
            # what is true by Kleene's logic goes by what is true of the operands
            case BoundAnd(operands):
                return reduce(np.logical_and, map(self.are_true, operands))
            case BoundOr(operands):
                return reduce(np.logical_or, map(self.are_true, operands))

    def _column(self, field_id: int) -> Numbers | Strings | None:
        found = self._columns.get(field_id)
        return None if found is None else found.column

    def _valid(self, column: Numbers | Strings | None) -> Mask:
        if column is None:
            return np.zeros(self._rows, dtype=np.bool_)
        return np.ones(self._rows, dtype=np.bool_) if column.valid is None else column.valid

    def _holds(self, predicate: BoundPredicate) -> Mask:
        column = self._column(predicate.field_id)
        if predicate.op is Op.IS_NULL:
            return ~self._valid(column)
        if column is None or predicate.op is Op.NOT_NULL:
            return self._valid(column)
        holds = self._holds_where_valid(predicate)
        return holds if column.valid is None else column.valid & holds

    def _holds_where_valid(self, predicate: BoundPredicate) -> Mask:
        field = self._columns[predicate.field_id]
        compared = _compared(field, predicate.literals)
        if compared is None:
            return self._holds_by_value(predicate, field)
        values, literals = compared
        op = predicate.op
        if op in _COMPARISONS:
            return values.compare(op, literals[0])
        if op is Op.NE:
            return ~values.compare(Op.EQ, literals[0])
        if op in (Op.IN, Op.NOT_IN):
            members = is_member(values, literals)
            return members if op is Op.IN else ~members
        if op in (Op.IS_NAN, Op.NOT_NAN) and field.kind is PartitionKind.FLOAT:
            assert isinstance(values, NumberColumn)
            is_nan: Mask = np.isnan(values.values)
            return is_nan if op is Op.IS_NAN else ~is_nan
        if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH) and isinstance(values, ByteColumn):
            starts = values.starts_with(literals[0])
            return starts if op is Op.STARTS_WITH else ~starts
        return self._holds_by_value(predicate, field)

    def _holds_by_value(self, predicate: BoundPredicate, field: PartitionColumn) -> Mask:
        """Evaluate plainly, once a distinct value: for types that do not compare by column."""
        answers: dict[Value | None, bool] = {}
        mask = np.zeros(self._rows, dtype=np.bool_)
        for i, value in enumerate(field.to_list(np.arange(self._rows))):
            if value not in answers:
                answers[value] = is_true(predicate, {predicate.field_id: value})
            mask[i] = answers[value]
        return mask


def _compared(
    field: PartitionColumn, literals: Sequence[Value]
) -> tuple[OrderedColumn, list[Any]] | None:
    """Return values and literals that compare with each other, None where they are too different.

    The kind of the values is the manifest's, and the type of the literals the schema's.
    """
    column = field.column
    match field.kind, column:
        case ((PartitionKind.INTEGER | PartitionKind.BOOLEAN), Numbers(values=values)):
            if all(isinstance(i, int) for i in literals):
                return NumberColumn(values, None), [int(i) for i in literals if isinstance(i, int)]
        case PartitionKind.FLOAT, Numbers():
            if all(isinstance(i, float) for i in literals):
                return NumberColumn(field.floats(), None), list(literals)
        case PartitionKind.TEXT, Strings():
            if all(isinstance(i, str) for i in literals):
                texts = [i.encode() for i in literals if isinstance(i, str)]
                return ByteColumn(as_binary(column), None), texts
        case PartitionKind.BYTES, Strings():
            if all(isinstance(i, bytes) for i in literals):
                return ByteColumn(as_binary(column), None), list(literals)
        case PartitionKind.DECIMAL, Numbers(values=values):
            units = _units(literals, field.scale)
            if units is not None:
                return NumberColumn(values, None), units
    return None


def _units(literals: Sequence[Value], scale: int) -> list[int] | None:
    """Return the unscaled values of decimals, None for those that have none of 64 bits."""
    units = []
    for literal in literals:
        try:
            unit = unscaled_of(literal, scale) if isinstance(literal, Decimal) else None
        except ValueError:
            return None
        if unit is None or not -(1 << 63) <= unit < 1 << 63:
            return None
        units.append(unit)
    return units
