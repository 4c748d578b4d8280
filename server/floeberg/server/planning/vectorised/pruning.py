"""Decide which entries of a segment a scan needs, and what of its filter is left for each.

The same decisions as `expressions.residuals` and `expressions.metrics` lead to for one file after
the other, and counts of what ruled files out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
        groups = list(self._groups(segment))
        if len(groups) == 1:
            return self._kept_alike(segment, groups[0][0])
        chosen = np.full(len(segment), -1, dtype=np.int64)
        residuals: dict[BoundExpression, int] = {}
        by_partition = 0
        is_open = np.zeros(len(segment), dtype=np.bool_)
        for residual, group in groups:
            if residual == FALSE:
                by_partition += int(np.count_nonzero(group))
                continue
            chosen[group] = residuals.setdefault(residual, len(residuals))
            if residual != TRUE:
                is_open |= group
        by_metrics = self._rule_out_by_metrics(segment, is_open, chosen, tuple(residuals))
        needed = np.flatnonzero(chosen >= 0)
        return Kept(needed, tuple(residuals), chosen[needed], by_partition, by_metrics)

    def _kept_alike(self, segment: Segment, residual: BoundExpression) -> Kept:
        """Return what is kept of entries that all have the same residual."""
        if residual == FALSE:
            return Kept(_NOTHING, (), _NOTHING, len(segment), 0)
        rows = np.arange(len(segment))
        if residual != TRUE:
            rows = np.flatnonzero(self._metrics(segment).may_match(residual))
        residual_of = np.zeros(len(rows), dtype=np.int64)
        return Kept(rows, (residual,), residual_of, 0, len(segment) - len(rows))

    def _rule_out_by_metrics(
        self,
        segment: Segment,
        is_open: Mask,
        chosen: Rows,
        residuals: Sequence[BoundExpression],
    ) -> int:
        """Take away what is chosen of entries whose metrics rule out their residual."""
        rows = np.flatnonzero(is_open)
        if not len(rows):
            return 0
        # to evaluate all entries takes less than to gather the statistics of many
        few = None if len(rows) * _FEW > len(segment) else rows
        metrics = self._metrics(segment, few)
        found = chosen if few is None else chosen[few]
        ruled_out = np.zeros(len(found), dtype=np.bool_)
        for number, residual in enumerate(residuals):
            if residual != TRUE:
                ruled_out |= (found == number) & ~metrics.may_match(residual)
        chosen[ruled_out if few is None else few[ruled_out]] = -1
        return int(np.count_nonzero(ruled_out))

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
        for residual, group in self._groups(segment):
            if residual == FALSE:
                continue
            in_partition += int(np.count_nonzero(group))
            needed |= group
            if residual != TRUE:
                needed[self._without_a_match(segment, np.flatnonzero(group), residual)] = False
        rows = np.flatnonzero(needed)
        return KeptDeletes(rows, len(segment) - in_partition, in_partition - len(rows))

    def _without_a_match(self, segment: Segment, rows: Rows, residual: BoundExpression) -> Rows:
        """Return those of `rows` that delete no row of which `residual` is true."""
        found = [_NOTHING]
        for columns, deletes in _by_equality_ids(segment, rows):
            said = only_about(residual, columns)
            if said != TRUE:
                found.append(deletes[~self._metrics(segment, deletes).may_match(said)])
        return np.concatenate(found)

    def _groups(self, segment: Segment) -> Iterator[tuple[BoundExpression, Mask]]:
        """Yield the residuals of the entries, and which entries have each.

        Entries are told apart by what their partitions say of the filter's predicates and not by
        the partitions themselves, of which there may be as many as entries.
        """
        if not len(segment):
            return
        partitions = SegmentPartitions(segment)
        leaves = self._residuals.leaves
        found = _grouped([_outcomes(leaf, partitions) for leaf in leaves], len(segment))
        for outcomes, group in found:
            yield self._residuals.given([_OUTCOMES[i] for i in outcomes]), group


def _outcomes(leaf: Leaf, partitions: SegmentPartitions) -> Codes:
    """Return, for each entry, the place in `_OUTCOMES` of what its partition says of a leaf."""
    if not leaf.fields:
        return np.full(1, _OUTCOMES.index(leaf.outcome({})), dtype=np.int8)
    codes = 2 * (~partitions.are_true(leaf.inclusive)).view(np.int8)
    codes[partitions.are_true(leaf.strict)] = 1
    codes[~partitions.has(leaf.fields)] = 0
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
