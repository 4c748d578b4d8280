"""Plans of PyIceberg's: `plan_files()`, which never splits a file."""

from __future__ import annotations

from dataclasses import replace

from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.table import Table

from tests.oracles.plans import Delete, Planned, Task, planned_of
from tests.oracles.readers.pyiceberg_reader import asked_of_pyiceberg
from tests.oracles.scans import Scan


def pyiceberg_plan(table: Table, scan: Scan) -> Planned:
    """Return the plan of a scan; PyIceberg does not tell where in its file a vector begins."""
    return planned_of(
        Task(task.file.file_path, 0, frozenset(map(_delete, task.delete_files)))
        for task in asked_of_pyiceberg(table, scan).plan_files()
    )


def _delete(file: DataFile) -> Delete:
    return Delete(file.file_path, file.content is DataFileContent.EQUALITY_DELETES)


def as_pyiceberg_tells(ours: Planned) -> Planned:
    """Return a plan without what PyIceberg doesn't tell of its own."""
    return {
        path: replace(file, deletes=frozenset(d._replace(content_offset=0) for d in file.deletes))
        for path, file in ours.items()
    }
