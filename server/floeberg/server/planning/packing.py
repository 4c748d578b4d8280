"""Group tasks into endpoints, in runs of neighbours: group after group is the plan's order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from floeberg.protocol.manifests.columns import Int64s


class Weights:
    """What tasks weigh, in their order: their bytes, at least 1 each, as an empty file is work too.

    Twice their sum fits 64 bits: sizes that no store has are made less, all alike.
    """

    def __init__(self, sizes: Sequence[int] | Int64s) -> None:
        weights = np.maximum(np.asarray(sizes, dtype=np.int64), 1)
        excess = float(weights.sum(dtype=np.float64)) / float(1 << 61)
        if excess > 1:
            weights = np.maximum(weights // (int(excess) + 1), 1)
        self._upto = np.zeros(len(weights) + 1, dtype=np.int64)
        np.cumsum(weights, out=self._upto[1:])
        # twice where the middle of each task is, counted from the first one's start
        self._middles = self._upto[:-1] + self._upto[1:]

    def __len__(self) -> int:
        return len(self._middles)

    def between(self, first: int, stop: int) -> int:
        """Return what the tasks from `first` up to `stop` weigh together."""
        return int(self._upto[stop] - self._upto[first])

    def packed(self, groups: int) -> list[int]:
        """Return how many neighbours each of so many groups takes.

        Each group takes what is left, divided by the groups that are left, to within half a task.

        >>> Weights([10, 10, 10, 20, 40]).packed(3)
        [3, 1, 1]
        """
        if groups < 1:
            raise ValueError(f"tasks cannot be packed into {groups} groups")
        tasks = len(self)
        remaining = int(self._upto[-1])
        counts: list[int] = []
        start = 0
        for left in range(min(groups, tasks), 0, -1):
            if left == 1:
                counts.append(tasks - start)
                break
            last = tasks - (left - 1)  # leaves a task for each group to come
            most = 2 * int(self._upto[start]) + 2 * remaining // left
            within = np.searchsorted(self._middles[start + 1 : last], most, side="right")
            stop = start + 1 + int(within)
            counts.append(stop - start)
            remaining -= self.between(start, stop)
            start = stop
        return counts
