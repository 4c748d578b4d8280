"""The tasks of a plan as columns, which become objects when somebody looks at them.

Sizes, places and ranges of a million tasks are arrays; a `FileScanTask` is made, with others of its
neighbourhood, for who reads it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from floeberg.protocol.expressions.model import BoundExpression
from floeberg.protocol.files import DataFile, DeleteFile
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Int64s, Mask
from floeberg.protocol.planned import DeleteFiles, PlannedFiles
from floeberg.protocol.splitting import Ranges, split_rows
from floeberg.protocol.tasks import FileScanTask

_FILES_AT_ONCE = 64
_BLOCKS_KEPT = 8
_TASKS_AT_ONCE = 1024


class UsedFiles(NamedTuple):
    """Files of tasks: parts of a plan and places within each, ascending; and each task's file.

    The numbers of `task_files` count from 0 through all places.
    """

    parts: list[tuple[PlannedFiles, Int64s]]
    task_files: Int64s


class PlannedTasks(Sequence[FileScanTask]):
    """The tasks of `files`, in their order, each file divided by `split_size` (see `splitting`).

    Equal to any sequence of equal tasks. A slice has the same columns and copies nothing; steps
    other than 1 are not for slices. Tasks are made when they are asked for, some neighbours
    together, and the splits of a file that are made together share it. Safe to share between
    threads.
    """

    __hash__ = None  # type: ignore[assignment]  # tasks have none

    def __init__(
        self,
        files: Sequence[PlannedFiles] = (),
        deletes: DeleteFiles | None = None,
        split_size: int = 0,
    ) -> None:
        self._files = _Files(tuple(files), DeleteFiles() if deletes is None else deletes)
        self._ranges = split_rows([(part.segment, part.rows) for part in files], split_size)
        self._split_size: int | None = split_size

    @classmethod
    def of_ranges(
        cls, files: Sequence[PlannedFiles], deletes: DeleteFiles, ranges: Ranges
    ) -> PlannedTasks:
        """Return tasks of `files`, which count from 0 through all parts, by ranges in any order."""
        return cls._made(_Files(tuple(files), deletes), ranges, None)

    @classmethod
    def _made(cls, files: _Files, ranges: Ranges, split_size: int | None) -> PlannedTasks:
        made = cls.__new__(cls)
        made._files, made._ranges, made._split_size = files, ranges, split_size
        return made

    # --- columns ----------------------------------------------------------------------------------

    @property
    def files(self) -> tuple[PlannedFiles, ...]:
        """What the tasks' files are among. A slice has those of the whole plan."""
        return self._files.parts

    @property
    def deletes(self) -> DeleteFiles:
        return self._files.deletes

    @property
    def ranges(self) -> Ranges:
        """The file, the start and the length of each task; files count through all of `files`."""
        return self._ranges

    @property
    def split_size(self) -> int | None:
        """What the files were divided by; None for ranges that came from elsewhere."""
        return self._split_size

    @cached_property
    def sizes(self) -> Int64s:
        """The bytes of data file that each task covers: `FileScanTask.size_bytes`."""
        lengths = self._ranges.lengths
        if lengths.all():
            return lengths
        sizes = lengths.copy()
        for task in np.flatnonzero(lengths == 0).tolist():
            sizes[task] = self._files.size_of(int(self._ranges.files[task]))
        return sizes

    @cached_property
    def total_bytes(self) -> int:
        total = int(self.sizes.sum(dtype=np.float64))
        # exact where 64 bits hold it
        return int(self.sizes.sum()) if total < 1 << 62 else sum(self.sizes.tolist())

    def location_of(self, index: int) -> str:
        """Return the location of a task's data file, without making the task."""
        return self._files.location_of(int(self._ranges.files[index]))

    @property
    def locations(self) -> Sequence[str]:
        """The location of each task's data file, looked up when it is asked for."""
        return _Locations(self)

    @property
    def first_of_file(self) -> int:
        """How many tasks of the first task's file come before it: of a slice that begins within."""
        if not len(self) or not self._ranges.starts[0]:
            return 0
        part, place = self._files.rows_of(self._ranges.files[:1])[0]
        starts = split_rows([(part.segment, part.rows[place])], self._split_size or 0).starts
        return int(np.searchsorted(starts, self._ranges.starts[0]))

    @cached_property
    def used_files(self) -> UsedFiles:
        """The files that the tasks are of."""
        files = self._ranges.files
        if follow_one_another(files):
            return UsedFiles(
                self._files.rows_of(np.arange(files[0], files[-1] + 1)), files - files[0]
            )
        numbers, task_files = np.unique(files, return_inverse=True)
        return UsedFiles(self._files.rows_of(numbers), task_files)

    def where(self, chosen: Mask | Int64s) -> PlannedTasks:
        """Return those of the tasks that `chosen` says, a mask or their numbers, in that order."""
        return self._made(self._files, Ranges(*(c[chosen] for c in self._ranges)), None)

    def without_metrics(self) -> PlannedTasks:
        """Return the same tasks with data files that have no metrics, which take most of the time
        that making a task takes: for who reads the files."""
        files = _Files(self._files.parts, self._files.deletes, with_metrics=False)
        return self._made(files, self._ranges, self._split_size)

    # --- objects ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._ranges.files)

    @overload
    def __getitem__(self, index: int) -> FileScanTask: ...
    @overload
    def __getitem__(self, index: slice) -> PlannedTasks: ...
    def __getitem__(self, index: int | slice) -> FileScanTask | PlannedTasks:
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise ValueError("a slice of planned tasks has no step")
            return self._made(
                self._files, Ranges(*(c[index] for c in self._ranges)), self._split_size
            )
        file, start, length = (int(column[index]) for column in self._ranges)
        data_file, deletes, residual = self._files.planned(file)
        return FileScanTask(data_file, deletes, residual, start, length)

    def __iter__(self) -> Iterator[FileScanTask]:
        for first in range(0, len(self), _TASKS_AT_ONCE):
            files, starts, lengths = (c[first : first + _TASKS_AT_ONCE] for c in self._ranges)
            numbers, which = np.unique(files, return_inverse=True)
            made = self._files.made(numbers)
            for i, start, length in zip(
                which.tolist(), starts.tolist(), lengths.tolist(), strict=True
            ):
                data_file, deletes, residual = made[i]
                yield FileScanTask(data_file, deletes, residual, start, length)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"<PlannedTasks: {len(self)} of {len(self._files)} files>"


