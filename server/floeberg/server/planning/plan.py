"""What planning gives: the tasks of a scan, and what was left out on the way to them."""

from __future__ import annotations

from dataclasses import dataclass, field

from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.scans import ResolvedScan
from floeberg.server.planning.steps import Step


@dataclass(frozen=True, slots=True)
class ManifestCounters:
    """The manifests of one kind in a snapshot, and what ruled some out before they were read.

    `without_live_files` by their counts, `by_partition` by their partition summaries, delete
    manifests `without_data` because no data manifest was left, and data manifests `by_limit`
    because the files of those before them have the rows that are asked for.
    """

    listed: int = 0
    without_live_files: int = 0
    by_partition: int = 0
    without_data: int = 0
    by_limit: int = 0

    @property
    def skipped(self) -> int:
        return self.without_live_files + self.by_partition + self.without_data + self.by_limit

    @property
    def read(self) -> int:
        return self.listed - self.skipped


@dataclass(frozen=True, slots=True)
class PlanCounters:
    """How much of a snapshot was looked at, and what ruled out the rest.

    `files` are the data files of the manifests that were read; the three kinds of skipped ones are
    among them, of which those by limit come last and were not ruled out by the others.
    `delete_files_listed` are likewise those of the delete manifests that were read. `delete_files`
    are the distinct delete files that tasks refer to.
    """

    data_manifests: ManifestCounters = ManifestCounters()
    delete_manifests: ManifestCounters = ManifestCounters()
    files: int = 0
    files_skipped_by_partition: int = 0
    files_skipped_by_metrics: int = 0
    files_skipped_by_limit: int = 0
    delete_files_listed: int = 0
    delete_files_skipped_by_partition: int = 0
    delete_files_skipped_by_metrics: int = 0
    delete_files: int = 0

    @property
    def manifests(self) -> int:
        """Data and delete manifests alike."""
        return self.data_manifests.listed + self.delete_manifests.listed

    @property
    def manifests_skipped(self) -> int:
        return self.data_manifests.skipped + self.delete_manifests.skipped

    @property
    def files_planned(self) -> int:
        return (
            self.files
            - self.files_skipped_by_partition
            - self.files_skipped_by_metrics
            - self.files_skipped_by_limit
        )

    @property
    def delete_files_kept(self) -> int:
        """Those that neither partition nor metrics rule out, whether or not a file needs them."""
        skipped = self.delete_files_skipped_by_partition + self.delete_files_skipped_by_metrics
        return self.delete_files_listed - skipped

    def summary(self) -> dict[str, int]:
        """Return the counters that every client of a scan is told."""
        return {
            "manifests": self.manifests,
            "manifests_skipped": self.manifests_skipped,
            "files": self.files,
            "files_skipped_by_partition": self.files_skipped_by_partition,
            "files_skipped_by_metrics": self.files_skipped_by_metrics,
            "files_skipped_by_limit": self.files_skipped_by_limit,
            "delete_files": self.delete_files,
        }


@dataclass(frozen=True, slots=True)
class PlanTrace:
    """How one plan was made: what was in the cache, what was fetched, how long each step took.

    `manifests_cached`, `manifests_from_disk` and `manifests_fetched` add up to the manifests that
    were read, without the list of them; `fetched_bytes` has the list in it.
    """

    manifest_list_cached: bool = False
    manifests_cached: int = 0
    manifests_from_disk: int = 0
    manifests_fetched: int = 0
    fetched_bytes: int = 0
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The tasks that give the rows of `scan`, in the order of the snapshot's manifests.

    The tasks are columns, and objects as somebody looks at them. With a limit they are those of the
    first files that have the rows, see `RowLimit`.

    Two plans of the same scan are equal, whatever was cached and however fetches interleaved: their
    `trace` is not compared. `total_records` is the exact number of rows of the answer where
    metadata decides it, else None.
    """

    scan: ResolvedScan
    tasks: PlannedTasks = field(default_factory=PlannedTasks)
    total_records: int | None = 0
    counters: PlanCounters = PlanCounters()
    trace: PlanTrace = field(default=PlanTrace(), compare=False)

    @property
    def total_bytes(self) -> int:
        """Bytes of data files that the tasks cover; deletes are not counted."""
        return self.tasks.total_bytes


@dataclass(frozen=True, slots=True)
class CountResult:
    """Rows that metadata has counted, and the tasks whose rows somebody must read to count them.

    The scan's count is `rows` plus the rows of `to_read`. No file is in both parts.
    """

    rows: int
    to_read: PlannedTasks = field(default_factory=PlannedTasks)

    @property
    def is_exact(self) -> bool:
        """Say whether `rows` is the whole answer."""
        return not self.to_read
