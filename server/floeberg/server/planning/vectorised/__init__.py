"""Pruning for all manifests of a list at once, and for all entries of a manifest, over columns.

The answers are those of the plain rules: `expressions.metrics`, `expressions.residuals`, and for
manifests those of `tests/support/plain_planner`.
"""

from floeberg.server.planning.vectorised.deletes import SegmentDeletes
from floeberg.server.planning.vectorised.metrics import SegmentMetrics
from floeberg.server.planning.vectorised.pruning import Kept, SegmentFilter
from floeberg.server.planning.vectorised.summaries import PartitionSummaries

__all__ = ["Kept", "PartitionSummaries", "SegmentDeletes", "SegmentFilter", "SegmentMetrics"]
