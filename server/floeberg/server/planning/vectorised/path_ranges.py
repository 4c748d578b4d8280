"""Which position delete files may name which data files, by the bounds on the paths in them.

What names a path lies between a delete file's bounds, of which the upper one may have been cut: so
it names paths from the lower bound up to the last one that begins with the upper. Paths are
compared as bytes, which is the order of their code points.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from floeberg.protocol.manifests import Strings
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.planned import ranges_as_places
from floeberg.server.planning.vectorised.ordered import as_binary


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

    `partitions` are numbers from 0; shape (n,).
    """

    def __init__(self, ranges: Sequence[tuple[bytes, bytes]], partitions: Int64s) -> None:
        self._edges = sorted({edge for pair in ranges for edge in pair})
        places = {edge: i for i, edge in enumerate(self._edges)}
        self._partitions = partitions
        # a path that is not below an edge has a greater rank than the edge's place
        self._firsts = np.array([places[first] + 1 for first, _ in ranges], dtype=np.int64)
        self._stops = np.array([places[stop] + 1 for _, stop in ranges], dtype=np.int64)
        self._width = len(self._edges) + 1
        self._has_any = np.zeros(int(partitions.max(initial=-1)) + 2, dtype=np.bool_)
        self._has_any[partitions] = True

    def __len__(self) -> int:
        return len(self._partitions)

    def containing(
        self, paths: Strings, rows: Int64s, partitions: Int64s, limit: int
    ) -> tuple[Int64s, Int64s] | None:
        """Return which of `rows` lie in which ranges: pairs of places in `rows` and of ranges.

        `partitions` has those of the rows, -1 for one without a range. None for more pairs than
        `limit`.
        """
        # the last one is False, and so is what -1 finds
        last = len(self._has_any) - 1
        places = np.flatnonzero(self._has_any[np.minimum(partitions, last)])
        nothing = np.zeros(0, dtype=np.int64)
        if not len(places):
            return nothing, nothing
        present = np.zeros(len(self._has_any), dtype=np.bool_)
        present[partitions[places]] = True
        ranges = np.flatnonzero(present[self._partitions])
        keys = partitions[places] * self._width + _ranks(self._edges, paths, rows[places])
        order = np.argsort(keys, kind="stable")
        keys, base = keys[order], self._partitions[ranges] * self._width
        starts = np.searchsorted(keys, base + self._firsts[ranges])
        stops = np.searchsorted(keys, base + self._stops[ranges])
        counts = stops - starts
        if int(counts.sum()) > limit:
            return None
        found = places[order[ranges_as_places(starts, stops)]]
        return found, np.repeat(ranges, counts)


def _ranks(edges: Sequence[bytes], column: Strings, rows: Int64s) -> Int64s:
    """Return how many of the ascending `edges` are not greater than the values of `rows`."""
    values: list[bytes] = as_binary(column).take(pa.array(rows)).to_pylist()
    return np.fromiter((bisect_right(edges, v) for v in values), np.int64, len(values))
