"""Plans of floeberg's, as the oracles' are compared."""

from __future__ import annotations

from floeberg.embedded import TableScan
from floeberg.protocol.files import Content, DeleteFile
from tests.oracles.plans import Delete, Planned, Task, planned_of


def floeberg_plan(asked: TableScan, split_size: int = 0) -> Planned:
    """Return the plan of a scan, its files whole unless a size is given.

    Holds that the tasks of each file are its bytes, once each and in order.
    """
    tasks = asked.with_split_size(split_size).plan_files()
    ends: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for task in tasks:
        path = task.data_file.location
        if task.start:
            assert ends[path] == task.start, f"{path} is planned from {task.start}, out of turn"
        ends[path] = task.start + task.size_bytes
        sizes[path] = task.data_file.size_bytes
    assert ends == sizes, "files are planned in part"
    return planned_of(
        Task(
            task.data_file.location,
            task.start,
            frozenset(map(_delete, task.delete_files)),
        )
        for task in tasks
    )


def _delete(file: DeleteFile) -> Delete:
    is_equality = file.content is Content.EQUALITY_DELETES
    return Delete(file.location, is_equality, file.content_offset or 0)
