"""What planning gives: the tasks of a scan, and what was left out on the way to them."""

from __future__ import annotations

from dataclasses import dataclass

from floeberg.protocol.scans import ResolvedScan
from floeberg.protocol.tasks import FileScanTask


@dataclass(frozen=True, slots=True)
class PlanCounters:
    """How much of a snapshot was looked at, and what ruled out the rest.

    Manifests count data and delete manifests alike. `files` are the data files of the manifests
    that were read; the two kinds of skipped ones are among them. `delete_files` are the distinct
    delete files that tasks refer to.
    """

    manifests: int = 0
    manifests_skipped: int = 0
    files: int = 0
    files_skipped_by_partition: int = 0
    files_skipped_by_metrics: int = 0
    delete_files: int = 0

    @property
    def files_planned(self) -> int:
        return self.files - self.files_skipped_by_partition - self.files_skipped_by_metrics


@dataclass(frozen=True, slots=True)
class Plan:
    """The tasks that give the rows of `scan`, in the order of the snapshot's manifests.

    Two plans of the same scan are equal, whatever was cached and however fetches interleaved.
    `total_records` is the exact number of rows of the answer where metadata decides it, else None.
    """

    scan: ResolvedScan
    tasks: tuple[FileScanTask, ...] = ()
    total_records: int | None = 0
    counters: PlanCounters = PlanCounters()

    @property
    def total_bytes(self) -> int:
        """Bytes of data files that the tasks cover; deletes are not counted."""
        return sum(task.size_bytes for task in self.tasks)


@dataclass(frozen=True, slots=True)
class CountResult:
    """Rows that metadata has counted, and the tasks whose rows somebody must read to count them.

    The scan's count is `rows` plus the rows of `to_read`. No file is in both parts.
    """

    rows: int
    to_read: tuple[FileScanTask, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Say whether `rows` is the whole answer."""
        return not self.to_read
