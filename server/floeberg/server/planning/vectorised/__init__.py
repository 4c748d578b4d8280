"""Pruning for all entries of a manifest at once, over the columns of its segment.

The answers are those of the plain rules: `expressions.metrics`, `expressions.residuals`.
"""

from floeberg.server.planning.vectorised.deletes import SegmentDeletes
from floeberg.server.planning.vectorised.metrics import SegmentMetrics
from floeberg.server.planning.vectorised.pruning import Kept, SegmentFilter

__all__ = ["Kept", "SegmentDeletes", "SegmentFilter", "SegmentMetrics"]
