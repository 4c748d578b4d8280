"""The statistics of a segment's files, column by column of the table.

What is found by looking at all files of a segment, such as that none has a column all null, is
remembered with the segment: mostly nothing is wrong with any file, and to know that is to be spared
most of the work of the next plan.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from floeberg.protocol.manifests import Numbers, Segment, Strings
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.types import PrimitiveType
from floeberg.server.planning.vectorised.bounds import ColumnBounds, decode_columns
from floeberg.server.planning.vectorised.ordered import Mask

Rows: TypeAlias = npt.NDArray[np.int64]

C = TypeVar("C", Numbers, Strings)

_BOTH = frozenset(s.BOUNDS)


class SegmentStatistics:
    """The statistics of a segment's files, or of those that `rows` names, ascending."""

    def __init__(self, segment: Segment, rows: Rows | None = None) -> None:
        self._segment = segment
        self._rows = rows

    def __len__(self) -> int:
        return len(self._segment) if self._rows is None else len(self._rows)

    @cached_property
    def record_counts(self) -> npt.NDArray[np.int64]:
        counts = self._taken(self._segment.numbers(s.RECORD_COUNT))
        return np.zeros(0, dtype=np.int64) if counts is None else counts.values.astype(np.int64)

    @property
    def none_is_empty(self) -> bool:
        """Say whether all files are known to have rows."""
        return self.hold_for_all("none empty", lambda every: bool(every.record_counts.all()))

    def counts(self, metric: int, field_id: int) -> Numbers | None:
        """Return one of `segment.COUNTS` for a column, None where no file of the segment has it."""
        return self._taken(self._segment.counts(metric, field_id))

    def bounds(
        self,
        field_id: int,
        type_: PrimitiveType,
        *,
        may_be_imported: bool,
        needed: frozenset[int] = _BOTH,
    ) -> ColumnBounds:
        """Return a column's bounds, see `decode_columns`; only one of `segment.BOUNDS` is `needed`
        when no more is asked for, and there may be none of the other then.
        """

        def are_sound(every: SegmentStatistics) -> bool:
            return decode_columns(type_, *every._stored_bounds(field_id, _BOTH)).sound

        sound = self.hold_for_all(("bounds sound", field_id, type_), are_sound)
        return decode_columns(
            type_,
            *self._stored_bounds(field_id, needed if sound else _BOTH),
            may_be_imported=may_be_imported,
            known_sound=sound,
        )

    def hold_for_all(self, fact: Hashable, check: Callable[[SegmentStatistics], bool]) -> bool:
        """Say whether a fact holds of all of the segment's files; it is checked once."""
        found = self._segment.known.get(fact)
        if found is None:
            found = self._segment.known[fact] = check(SegmentStatistics(self._segment))
        return found

    def _stored_bounds(
        self, field_id: int, needed: frozenset[int]
    ) -> tuple[Strings | None, Strings | None]:
        lower, upper = (
            self._taken(self._segment.bounds(metric, field_id)) if metric in needed else None
            for metric in s.BOUNDS
        )
        return lower, upper

    def _taken(self, column: C | None) -> C | None:
        return column if column is None or self._rows is None else column.take(self._rows)


class ColumnCounts:
    """The counts of one column: where they are unknown, they are no reason to skip a file."""

    def __init__(self, statistics: SegmentStatistics, field_id: int) -> None:
        self._statistics = statistics
        self._field_id = field_id

    @cached_property
    def _values(self) -> Numbers | None:
        return self._statistics.counts(s.VALUE_COUNTS, self._field_id)

    @cached_property
    def _nulls(self) -> Numbers | None:
        return self._statistics.counts(s.NULL_VALUE_COUNTS, self._field_id)

    @cached_property
    def _nans(self) -> Numbers | None:
        return self._statistics.counts(s.NAN_VALUE_COUNTS, self._field_id)

    def has_no_nulls(self, *, is_top_level: bool) -> Mask:
        no_nulls = self._is(self._nulls, 0)
        if self._values is None:
            return no_nulls & is_top_level
        as_many = np.equal(self._values.values, self._statistics.record_counts)
        if self._values.valid is not None:
            as_many = np.where(self._values.valid, as_many, is_top_level)
        return no_nulls & as_many

    def has_no_nan(self) -> Mask:
        return self._is(self._nans, 0)

    def is_all_null(self) -> Mask | None:
        """Say of each file whether the column is null in all its rows; None is none."""
        if self._holds_for_all("none all null", ColumnCounts._none_is_all_null):
            return None
        return self._is_counted() & self._is(self._nulls, self._statistics.record_counts)

    def is_all_null_or_nan(self) -> Mask | None:
        """Say of each file whether the column is null or NaN in all its rows; None is none."""
        if self._holds_for_all("none all null or NaN", ColumnCounts._none_is_all_null_or_nan):
            return None
        assert self._nulls is not None
        rest = self._statistics.record_counts - self._nulls.values
        return self._is_counted() & self._has(self._nulls) & self._is(self._nans, rest)

    def _holds_for_all(self, fact: str, check: Callable[[ColumnCounts], bool]) -> bool:
        return self._statistics.hold_for_all(
            (fact, self._field_id), lambda every: check(ColumnCounts(every, self._field_id))
        )

    def _none_is_all_null(self) -> bool:
        if self._nulls is None or self._values is None:
            return True
        return not np.equal(self._nulls.values, self._statistics.record_counts).any()

    def _none_is_all_null_or_nan(self) -> bool:
        if self._nulls is None or self._nans is None or self._values is None:
            return True
        rest = self._statistics.record_counts - self._nulls.values
        return not np.equal(self._nans.values, rest).any()

    def _is_counted(self) -> Mask:
        """Say whether the values are as many as the rows."""
        return self._is(self._values, self._statistics.record_counts)

    def _is(self, column: Numbers | None, expected: int | npt.NDArray[np.int64]) -> Mask:
        if column is None:
            return np.zeros(len(self._statistics), dtype=np.bool_)
        return self._has(column) & np.equal(column.values, expected)

    def _has(self, column: Numbers) -> Mask:
        """Say where a count is known, and can be."""
        can_be: Mask = (column.values >= 0) & (column.values <= self._statistics.record_counts)
        return can_be if column.valid is None else can_be & column.valid
