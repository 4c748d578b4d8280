"""Count rows from metadata, where metadata can be exact.

A data file's `record_count` counts its rows; a vector's counts the deleted ones. It is exact while
nothing else stands between a file and the answer: no residual, no equality deletes, and no position
delete files, which may name a row twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from floeberg.protocol.expressions.model import TRUE
from floeberg.protocol.tasks import FileScanTask
from floeberg.server.planning.plan import CountResult


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


def count_tasks(tasks: Iterable[FileScanTask]) -> CountResult:
    """Divide the tasks of a plan into those counted here and those to be read.

    The ranges of a divided file stay together: metadata counts files, not ranges.
    """
    rows = 0
    to_read = []
    for task in tasks:
        counted = rows_by_metadata(task)
        if counted is None:
            to_read.append(task)
        elif task.start == 0:
            rows += counted
    return CountResult(rows, tuple(to_read))
