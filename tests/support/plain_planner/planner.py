from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from floeberg.protocol.expressions.model import FALSE
from floeberg.protocol.files import (
    Content,
    DataFile,
    DeleteFile,
    ManifestContent,
    ManifestFile,
    Metrics,
)
from floeberg.protocol.manifests import ManifestEntry, read_manifest, read_manifest_list
from floeberg.protocol.manifests.reading import describe_manifest
from floeberg.protocol.scans import ResolvedScan
from floeberg.protocol.splitting import split, split_size_of
from floeberg.protocol.storage import Storage
from floeberg.protocol.tasks import FileScanTask
from floeberg.server.planning.plan import Plan, PlanCounters
from tests.support.plain_planner.counting import count_plainly
from tests.support.plain_planner.delete_index import DeleteIndex
from tests.support.plain_planner.equality_pruning import may_match_a_row
from tests.support.plain_planner.manifest_pruning import prune_manifests_plainly
from tests.support.plain_planner.partition_keys import partition_key
from tests.support.plain_planner.pruning import FileFilter

F = TypeVar("F", DataFile, DeleteFile)


@dataclass(frozen=True, slots=True)
class PlainPlan:
    tasks: tuple[FileScanTask, ...] = ()
    total_records: int | None = 0
    counters: PlanCounters = field(default_factory=PlanCounters)


def plan_plainly(scan: ResolvedScan, storage: Storage) -> PlainPlan:
    """Return what `plan_files` has to give; raises as it does."""
    if scan.snapshot is None or scan.filter == FALSE or scan.request.limit == 0:
        return PlainPlan()
    return _Planner(scan, storage).plan()


def comparable(plan: Plan | PlainPlan) -> tuple[list[str], int | None, PlanCounters]:
    """Return all of a plan in a form in which NaN is equal to itself, and -0.0 not to 0.0."""
    tasks = [
        replace(
            task,
            data_file=_in_order(task.data_file),
            delete_files=tuple(map(_in_order, task.delete_files)),
        )
        for task in plan.tasks
    ]
    return [repr(task) for task in tasks], plan.total_records, plan.counters


def _in_order(file: F) -> F:
    """Return a file whose maps have the order of their keys."""
    maps = (getattr(file.metrics, field.name) for field in fields(Metrics))
    metrics = Metrics(*(dict(sorted(by_id.items())) for by_id in maps))
    return replace(file, partition=dict(sorted(file.partition.items())), metrics=metrics)


class _Planner:
    """The state of one plan in the making."""

    def __init__(self, scan: ResolvedScan, storage: Storage) -> None:
        self._scan = scan
        self._storage = storage
        self._split_size = split_size_of(scan.request.split_size, scan.metadata.properties)
        self._deletes = DeleteIndex()
        self._files = 0
        self._by_partition = 0
        self._by_metrics = 0
        self._by_limit = 0
        self._deletes_listed = 0
        self._deletes_by_partition = 0
        self._deletes_by_metrics = 0

    def plan(self) -> PlainPlan:
        to_read = prune_manifests_plainly(self._manifests(), self._scan)
        for manifest in to_read.deletes:
            self._index(manifest, self._entries(manifest))
        tasks: list[FileScanTask] = []
        used = 0
        for manifest in to_read.data:
            if self._has_all_rows(tasks):
                break
            used += 1
            for of_file in self._tasks_by_file(manifest, self._entries(manifest)):
                if self._has_all_rows(tasks):
                    self._by_limit += 1
                else:
                    tasks += of_file
        by_limit = len(to_read.data) - used
        counters = PlanCounters(
            data_manifests=replace(to_read.data_counters, by_limit=by_limit),
            delete_manifests=to_read.delete_counters,
            files=self._files,
            files_skipped_by_partition=self._by_partition,
            files_skipped_by_metrics=self._by_metrics,
            files_skipped_by_limit=self._by_limit,
            delete_files_listed=self._deletes_listed,
            delete_files_skipped_by_partition=self._deletes_by_partition,
            delete_files_skipped_by_metrics=self._deletes_by_metrics,
            delete_files=_distinct_deletes(tasks),
        )
        return PlainPlan(tuple(tasks), self._total_records(tasks), counters)

    def _manifests(self) -> Sequence[ManifestFile]:
        snapshot = self._scan.snapshot
        assert snapshot is not None
        if snapshot.manifest_list is None:
            return [describe_manifest(self._storage.read(m), m) for m in snapshot.manifests]
        raw = self._storage.read(snapshot.manifest_list)
        return read_manifest_list(raw, snapshot.manifest_list)

    def _entries(self, manifest: ManifestFile) -> Sequence[ManifestEntry]:
        return read_manifest(self._storage.read(manifest.location), manifest)

    def _index(self, manifest: ManifestFile, entries: Sequence[ManifestEntry]) -> None:
        filter_ = self._filter(manifest.spec_id)
        files = [e.file for e in entries if isinstance(e.file, DeleteFile)]
        in_partition = [f for f in files if filter_.residual(f) != FALSE]
        needed = [f for f in in_partition if filter_.may_delete_a_match(f)]
        self._deletes_listed += len(files)
        self._deletes_by_partition += len(files) - len(in_partition)
        self._deletes_by_metrics += len(in_partition) - len(needed)
        self._deletes.add(needed, filter_.spec)

    def _has_all_rows(self, tasks: Sequence[FileScanTask]) -> bool:
        """Say whether metadata tells that `tasks` have as many rows as are asked for."""
        limit = self._scan.request.limit
        return limit is not None and count_plainly(tasks)[0] >= limit

    def _tasks_by_file(
        self, manifest: ManifestFile, entries: Sequence[ManifestEntry]
    ) -> Iterator[list[FileScanTask]]:
        assert manifest.content is ManifestContent.DATA
        filter_ = self._filter(manifest.spec_id)
        for entry in entries:
            file = entry.file
            if not isinstance(file, DataFile):
                continue
            self._files += 1
            residual = filter_.residual(file)
            if residual == FALSE:
                self._by_partition += 1
                continue
            if not filter_.metrics_may_match(residual, file):
                self._by_metrics += 1
                continue
            found = self._deletes.applying_to(file, partition_key(filter_.spec, file.partition))
            deletes = tuple(
                d
                for d in found
                if d.content is not Content.EQUALITY_DELETES or self._may_match_a_row(d, file)
            )
            yield [
                FileScanTask(file, deletes, residual, start, length)
                for start, length in split(file, self._split_size)
            ]

    def _may_match_a_row(self, delete: DeleteFile, file: DataFile) -> bool:
        may_be_imported = self._scan.metadata.name_mapping() is not None
        return may_match_a_row(delete, file, self._scan.schema, may_be_imported=may_be_imported)

    def _filter(self, spec_id: int) -> FileFilter:
        metadata = self._scan.metadata
        return FileFilter(
            self._scan.filter,
            metadata.spec_by_id(spec_id),
            self._scan.schema,
            may_be_imported=metadata.name_mapping() is not None,
        )

    def _total_records(self, tasks: Sequence[FileScanTask]) -> int | None:
        rows, to_read = count_plainly(tasks)
        if self._has_all_rows(tasks):
            return self._scan.request.limit
        return None if to_read else rows


def _distinct_deletes(tasks: Sequence[FileScanTask]) -> int:
    return len({id(delete) for task in tasks for delete in task.delete_files})
