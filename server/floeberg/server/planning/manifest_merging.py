"""Small manifests that stand side by side, as one segment.

Pruning and whatever else is done by columns costs about a millisecond a segment, so thousands of
manifests of a few entries each would make a plan take seconds. Where one run ends and the next
begins depends on the manifests alone, not on how many there are before: a new snapshot, whose list
begins with a manifest or two that are new, has the same runs but for the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from floeberg.protocol.files import ManifestFile
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests.columns import Int64s
from floeberg.server.planning.manifest_list import ManifestList

# Segments of more than that gain nothing, and of fewer manifests a plan loses nothing.
_SMALL_BYTES = 64 * 1024
_MANY = 64
# on average, and at most
_MANIFESTS_A_RUN, _LONGEST_RUN = 128, 512


class Part(NamedTuple):
    """The live entries of manifests of one spec and content, in order, as one segment."""

    manifests: Sequence[ManifestFile]
    segment: Segment


def runs(listed: ManifestList, places: Int64s) -> list[Int64s]:
    """Return places in a list, in order, divided into those of manifests that are used together;
    most are alone where few are small.
    """
    are_small = listed.lengths[places] < _SMALL_BYTES
    if np.count_nonzero(are_small) < _MANY:
        return list(places[:, None])
    begins = np.ones(len(places), dtype=np.bool_)
    kinds = listed.kinds[places]
    begins[1:] = ~(are_small[1:] & are_small[:-1]) | (kinds[1:] != kinds[:-1])
    # by what each is, and so at random
    begins[1:] |= listed.digests[places[:-1], 0] % _MANIFESTS_A_RUN == 0
    edges = [*np.flatnonzero(begins).tolist(), len(places)]
    return [
        places[start : min(start + _LONGEST_RUN, stop)]
        for first, stop in pairwise(edges)
        for start in range(first, stop, _LONGEST_RUN)
    ]
