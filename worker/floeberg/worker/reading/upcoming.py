"""The tasks of a plan that come next, opened before their turn.

What opening files fetches first, their ends, is asked for in one round for several files; once it
has come, the files are opened and their first windows asked for. How far ahead grows as reading
goes on, and is bounded in tasks and in bytes. Only storage is asked in the background: footers are
decoded by the threads that read, between two chunks, and what goes wrong with a file is raised when
its turn comes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from floeberg.process.background import Job
from floeberg.protocol.expressions.model import TRUE
from floeberg.protocol.tasks import FileScanTask
from floeberg.worker.deletes.loading import TaskDeletes
from floeberg.worker.files.windows import Ahead
from floeberg.worker.reading.output import KeptRows
from floeberg.worker.reading.primed import Part, PrimedStorage
from floeberg.worker.reading.tasks import OpenTask, TaskReader

_MOST_TASKS = 32
_PRIMED_SHARE = 4
"""The part of what may be held ahead, as a divisor, that files' ends may take."""


class Upcoming:
    """Reads the tasks of one plan, each once and about in order, in up to `readers` threads.

    `reader` reads from `storage`. With a `limit`, no task is opened ahead that the rows before it
    make needless, as far as their number is sure. Closing it gives up what was opened in vain.
    """

    def __init__(
        self,
        tasks: Sequence[FileScanTask],
        reader: TaskReader,
        storage: PrimedStorage,
        ahead: Ahead,
        *,
        limit: int | None = None,
        readers: int = 1,
    ) -> None:
        self._tasks = tasks
        self._reader = reader
        self._storage = storage
        self._ahead = ahead
        self._limit = limit
        self._most_unread_bytes = ahead.held_bytes * readers
        self._most_primed_bytes = ahead.held_bytes // _PRIMED_SHARE
        self._lock = threading.Lock()
        self._entries: dict[int, _Entry] = {}
        """Tasks whose turn has not come, in order."""
        self._next = 0
        """The first task that has not been among them."""
        self._begun: set[_Entry] = set()
        self._tasks_begun = 0
        self._sure_rows = 0

    def read(self, index: int, from_row: int = 0) -> Iterator[KeptRows]:
        """Yield the kept rows of a task, from its file's row `from_row` on."""
        with self._lock:
            entry = self._begin(index, from_row)
        try:
            for rows in entry.opened.result():
                yield rows
                self._open_ready()
        finally:
            with self._lock:
                self._begun.discard(entry)
            self._give_up(entry)

    def close(self) -> None:
        with self._lock:
            entries = list(self._entries.values())
            self._entries.clear()
        for entry in entries:
            self._give_up(entry)
        self._storage.close()

    def _begin(self, index: int, from_row: int) -> _Entry:
        """Return the task whose turn has come, after asking for what it and the next ones need."""
        self._tasks_begun += 1
        added: list[_Entry] = []
        entry = self._entries.pop(index, None)
        if entry is None:
            entry = self._entry(index, from_row)
            added.append(entry)
            self._next = max(self._next, index + 1)
        self._begun.add(entry)
        self._sure_rows += _sure_rows(self._tasks[index])
        wanted = self._wanted_tasks()
        missing = wanted - len(self._entries)
        if missing > wanted // 2 and self._ahead.has_spare():  # several at once
            added += self._add(missing)
        self._storage.prime([part for new in added for part in new.parts])
        for new in added:
            if new.has_deletes:
                self._ahead.background.submit(new.deletes)
        return entry

    def _wanted_tasks(self) -> int:
        """Return how many tasks to look ahead: twice as many with each that is begun, at first."""
        wanted = min(_MOST_TASKS, 1 << min(self._tasks_begun - 1, 16))
        if self._limit is None:
            return wanted
        return wanted // 2 if self._sure_rows < self._limit else 0

    def _add(self, count: int) -> list[_Entry]:
        added: list[_Entry] = []
        room = self._most_primed_bytes - sum(entry.primed_bytes for entry in self._entries.values())
        while len(added) < count and room > 0 and self._next < len(self._tasks):
            if self._storage.is_local(self._tasks[self._next].data_file.location):
                break
            entry = self._entries[self._next] = self._entry(self._next)
            self._next += 1
            room -= entry.primed_bytes
            added.append(entry)
        return added

    def _entry(self, index: int, from_row: int = 0) -> _Entry:
        task, reader = self._tasks[index], self._reader
        is_local = self._storage.is_local(task.data_file.location)
        ahead = None if self._is_read_in_part(task) else self._ahead
        return _Entry(
            [] if is_local else reader.first_ranges(task),
            bool(task.delete_files) and not is_local,
            lambda: reader.load_deletes(task),
            lambda deletes: reader.open(task, deletes, from_row=from_row, ahead=ahead),
        )

    def _is_read_in_part(self, task: FileScanTask) -> bool:
        """Say whether the limit will be met by a small part of the task's rows."""
        return self._limit is not None and _sure_rows(task) > 2 * self._limit

    def _open_ready(self) -> None:
        """Open the next tasks whose first bytes have come, while few bytes are still to be read."""
        if not self._lock.acquire(blocking=False):
            return  # another thread is at it
        try:
            if not self._entries or not self._ahead.has_spare():
                return
            unread = sum(entry.unread_bytes for entry in self._begun)
            for entry in self._entries.values():
                is_ready = entry.opened.is_done or entry.is_ready(self._storage)
                if unread >= self._most_unread_bytes or not is_ready:
                    return
                entry.opened.run()
                if entry.task is None:
                    return  # it is where reading will end
                unread += entry.unread_bytes
        finally:
            self._lock.release()

    def _give_up(self, entry: _Entry) -> None:
        entry.close()
        self._storage.forget(entry.parts)


class _Entry:
    """A task on its way: `parts` have been asked for, the rest is done when it is needed."""

    def __init__(
        self,
        parts: list[Part],
        has_deletes: bool,
        load: Callable[[], TaskDeletes],
        open_task: Callable[[TaskDeletes], OpenTask],
    ) -> None:
        self.parts = parts
        self.has_deletes = has_deletes
        self.deletes = Job(load)
        self.opened = Job(self._open)
        self.task: OpenTask | None = None
        self._open_task = open_task

    def _open(self) -> OpenTask:
        self.task = self._open_task(self.deletes.result())
        return self.task

    def is_ready(self, storage: PrimedStorage) -> bool:
        """Say whether opening it waits for nothing."""
        return (self.deletes.is_done or not self.has_deletes) and storage.has_come(self.parts)

    @property
    def primed_bytes(self) -> int:
        return sum(length for _, (_, length) in self.parts)

    @property
    def unread_bytes(self) -> int:
        return self.task.unread_bytes if self.task is not None else 0

    def close(self) -> None:
        self.deletes.drop()
        self.opened.drop()
        if self.task is not None:
            self.task.close()


def _sure_rows(task: FileScanTask) -> int:
    """Return how many rows the task has at least, as far as is known without reading it."""
    file = task.data_file
    if task.residual != TRUE or task.delete_files:
        return 0
    return file.record_count * task.size_bytes // max(file.size_bytes, 1)
