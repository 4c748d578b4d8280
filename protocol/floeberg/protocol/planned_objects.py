"""Tasks that are objects, as the columns that a planner would have left of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TypeVar

import numpy as np

from floeberg.protocol.expressions.model import BoundExpression
from floeberg.protocol.files import (
    NO_METRICS,
    DataFile,
    DeleteFile,
    ManifestContent,
    ManifestFile,
)
from floeberg.protocol.manifests import EntryStatus, ManifestEntry, Segment
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.manifests.packing import pack_entries, partition_kind
from floeberg.protocol.planned import DeleteFiles, PlannedFiles, References
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.splitting import Ranges
from floeberg.protocol.tasks import FileScanTask

FileT = TypeVar("FileT", DataFile, DeleteFile)


def as_planned(tasks: Sequence[FileScanTask]) -> PlannedTasks:
    """Return `tasks` as columns, without their files' metrics; what is columns comes back as it is.

    It takes many times as long as a planner's columns do: it is for few tasks. Raises
    `CorruptManifest` for numbers that 64 bits do not hold.
    """
    if isinstance(tasks, PlannedTasks):
        return tasks
    # files are told apart by identity, which `tasks` keeps alive until the end
    residuals: dict[int, tuple[int, BoundExpression]] = {}
    deletes: dict[int, tuple[int, DeleteFile]] = {}
    files: dict[Hashable, tuple[int, DataFile, int, tuple[int, ...]]] = {}
    file_of = []
    for task in tasks:
        left = residuals.setdefault(id(task.residual), (len(residuals), task.residual))[0]
        applied = tuple(deletes.setdefault(id(d), (len(deletes), d))[0] for d in task.delete_files)
        key = id(task.data_file), left, applied
        file_of.append(files.setdefault(key, (len(files), task.data_file, left, applied))[0])
    delete_segments, delete_rows = _segments([d for _, d in deletes.values()])
    delete_numbers = _places(delete_rows)
    segments, rows = _segments([file for _, file, *_ in files.values()])
    kept = list(files.values())
    parts = [
        PlannedFiles(
            segment,
            np.arange(len(segment)),
            tuple(residual for _, residual in residuals.values()),
            _ints([kept[i][2] for i in members]),
            _references([[delete_numbers[n] for n in kept[i][3]] for i in members]),
        )
        for segment, members in zip(segments, rows, strict=True)
    ]
    numbers = _places(rows)
    ranges = Ranges(
        _ints([numbers[i] for i in file_of]),
        _ints([task.start for task in tasks]),
        _ints([task.length for task in tasks]),
    )
    all_rows = [(segment, np.arange(len(segment))) for segment in delete_segments]
    return PlannedTasks.of_ranges(parts, DeleteFiles(all_rows), ranges)


def _segments(files: Sequence[FileT]) -> tuple[list[Segment], list[list[int]]]:
    """Return segments of files that have one kind of partition tuples each, and whose they are."""
    members: dict[Hashable, list[int]] = {}
    for i, file in enumerate(files):
        layout = tuple((field_id, partition_kind([v])) for field_id, v in file.partition.items())
        members.setdefault((file.spec_id, layout), []).append(i)
    segments = []
    for chosen in members.values():
        entries = [
            ManifestEntry(EntryStatus.EXISTING, None, replace(files[i], metrics=NO_METRICS))
            for i in chosen
        ]
        first = files[chosen[0]]
        content = ManifestContent(isinstance(first, DeleteFile))
        segments.append(pack_entries(entries, ManifestFile("tasks", 0, first.spec_id, content)))
    return segments, list(members.values())


def _places(members: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return where each file is when the members of all segments stand one after the other."""
    return {i: place for place, i in enumerate(i for chosen in members for i in chosen)}


def _references(lists: Sequence[Sequence[int]]) -> References:
    starts = _ints(list(accumulate(map(len, lists), initial=0)))
    return References.of_flat(starts, _ints([n for numbers in lists for n in numbers]))


def _ints(values: Sequence[int]) -> Int64s:
    return np.array(values, dtype=np.int64)
