"""Plan a scan: from a snapshot to the tasks that give its rows.

Manifest list, then manifests, then entries, pruned at each level; deletes attached to what is left;
large files divided. This is the plain planner: Python objects an entry, in one thread but for the
fetching. Its whole interface is `plan_files`. Spec: "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from floeberg.protocol.expressions.model import FALSE
from floeberg.protocol.files import DataFile, DeleteFile, ManifestContent, ManifestFile
from floeberg.protocol.manifests import ManifestEntry
from floeberg.protocol.scans import ResolvedScan
from floeberg.protocol.splitting import split, split_size_of
from floeberg.protocol.storage import Storage
from floeberg.protocol.tasks import FileScanTask
from floeberg.server.planning.counting import count_tasks
from floeberg.server.planning.delete_index import DeleteIndex
from floeberg.server.planning.manifest_cache import ManifestCache
from floeberg.server.planning.manifest_pruning import prune_manifests
from floeberg.server.planning.manifest_source import ManifestSource
from floeberg.server.planning.plan import CountResult, Plan, PlanCounters
from floeberg.server.planning.pruning import SpecFilters
from floeberg.server.planning.run import PlanRun
from floeberg.server.planning.steps import Stopwatch


def plan_files(
    scan: ResolvedScan,
    storage: Storage,
    cache: ManifestCache | None = None,
    run: PlanRun | None = None,
) -> Plan:
    """Return the plan of `scan`; `cache` spares what earlier plans have decoded, and `run` is told
    how far it is, and may stop it.

    A table never written to has an empty plan. Raises `CorruptTable` for manifests that are missing
    or damaged and for deletes that contradict each other, `Unsupported` for encrypted manifests,
    and what `storage` and `run` raise.
    """
    if scan.snapshot is None or scan.filter == FALSE:
        return Plan(scan)
    cache = ManifestCache() if cache is None else cache
    run = PlanRun() if run is None else run
    source = ManifestSource(run.storage(storage), cache, scan.metadata.table_uuid, run)
    return _Planner(scan, source, run).plan()


def count(
    scan: ResolvedScan,
    storage: Storage,
    cache: ManifestCache | None = None,
    run: PlanRun | None = None,
) -> CountResult:
    """Return how many rows `scan` has, as far as metadata decides it; its `limit` is not applied.

    Raises as `plan_files` does.
    """
    return count_tasks(plan_files(scan, storage, cache, run).tasks)


class _Planner:
    """The state of one plan in the making."""

    def __init__(self, scan: ResolvedScan, source: ManifestSource, run: PlanRun) -> None:
        self._scan = scan
        self._source = source
        self._filters = SpecFilters(scan.filter, scan.metadata, scan.schema)
        self._split_size = split_size_of(scan.request.split_size, scan.metadata.properties)
        self._deletes = DeleteIndex()
        self._watch = Stopwatch(enter=run.enter)
        self._files = 0
        self._by_partition = 0
        self._by_metrics = 0
        self._deletes_listed = 0
        self._deletes_by_partition = 0

    def plan(self) -> Plan:
        assert self._scan.snapshot is not None
        step = self._watch.step
        with step("read the manifest list"):
            manifests = self._source.manifests(self._scan.snapshot)
        with step("prune manifests"):
            to_read = prune_manifests(manifests, self._filters)
        tasks: list[FileScanTask] = []
        with closing(self._source.entries([*to_read.deletes, *to_read.data])) as read:
            while True:
                with step("read manifests"):
                    found = next(read, None)
                if found is None:
                    break
                manifest, entries = found
                if manifest.content is ManifestContent.DELETES:
                    with step("index deletes"):
                        self._index(manifest, entries)
                else:
                    with step("prune files, attach deletes, split"):
                        tasks.extend(self._tasks(manifest, entries))
        with step("count"):
            total_records = self._total_records(tasks)
            counters = PlanCounters(
                data_manifests=to_read.data_counters,
                delete_manifests=to_read.delete_counters,
                files=self._files,
                files_skipped_by_partition=self._by_partition,
                files_skipped_by_metrics=self._by_metrics,
                delete_files_listed=self._deletes_listed,
                delete_files_skipped_by_partition=self._deletes_by_partition,
                delete_files=_distinct_deletes(tasks),
            )
        trace = replace(self._source.trace, steps=self._watch.steps)
        return Plan(self._scan, tuple(tasks), total_records, counters, trace)

    def _index(self, manifest: ManifestFile, entries: Sequence[ManifestEntry]) -> None:
        filter_ = self._filters[manifest.spec_id]
        files = [e.file for e in entries if isinstance(e.file, DeleteFile)]
        needed = [f for f in files if filter_.residual(f, filter_.key(f)) != FALSE]
        self._deletes_listed += len(files)
        self._deletes_by_partition += len(files) - len(needed)
        self._deletes.add(needed, filter_.spec)

    def _tasks(
        self, manifest: ManifestFile, entries: Sequence[ManifestEntry]
    ) -> Iterator[FileScanTask]:
        filter_ = self._filters[manifest.spec_id]
        for entry in entries:
            file = entry.file
            if not isinstance(file, DataFile):
                continue
            self._files += 1
            key = filter_.key(file)
            residual = filter_.residual(file, key)
            if residual == FALSE:
                self._by_partition += 1
                continue
            if not filter_.metrics_may_match(residual, file):
                self._by_metrics += 1
                continue
            deletes = self._deletes.applying_to(file, key)
            for start, length in split(file, self._split_size):
                yield FileScanTask(file, deletes, residual, start, length)

    def _total_records(self, tasks: Sequence[FileScanTask]) -> int | None:
        limit = self._scan.request.limit
        if limit == 0:
            return 0
        counted = count_tasks(tasks)
        if not counted.is_exact:
            return None
        return counted.rows if limit is None else min(counted.rows, limit)


def _distinct_deletes(tasks: Sequence[FileScanTask]) -> int:
    return len({(d.location, d.content_offset) for task in tasks for d in task.delete_files})
