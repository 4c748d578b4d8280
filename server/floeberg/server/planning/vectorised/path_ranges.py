"""Which position delete files may name which data files, by the bounds on the paths in them.

What names a path lies between a delete file's bounds, of which the upper one may have been cut: so
it names paths from the lower bound up to the last one that begins with the upper. Paths are
compared as bytes, which is the order of their code points.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from floeberg.protocol.manifests import Strings
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.planned import ranges_as_places
from floeberg.server.planning.vectorised.ordered import as_binary

_CANDIDATES: Final = 32
"""Up to so many ranges a file, it is cheaper to ask each of them."""


def path_range(lower: bytes | None, upper: bytes | None) -> tuple[bytes, bytes] | None:
    """Return the paths that bounds leave, from the first up to and without the second.

    None where there is any doubt: bounds that are absent, not text or the wrong way round.
    """
    if lower is None or not upper or lower > upper:
        return None  # and everything begins with nothing
    try:
        lower.decode()
        upper.decode()
    except UnicodeDecodeError:
        return None
    # no UTF-8 has a byte of 255, so the last one can be counted up
    return lower, upper[:-1] + bytes([upper[-1] + 1])


class PathRanges:
    """Ranges of paths, each of which counts for the files of one partition.

    `partitions` ascend; shape (n,).
    """

    def __init__(self, ranges: Sequence[tuple[bytes, bytes]], partitions: Int64s) -> None:
        self._edges = sorted({edge for pair in ranges for edge in pair})
        places = {edge: i for i, edge in enumerate(self._edges)}
        self._partitions = partitions
        # the rank of a path that is not below an edge is greater than the edge's place
        self._firsts = np.array([places[first] + 1 for first, _ in ranges], dtype=np.int64)
        self._stops = np.array([places[stop] + 1 for _, stop in ranges], dtype=np.int64)
        self._width = len(self._edges) + 1

    def containing(
        self, paths: Strings, rows: Int64s, starts: Int64s, stops: Int64s, limit: int
    ) -> tuple[Int64s, Int64s] | None:
        """Return which of `rows` lie in which ranges: pairs of a place in `rows` and of a range.

        For each row, only the ranges from its start up to its stop are asked, which are of its
        partition. Places ascend. None for more than `limit` pairs.
        """
        counts = stops - starts
        places = np.flatnonzero(counts)
        if not len(places):
            return places, places
        ranks = _ranks(self._edges, paths, rows[places])
        if int(counts.sum()) > min(_CANDIDATES * len(places), limit):
            return self._by_rank(places, ranks, starts, stops, limit)
        owners = np.repeat(np.arange(len(places)), counts[places])
        ranges = ranges_as_places(starts[places], stops[places])
        ranks = ranks[owners]
        inside = (self._firsts[ranges] <= ranks) & (ranks < self._stops[ranges])
        return places[owners[inside]], ranges[inside]

    def _by_rank(
        self, places: Int64s, ranks: Int64s, starts: Int64s, stops: Int64s, limit: int
    ) -> tuple[Int64s, Int64s] | None:
        """Find the files of each range among all in order, where files have many ranges to ask."""
        keys = self._partitions[starts[places]] * self._width + ranks
        order = np.argsort(keys)
        keys, places = keys[order], places[order]
        base = self._partitions * self._width
        from_, upto = (np.searchsorted(keys, base + edge) for edge in (self._firsts, self._stops))
        counts = upto - from_
        if int(counts.sum()) > limit:
            return None
        found = places[ranges_as_places(from_, upto)]
        ranges = np.repeat(np.arange(len(counts)), counts)
        applies = (starts[found] <= ranges) & (ranges < stops[found])
        found, ranges = found[applies], ranges[applies]
        order = np.argsort(found, kind="stable")
        return found[order], ranges[order]


def _ranks(edges: Sequence[bytes], column: Strings, rows: Int64s) -> Int64s:
    """Return how many of the ascending `edges` are not greater than the values of `rows`."""
    values: list[bytes] = as_binary(column).take(pa.array(rows)).to_pylist()
    return np.fromiter((bisect_right(edges, v) for v in values), np.int64, len(values))
