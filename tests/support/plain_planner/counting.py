"""Count the rows of tasks from metadata, one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from floeberg.protocol.expressions.model import TRUE
from floeberg.protocol.tasks import FileScanTask


def rows_by_metadata(task: FileScanTask) -> int | None:
    """Return the rows that the task's whole file contributes, None where it must be read.

    A negative count, as old imports wrote it, and a vector with more rows than its file count
    nothing: whoever reads them finds out.
    """
    data = task.data_file
    if task.residual != TRUE or not all(d.is_deletion_vector for d in task.delete_files):
        return None
    rows = data.record_count - sum(d.record_count for d in task.delete_files)
    return rows if 0 <= rows <= data.record_count else None


def count_plainly(tasks: Iterable[FileScanTask]) -> tuple[int, list[FileScanTask]]:
    """Return the rows of files that metadata counts, and the tasks whose rows it does not."""
    rows = 0
    to_read = []
    for task in tasks:
        counted = rows_by_metadata(task)
        if counted is None:
            to_read.append(task)
        elif task.start == 0:
            rows += counted
    return rows, to_read
