"""Decide which entries of a segment a scan needs, and what of its filter is left for each.

The same decisions as `expressions.residuals` and `expressions.metrics` lead to for one file after
the other, and counts of what ruled files out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from floeberg.protocol.expressions.model import FALSE, TRUE, BoundExpression
from floeberg.protocol.expressions.residuals import Leaf, Outcome, Residuals
from floeberg.protocol.expressions.rewriting import only_about
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import narrowest
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.server.planning.vectorised.metrics import SegmentMetrics
from floeberg.server.planning.vectorised.ordered import Mask
from floeberg.server.planning.vectorised.partitions import SegmentPartitions
from floeberg.server.planning.vectorised.statistics import Rows

Codes: TypeAlias = npt.NDArray[np.int8]

_OUTCOMES = (Outcome.OPEN, Outcome.TRUE, Outcome.FALSE)
_CODES_LIMIT = 1 << 60
_COUNTED_CODES = 1 << 12
_FEW = 4
_NOTHING: Rows = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Kept:
    """The entries that are needed, ascending, and what is left of the filter for them.

    `residuals` are distinct; entry `rows[i]` has `residuals[residual_of[i]]`. The others were ruled
    out by their partition, or by their metrics.
    """

    rows: Rows
    residuals: tuple[BoundExpression, ...]
    residual_of: Rows
    ruled_out_by_partition: int
    ruled_out_by_metrics: int


@dataclass(frozen=True, slots=True)
class KeptDeletes:
    """The delete files that are needed, ascending, and how many others were ruled out by what."""

    rows: Rows
    ruled_out_by_partition: int
    ruled_out_by_metrics: int


class SegmentFilter:
    """A scan's filter as seen through one partition spec. Never changes, so threads may share it.

    `schema` is the one that the filter was bound to; `may_be_imported` is explained by
    `decode_bounds`.
    """

    def __init__(
        self,
        filter_: BoundExpression,
        spec: PartitionSpec,
        schema: Schema,
        *,
        may_be_imported: bool = False,
    ) -> None:
        self._residuals = Residuals(filter_, spec, schema)
        self._schema = schema
        self._may_be_imported = may_be_imported

    def kept_data_files(self, segment: Segment) -> Kept:
        """Return the data files that may hold a row that the filter is true of.

        May keep one without such a row, never drops one that has one.
        """
        groups = self._groups(segment)
        in_partition = sum(len(rows) for _, rows in groups)
        groups = self._ruled_out_by_metrics(segment, groups)
        numbers: dict[BoundExpression, int] = {}
        for residual, _ in groups:
            numbers.setdefault(residual, len(numbers))
        rows = np.concatenate([_NOTHING, *(rows for _, rows in groups)])
        residual_of = np.repeat(
            np.array([numbers[residual] for residual, _ in groups], dtype=np.int64),
            [len(rows) for _, rows in groups],
        )
        if len(groups) > 1:
            order = np.argsort(rows)
            rows, residual_of = rows[order], residual_of[order]
        return Kept(
            rows,
            tuple(numbers),
            residual_of,
            ruled_out_by_partition=len(segment) - in_partition,
            ruled_out_by_metrics=in_partition - len(rows),
        )

    def _ruled_out_by_metrics(self, segment: Segment, groups: Sequence[_Group]) -> list[_Group]:
        """Return the groups without the entries whose metrics rule out their residual."""
        looked_at = [rows for residual, rows in groups if residual != TRUE]
        if not looked_at:
            return list(groups)
        asked = looked_at[0] if len(looked_at) == 1 else np.sort(np.concatenate(looked_at))
        # to evaluate all entries takes less than to gather the statistics of many
        few = len(asked) * _FEW <= len(segment)
        metrics = self._metrics(segment, asked if few else None)
        left = []
        for residual, rows in groups:
            if residual != TRUE:
                may = metrics.may_match(residual)
                if len(rows) == len(segment):
                    rows = np.flatnonzero(may)
                elif few:
                    rows = rows[may if rows is asked else may[np.searchsorted(asked, rows)]]
                else:
                    rows = rows[may[rows]]
            left.append(_Group(residual, rows))
        return left

    def _metrics(self, segment: Segment, rows: Rows | None = None) -> SegmentMetrics:
        return SegmentMetrics(segment, self._schema, rows, may_be_imported=self._may_be_imported)

    def kept_delete_files(self, segment: Segment) -> KeptDeletes:
        """Return the delete files that may delete a row that the filter is true of.

        Equality deletes that are global, by their spec, are not ruled out by partition. One is by
        its statistics when what the filter says of the columns that it compares is true of none of
        its rows: they have the same values there as the rows that it deletes.
        """
        needed = np.zeros(len(segment), dtype=np.bool_)
        in_partition = 0
        for residual, rows in self._groups(segment):
            in_partition += len(rows)
            needed[rows] = True
            if residual != TRUE:
                needed[self._without_a_match(segment, rows, residual)] = False
        kept = np.flatnonzero(needed)
        return KeptDeletes(kept, len(segment) - in_partition, in_partition - len(kept))

    def _without_a_match(self, segment: Segment, rows: Rows, residual: BoundExpression) -> Rows:
        """Return those of `rows` that delete no row of which `residual` is true."""
        found = [_NOTHING]
        for columns, deletes in _by_equality_ids(segment, rows):
            said = only_about(residual, columns)
            if said != TRUE:
                found.append(deletes[~self._metrics(segment, deletes).may_match(said)])
        return np.concatenate(found)

    def _groups(self, segment: Segment) -> Sequence[_Group]:
        """Return the residuals of the entries that their partition does not rule out.

        Entries are told apart by what their partitions say of the filter's predicates and not by
        the partitions themselves, of which there may be as many as entries.
        """
        leaves = self._residuals.leaves
        if not any(leaf.fields for leaf in leaves):  # no partition says anything
            residual = self._residuals.in_partition({})
            return [] if residual == FALSE else [_Group(residual, np.arange(len(segment)))]
        partitions = SegmentPartitions(segment)
        possible = [_is_possible(leaf, partitions) for leaf in leaves]
        rows = np.flatnonzero(self._residuals.possible(possible, len(segment)))
        if not len(rows):
            return []
        if len(rows) * _FEW <= len(segment):
            partitions = SegmentPartitions(segment, rows)
            possible = [mask[rows] if len(mask) > 1 else mask for mask in possible]
            places = np.arange(len(rows))
        else:
            places = rows
        codes = [
            _outcomes(leaf, mask, partitions) for leaf, mask in zip(leaves, possible, strict=True)
        ]
        codes = [code[places] if len(code) > 1 else code for code in codes]
        return [
            _Group(self._residuals.given([_OUTCOMES[i] for i in outcomes]), rows[group])
            for outcomes, group in _grouped(codes, len(rows))
        ]


class _Group(NamedTuple):
    """What is left of the filter for the entries at `rows`, ascending."""

    residual: BoundExpression
    rows: Rows


def _is_possible(leaf: Leaf, partitions: SegmentPartitions) -> Mask:
    """Say of each entry whether its partition leaves room for a row that a leaf is true of."""
    if not leaf.fields:
        return np.full(1, leaf.outcome({}) is not Outcome.FALSE)
    found = partitions.are_true(leaf.inclusive)
    lacking = partitions.lack(leaf.fields)
    return found if lacking is None else found | lacking


def _outcomes(leaf: Leaf, possible: Mask, partitions: SegmentPartitions) -> Codes:
    """Return, for each entry, the place in `_OUTCOMES` of what its partition says of a leaf."""
    if not leaf.fields:
        return np.full(1, _OUTCOMES.index(leaf.outcome({})), dtype=np.int8)
    codes = np.where(possible, np.int8(0), np.int8(2))
    is_true = partitions.are_true(leaf.strict) & possible
    lacking = partitions.lack(leaf.fields)
    codes[is_true if lacking is None else is_true & ~lacking] = 1
    return codes


def _grouped(columns: Sequence[Codes], rows: int) -> Iterator[tuple[Sequence[int], Mask]]:
    """Yield the distinct rows of `columns`, and a mask of where each stands.

    A column of one value has it in every row.
    """
    varied = [column for column in columns if len(column) > 1]
    if not varied:
        yield [int(column[0]) for column in columns], np.ones(rows, dtype=np.bool_)
        return
    codes: npt.NDArray[np.signedinteger] = varied[0]
    limit = 3
    for column in varied[1:]:
        if limit > _CODES_LIMIT:
            distinct, codes = np.unique(codes, return_inverse=True)
            limit = len(distinct)
        limit *= 3
        # a pass over bytes takes an eighth of one over 64 bits
        codes = codes.astype(narrowest(0, limit), copy=False) * 3 + column
    if limit > _COUNTED_CODES:
        distinct, codes = np.unique(codes, return_inverse=True)
        limit = len(distinct)
    for code in np.flatnonzero(np.bincount(codes, minlength=limit)).tolist():
        group = codes == code
        at = int(group.argmax())
        yield [int(c[0] if len(c) == 1 else c[at]) for c in columns], group


def _by_equality_ids(segment: Segment, rows: Rows) -> Iterator[tuple[frozenset[int], Rows]]:
    """Yield the equality deletes among `rows` by the columns that they compare, those first."""
    starts, counts, items = segment.lists(s.EQUALITY_IDS)
    for count in np.unique(counts[rows]).tolist():
        if not count:
            continue
        alike = rows[counts[rows] == count]
        ids = items[starts[alike][:, None] + np.arange(count)]
        distinct, which = np.unique(ids, axis=0, return_inverse=True)
        for i, columns in enumerate(distinct.tolist()):
            yield frozenset(columns), alike[which.ravel() == i]
