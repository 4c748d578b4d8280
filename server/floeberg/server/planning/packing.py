"""Group tasks into endpoints.

Groups are runs of neighbours in plan order, so that reading the groups one after the other is
reading the plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from floeberg.protocol.tasks import FileScanTask


def pack(tasks: Sequence[FileScanTask], groups: int) -> tuple[tuple[FileScanTask, ...], ...]:
    """Return `tasks` as at most `groups` groups of nearly equal bytes, none of them empty.

    The same arguments always give the same groups. Fewer tasks than groups give a group each.
    """
    sizes = [task.size_bytes for task in tasks]
    packed = []
    start = 0
    for length in pack_sizes(sizes, groups):
        packed.append(tuple(tasks[start : start + length]))
        start += length
    return tuple(packed)


def pack_sizes(sizes: Sequence[int], groups: int) -> list[int]:
    """Return how many neighbours each group takes.

    Each group takes what is left, divided by the groups that are left, to within half a task.

    >>> pack_sizes([10, 10, 10, 20, 40], 3)
    [3, 1, 1]
    """
    if groups < 1:
        raise ValueError(f"tasks cannot be packed into {groups} groups")
    weights = [max(size, 1) for size in sizes]  # an empty file is work too
    remaining = sum(weights)
    counts: list[int] = []
    start = 0
    for left in range(min(groups, len(weights)), 0, -1):
        if left == 1:
            counts.append(len(weights) - start)
            break
        target = remaining / left
        last = len(weights) - (left - 1)  # leaves a task for each group to come
        stop, taken = start + 1, weights[start]
        while stop < last and taken + weights[stop] / 2 <= target:
            taken += weights[stop]
            stop += 1
        counts.append(stop - start)
        remaining -= taken
        start = stop
    return counts
