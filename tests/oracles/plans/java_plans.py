"""Plans of Iceberg's Java API: `planFiles()`, and what its own splitting makes of that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.oracles.java_scans import JavaScans
from tests.oracles.plans import Delete, Planned, Task, planned_of
from tests.oracles.scans import Scan


class JavaPlans:
    name = "java"

    def __init__(self, jvm: Any) -> None:
        self._iceberg = jvm.org.apache.iceberg
        self._scans = JavaScans(jvm)

    def plan(self, table: Any, scan: Scan, split_size: int = 0) -> Planned:
        """Return the plan of a scan of a Java `Table`, its files whole unless a size is given."""
        asked = self._scans.of_snapshot(table, scan)
        if scan.filter is not None:
            asked = asked.filter(self._scans.expression(scan.filter))
        tasks = asked.planFiles()
        if split_size:
            tasks = self._iceberg.util.TableScanUtil.splitFiles(tasks, split_size)
        try:
            return planned_of(self._tasks(tasks))
        finally:
            tasks.close()

    def _tasks(self, tasks: Any) -> Iterator[Task]:
        # not through its JSON, which fails on deletes of another spec
        iterator = tasks.iterator()
        while iterator.hasNext():
            task = iterator.next()
            yield Task(
                task.file().location(), task.start(), frozenset(map(_delete, task.deletes()))
            )


def _delete(file: Any) -> Delete:
    is_equality = file.content().toString() == "EQUALITY_DELETES"
    return Delete(file.location(), is_equality, file.contentOffset() or 0)
