"""Which files of a segment may hold a row that satisfies a filter, by counts and bounds.

The same answers as `expressions.metrics.file_may_match` gives for each file, which has the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from floeberg.protocol.expressions.model import (
    BoundAnd,
    BoundExpression,
    BoundNullTest,
    BoundOr,
    BoundPredicate,
    Constant,
    Op,
)
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    DecimalType,
    DoubleType,
    FloatType,
    ListType,
    MapType,
)
from floeberg.server.planning.vectorised.bounds import ColumnBounds, stored_literal
from floeberg.server.planning.vectorised.ordered import (
    ByteColumn,
    Mask,
    NumberColumn,
    OrderedColumn,
    both,
    is_member,
    unless_unknown,
)
from floeberg.server.planning.vectorised.statistics import ColumnCounts, Rows, SegmentStatistics

_BOUNDS_OF: Mapping[Op, frozenset[int]] = {
    Op.LT: frozenset({s.LOWER_BOUNDS}),
    Op.LE: frozenset({s.LOWER_BOUNDS}),
    Op.GT: frozenset({s.UPPER_BOUNDS}),
    Op.GE: frozenset({s.UPPER_BOUNDS}),
}
"""What a comparison looks at; others look at both."""


class SegmentMetrics:
    """What the statistics of a segment's files say of filters over `schema`.

    Remembers what it has found of each predicate, since the residuals of a filter share them. Used
    by one thread. `rows` limits it to some files, ascending.
    """

    def __init__(
        self,
        segment: Segment,
        schema: Schema,
        rows: Rows | None = None,
        *,
        may_be_imported: bool = False,
    ) -> None:
        self._statistics = SegmentStatistics(segment, rows)
        self._schema = schema
        self._may_be_imported = may_be_imported
        self._rows = len(self._statistics)
        # by identity: to hash a predicate of many literals costs more than to evaluate it
        self._known: dict[int, tuple[BoundPredicate, Mask]] = {}

    def may_match(self, bound: BoundExpression) -> Mask:
        """Return, for each entry, what `file_may_match` says of it; shape (entries,)."""
        found = self._may_match(bound)
        if self._statistics.none_is_empty:
            return found
        return found & np.not_equal(self._statistics.record_counts, 0)

    def _may_match(self, bound: BoundExpression) -> Mask:
        match bound:
            case Constant(value):
                return np.full(self._rows, value)
            case BoundPredicate():
                found = self._known.get(id(bound))
                if found is None:
                    found = self._known[id(bound)] = bound, self._field_may_match(bound)
                return found[1]
            case BoundNullTest():
                return np.ones(self._rows, dtype=np.bool_)
            case BoundAnd(operands):
                return reduce(np.logical_and, map(self._may_match, operands))
            case BoundOr(operands):
                return reduce(np.logical_or, map(self._may_match, operands))

    def _field_may_match(self, predicate: BoundPredicate) -> Mask:
        field_id = predicate.field_id
        if self._schema.find(field_id) is None or not self._has_one_value_a_row(field_id):
            return np.ones(self._rows, dtype=np.bool_)
        column = ColumnCounts(self._statistics, field_id)
        if predicate.op is Op.IS_NULL:
            return ~column.has_no_nulls(is_top_level=len(self._schema.path(field_id)) == 1)
        found = self._values_may_match(predicate, column)
        return found if (all_null := column.is_all_null()) is None else found & ~all_null

    def _values_may_match(self, predicate: BoundPredicate, column: ColumnCounts) -> Mask:
        """Say of each file that has a value whether one may match."""
        op = predicate.op
        if op is Op.IS_NAN:
            return ~column.has_no_nan()
        is_float = isinstance(predicate.type, FloatType | DoubleType)
        if op is Op.NOT_NULL or (is_float and op in (Op.NE, Op.NOT_IN)):
            return np.ones(self._rows, dtype=np.bool_)
        found = np.ones(self._rows, dtype=np.bool_)
        if op is not Op.NOT_NAN:
            found = bounds_may_match(predicate, self._bounds(predicate), self._rows)
        if is_float and (no_number := column.is_all_null_or_nan()) is not None:
            return found & ~no_number
        return found

    def _has_one_value_a_row(self, field_id: int) -> bool:
        above = [self._schema.find(i) for i in self._schema.path(field_id)[:-1]]
        return not any(f is None or isinstance(f.type, ListType | MapType) for f in above)

    def _bounds(self, predicate: BoundPredicate) -> ColumnBounds:
        return self._statistics.bounds(
            predicate.field_id,
            predicate.type,
            may_be_imported=self._may_be_imported,
            needed=_BOUNDS_OF.get(predicate.op, frozenset(s.BOUNDS)),
        )


def bounds_may_match(predicate: BoundPredicate, bounds: ColumnBounds, rows: int) -> Mask:
    """Return what `expressions.bounds.may_match` says of each row's bounds."""
    literals = [stored_literal(predicate.type, literal) for literal in predicate.literals]
    lower, upper = bounds.lower, bounds.upper
    match predicate.op:
        case Op.EQ | Op.IN:
            return _may_hold_one_of(literals, lower, upper, rows)
        case Op.LT | Op.LE:
            return _unknown_or(lower, rows, predicate.op, literals[0])
        case Op.GT | Op.GE:
            return _unknown_or(upper, rows, predicate.op, literals[0])
        case Op.NE | Op.NOT_IN:
            return ~_is_one_of(predicate, literals, lower, upper, rows)
        case Op.STARTS_WITH:
            prefix = literals[0]
            may = _unknown_or(upper, rows, Op.GE, prefix)
            if isinstance(lower, ByteColumn):
                above = lower.compare(Op.GT, prefix) & ~lower.starts_with(prefix)
                may &= unless_unknown(lower.known, ~above)
            return may
        case Op.NOT_STARTS_WITH:
            if not isinstance(lower, ByteColumn) or not isinstance(upper, ByteColumn):
                return np.ones(rows, dtype=np.bool_)
            have_it = lower.starts_with(literals[0]) & upper.starts_with(literals[0])
            return unless_unknown(both(lower.known, upper.known), ~have_it)
        case _:
            return np.ones(rows, dtype=np.bool_)