def follow_one_another(files: Int64s) -> bool:
    """Say whether files, by number, ascend without a gap; those of splits repeat."""
    steps = np.diff(files)
    return len(files) > 0 and (not len(steps) or (steps.min() >= 0 and steps.max() <= 1))


class _Locations(Sequence[str]):
    """The location of each task's data file."""

    def __init__(self, tasks: PlannedTasks) -> None:
        self._tasks = tasks

    def __len__(self) -> int:
        return len(self._tasks)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> _Locations: ...
    def __getitem__(self, index: int | slice) -> str | _Locations:
        if isinstance(index, slice):
            return _Locations(self._tasks[index])
        return self._tasks.location_of(index)


_Planned = tuple[DataFile, tuple[DeleteFile, ...], BoundExpression]


class _Files:
    """The files of a plan, by their number through all parts; shared by all slices of it."""

    def __init__(
        self, parts: tuple[PlannedFiles, ...], deletes: DeleteFiles, *, with_metrics: bool = True
    ) -> None:
        self.parts = parts
        self.deletes = deletes
        self._with_metrics = with_metrics
        self._firsts = np.cumsum([0, *map(len, parts)])
        self._lock = threading.Lock()
        self._blocks: dict[int, list[_Planned]] = {}

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def _place(self, number: int) -> tuple[PlannedFiles, int]:
        part = int(np.searchsorted(self._firsts, number, side="right")) - 1
        return self.parts[part], int(number - self._firsts[part])

    def location_of(self, number: int) -> str:
        part, i = self._place(number)
        column = part.segment.strings(s.LOCATION)
        found = None if column is None else column.to_list(part.rows[i : i + 1])[0]
        return (found or b"").decode()

    def size_of(self, number: int) -> int:
        part, i = self._place(number)
        column = part.segment.numbers(s.SIZE_BYTES)
        return 0 if column is None else int(column.values[part.rows[i]])

    def planned(self, number: int) -> _Planned:
        """Return a file, made with its neighbours, which are probably asked for next."""
        block, i = divmod(number, _FILES_AT_ONCE)
        with self._lock:
            made = self._blocks.pop(block, None)
            if made is None:
                first = block * _FILES_AT_ONCE
                made = self.made(np.arange(first, min(first + _FILES_AT_ONCE, len(self))))
            self._blocks[block] = made
            if len(self._blocks) > _BLOCKS_KEPT:
                self._blocks.pop(next(iter(self._blocks)))
            return made[i]

    def rows_of(self, numbers: Int64s) -> list[tuple[PlannedFiles, Int64s]]:
        """Return the parts that files are in, by numbers that ascend, and the places in each."""
        cuts = np.searchsorted(numbers, self._firsts)
        return [
            (self.parts[k], numbers[cuts[k] : cuts[k + 1]] - self._firsts[k])
            for k in np.flatnonzero(np.diff(cuts)).tolist()
        ]

    def made(self, numbers: Int64s) -> list[_Planned]:
        """Return files by their numbers, which ascend: with its deletes and its residual, each."""
        found: list[_Planned] = []
        for part, within in self.rows_of(numbers):
            entries = part.segment.entries(part.rows[within], with_metrics=self._with_metrics)
            for i, entry in zip(within.tolist(), entries, strict=True):
                assert isinstance(entry.file, DataFile)
                applied = part.deletes[i]
                deletes = tuple(self.deletes.files(applied)) if len(applied) else ()
                residual = part.residuals[part.residual_of[i]]
                found.append((entry.file, deletes, residual))
        return found
