"""Which equality deletes can match no row of a data file, by the statistics of both.

A delete matches a row by all of its columns. So one column is enough to rule it out: when the
values of one lie outside the bounds of the other, or one has nulls only and the other none. It
errs by saying "may match": what is absent is unknown. Left out are floats, whose NaN is in no
bound and whose zeros are two, and UUIDs, which writers have ordered in two ways.
Spec: "Equality Delete Files", "Field-level Metrics and Statistics".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.planned import DeleteFiles, ranges_as_places
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    FixedType,
    IntType,
    ListType,
    LongType,
    MapType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimeType,
)
from floeberg.server.planning.vectorised.ordered import ByteColumn, Mask, OrderedColumn
from floeberg.server.planning.vectorised.statistics import ColumnCounts, SegmentStatistics

_Values: TypeAlias = npt.NDArray[Any]
_ORDERED = (
    BooleanType,
    IntType,
    LongType,
    DateType,
    TimeType,
    TimestampType,
    DecimalType,
    StringType,
    FixedType,
    BinaryType,
)


def usable_type(field_id: int, schema: Schema) -> PrimitiveType | None:
    """Return the type of a column that can rule deletes out, None for one that cannot."""
    field = schema.find(field_id)
    if field is None or not isinstance(field.type, _ORDERED):
        return None
    above = [schema.find(i) for i in schema.path(field_id)[:-1]]
    if any(f is None or isinstance(f.type, ListType | MapType) for f in above):
        return None
    return field.type


@dataclass(frozen=True, slots=True)
class _Stats:
    """What is known of one column in some files; bounds mean nothing where they are not known."""

    lower: _Values
    has_lower: Mask
    upper: _Values
    has_upper: Mask
    has_no_nulls: Mask
    is_all_null: Mask

    def excludes(self, other: _Stats, ours: Int64s, theirs: Int64s) -> Mask:
        """Say of pairs of files whether no value of one can be equal to one of the other."""
        apart = np.greater(self.lower[ours], other.upper[theirs]).astype(np.bool_, copy=False)
        apart &= _of_pairs(self.has_lower, ours) & _of_pairs(other.has_upper, theirs)
        below = np.less(self.upper[ours], other.lower[theirs]).astype(np.bool_, copy=False)
        below &= _of_pairs(self.has_upper, ours) & _of_pairs(other.has_lower, theirs)
        apart |= below
        # a null is equal to a null
        no_nulls = _of_pairs(self.has_no_nulls, ours)
        other_no_nulls = _of_pairs(other.has_no_nulls, theirs)
        apart &= no_nulls | other_no_nulls
        if self.is_all_null.any():
            apart |= self.is_all_null[ours] & other_no_nulls
        if other.is_all_null.any():
            apart |= no_nulls & other.is_all_null[theirs]
        return apart


def _of_pairs(mask: Mask, places: Int64s) -> Mask:
    """Return what a mask, which mostly is true throughout, says of places."""
    return np.ones(1, dtype=np.bool_) if mask.all() else mask[places]


class EqualityBounds:
    """The statistics of a plan's equality deletes. Safe to share between threads.

    `numbers` are those of the deletes, ascending; `may_be_imported` is explained by
    `decode_bounds`.
    """

    def __init__(
        self, deletes: DeleteFiles, numbers: Int64s, schema: Schema, *, may_be_imported: bool
    ) -> None:
        self._place_of = np.full(len(deletes), -1, dtype=np.int64)
        self._place_of[numbers] = np.arange(len(numbers))
        self._columns = list(_columns(deletes, numbers, schema, may_be_imported))

    def __bool__(self) -> bool:
        """Say whether any delete can be ruled out."""
        return bool(self._columns)

    def of(self, segment: Segment, rows: Int64s) -> FileBounds:
        """Return the statistics of data files, to be compared with those of the deletes."""
        return FileBounds(self._place_of, [(c, c.of(segment, rows)) for c in self._columns])


class FileBounds:
    """The statistics of some data files beside those of a plan's equality deletes."""

    def __init__(self, place_of: Int64s, columns: Sequence[tuple[_Column, _Stats]]) -> None:
        self._place_of = place_of
        self._columns = columns

    def doubtful(self) -> Mask:
        """Say of each of the plan's deletes whether it may be ruled out for some file.

        Quick, and enough where the bounds of deletes are as wide as those of the files.
        """
        found = np.zeros(len(self._place_of), dtype=np.bool_)
        for column, files in self._columns:
            deletes = column.stats
            apart = np.zeros(len(deletes.lower), dtype=np.bool_)
            if files.has_upper.any():
                least = files.upper[files.has_upper].min()
                apart |= deletes.has_lower & np.greater(deletes.lower, least).astype(np.bool_)
            if files.has_lower.any():
                most = files.lower[files.has_lower].max()
                apart |= deletes.has_upper & np.less(deletes.upper, most).astype(np.bool_)
            if not files.has_no_nulls.any():
                apart &= deletes.has_no_nulls
            else:
                apart |= deletes.is_all_null
            if files.is_all_null.any():
                apart |= deletes.has_no_nulls
            found[column.numbers[apart]] = True
        return found

    def exclude(self, places: Int64s, numbers: Int64s) -> Mask:
        """Say of pairs of a file's place and a delete's number whether the delete is ruled out."""
        excluded = np.zeros(len(places), dtype=np.bool_)
        at = self._place_of[numbers]
        for column, files in self._columns:
            if column.compares_all:
                excluded |= column.stats.excludes(files, at, places)
            else:
                of_delete = column.place_of[at]
                pairs = np.flatnonzero(of_delete >= 0)
                excluded[pairs] |= column.stats.excludes(files, of_delete[pairs], places[pairs])
        return excluded


