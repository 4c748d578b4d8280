"""Group tasks into endpoints, in runs of neighbours: group after group is the plan's order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from floeberg.protocol.manifests.columns import Int64s


def pack_sizes(sizes: Sequence[int] | Int64s, groups: int) -> list[int]:
    """Return how many neighbours each group takes.

    Each group takes what is left, divided by the groups that are left, to within half a task.

    >>> pack_sizes([10, 10, 10, 20, 40], 3)
    [3, 1, 1]
    """
    if groups < 1:
        raise ValueError(f"tasks cannot be packed into {groups} groups")
    weights = weights_of(sizes)
    before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(weights)])
    # twice where the middle of each task is, counted from the first one's start
    middles = before[:-1] + before[1:]
    remaining = int(before[-1])
    counts: list[int] = []
    start = 0
    for left in range(min(groups, len(weights)), 0, -1):
        if left == 1:
            counts.append(len(weights) - start)
            break
        last = len(weights) - (left - 1)  # leaves a task for each group to come
        most = 2 * int(before[start]) + 2 * remaining // left
        stop = start + 1 + int(np.searchsorted(middles[start + 1 : last], most, side="right"))
        counts.append(stop - start)
        remaining -= int(before[stop] - before[start])
        start = stop
    return counts


def weights_of(sizes: Sequence[int] | Int64s) -> Int64s:
    """Return what tasks of `sizes` bytes weigh, at least 1 each: an empty file is work too.

    Twice their sum fits 64 bits: sizes that no store has are made less, all alike.
    """
    weights = np.maximum(np.asarray(sizes, dtype=np.int64), 1)
    excess = float(weights.sum(dtype=np.float64)) / float(1 << 61)
    if excess > 1:
        weights = np.maximum(weights // (int(excess) + 1), 1)
    return weights