def _unknown_or(column: OrderedColumn | None, rows: int, op: Op, literal: Any) -> Mask:
    if column is None:
        return np.ones(rows, dtype=np.bool_)
    return unless_unknown(column.known, column.compare(op, literal))


def _may_hold_one_of(
    literals: Sequence[Any], lower: OrderedColumn | None, upper: OrderedColumn | None, rows: int
) -> Mask:
    """Say whether a literal lies within each row's bounds: the first that the lower one admits."""
    if not literals:
        return np.zeros(rows, dtype=np.bool_)
    if len(literals) == 1:
        below = _unknown_or(lower, rows, Op.LE, literals[0])
        return below & _unknown_or(upper, rows, Op.GE, literals[0])
    if lower is None:
        first = np.zeros(rows, dtype=np.int64)
    else:
        first = lower.rank(literals)
        if lower.known is not None:
            first = np.where(lower.known, first, 0)
    may = first < len(literals)
    if upper is not None:
        reached = upper.reaches(literals, np.minimum(first, len(literals) - 1))
        may &= unless_unknown(upper.known, reached)
    return may


def _is_one_of(
    predicate: BoundPredicate,
    literals: Sequence[Any],
    lower: OrderedColumn | None,
    upper: OrderedColumn | None,
    rows: int,
) -> Mask:
    """Say whether every value is the same whole number, and one of the literals."""
    if (
        not isinstance(lower, NumberColumn)
        or not isinstance(upper, NumberColumn)
        or isinstance(predicate.type, FloatType | DoubleType | DecimalType)
    ):
        return np.zeros(rows, dtype=np.bool_)
    is_same = lower.compare(Op.EQ, upper) & is_member(lower, literals)
    known = both(lower.known, upper.known)
    return is_same if known is None else is_same & known