class _Column:
    """One column that deletes compare, and the statistics of those that do.

    They are at `places` of the `numbers` of all equality deletes, ascending.
    """

    def __init__(
        self,
        field_id: int,
        type_: PrimitiveType,
        numbers: Int64s,
        places: Int64s,
        parts: Sequence[tuple[Segment, Int64s]],
        *,
        is_top_level: bool,
        may_be_imported: bool,
    ) -> None:
        self._field_id = field_id
        self._type = type_
        self._is_top_level = is_top_level
        self._may_be_imported = may_be_imported
        self.numbers = numbers[places]
        self.compares_all = len(places) == len(numbers)
        self.place_of = np.full(len(numbers), -1, dtype=np.int64)
        self.place_of[places] = np.arange(len(places))
        found = [self.of(segment, rows) for segment, rows in parts]
        self.stats = _Stats(*(np.concatenate(c) for c in zip(*map(_fields, found), strict=True)))

    def of(self, segment: Segment, rows: Int64s) -> _Stats:
        statistics = SegmentStatistics(segment, rows if len(rows) < len(segment) else None)
        bounds = statistics.bounds(
            self._field_id, self._type, may_be_imported=self._may_be_imported
        )
        counts = ColumnCounts(statistics, self._field_id)
        all_null = counts.is_all_null()
        return _Stats(
            *self._values(bounds.lower, len(rows)),
            *self._values(bounds.upper, len(rows)),
            counts.has_no_nulls(is_top_level=self._is_top_level),
            np.zeros(len(rows), dtype=np.bool_) if all_null is None else all_null,
        )

    def _values(self, column: OrderedColumn | None, rows: int) -> tuple[_Values, Mask]:
        """Return the bounds of `rows` files, and which have one; text and bytes as objects."""
        if isinstance(column, ByteColumn):
            values: _Values = np.empty(rows, dtype=np.object_)
            values[:] = column.values.to_pylist()
        elif column is not None:
            values = column.values
        elif isinstance(self._type, StringType | FixedType | BinaryType):
            values = np.full(rows, b"", dtype=np.object_)
        else:
            values = np.zeros(rows, dtype=np.int64)
        if column is None:
            return values, np.zeros(rows, dtype=np.bool_)
        known = column.known
        return values, np.ones(rows, dtype=np.bool_) if known is None else known


def _fields(stats: _Stats) -> tuple[_Values, Mask, _Values, Mask, Mask, Mask]:
    return (
        stats.lower,
        stats.has_lower,
        stats.upper,
        stats.has_upper,
        stats.has_no_nulls,
        stats.is_all_null,
    )


def _columns(
    deletes: DeleteFiles, numbers: Int64s, schema: Schema, may_be_imported: bool
) -> Iterator[_Column]:
    """Yield the columns that any of the deletes compares and that can rule it out."""
    parts: list[tuple[Segment, Int64s, Int64s]] = []
    compared: list[dict[int, Mask]] = []
    first = 0
    for segment, rows in deletes.parts:
        start, stop = np.searchsorted(numbers, [first, first + len(rows)])
        if start < stop:
            chosen = rows[numbers[start:stop] - first]
            parts.append((segment, chosen, np.arange(start, stop)))
            compared.append(_compared_columns(segment, chosen))
        first += len(rows)
    for field_id in sorted({i for found in compared for i in found}):
        type_ = usable_type(field_id, schema)
        if type_ is None:
            continue
        having = [
            (segment, rows[found[field_id]], places[found[field_id]])
            for (segment, rows, places), found in zip(parts, compared, strict=True)
            if field_id in found
        ]
        yield _Column(
            field_id,
            type_,
            numbers,
            np.concatenate([places for *_, places in having]),
            [(segment, rows) for segment, rows, _ in having],
            is_top_level=len(schema.path(field_id)) == 1,
            may_be_imported=may_be_imported,
        )


def _compared_columns(segment: Segment, rows: Int64s) -> dict[int, Mask]:
    """Return the columns that deletes of a segment compare, and which of `rows` do."""
    starts, counts, items = segment.lists(s.EQUALITY_IDS)
    starts, counts = starts[rows], counts[rows]
    owners = np.repeat(np.arange(len(rows)), counts)
    ids = items[ranges_as_places(starts, starts + counts)]
    found: dict[int, Mask] = {}
    for field_id in np.unique(ids).tolist():
        compares = np.zeros(len(rows), dtype=np.bool_)
        compares[owners[ids == field_id]] = True
        found[field_id] = compares
    return found
