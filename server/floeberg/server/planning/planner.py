"""Plan a scan: from a snapshot to the tasks that give its rows.

Manifest list, then manifests, then entries, pruned at each level; deletes attached to what is left;
large files divided. Entries are columns of segments from end to end: objects are made of the tasks
that somebody looks at. Spec: "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from floeberg.protocol.expressions.model import FALSE
from floeberg.protocol.files import ManifestContent
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.planned import DeleteFiles, PlannedFiles
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.scans import ResolvedScan
from floeberg.protocol.splitting import split_size_of
from floeberg.protocol.storage import Storage
from floeberg.server.planning.counting import count_tasks, total_rows
from floeberg.server.planning.limiting import RowLimit
from floeberg.server.planning.manifest_cache import ManifestCache
from floeberg.server.planning.manifest_list import ManifestList
from floeberg.server.planning.manifest_merging import Part
from floeberg.server.planning.manifest_pruning import ManifestsToRead, prune_manifests
from floeberg.server.planning.manifest_source import ManifestSource
from floeberg.server.planning.plan import CountResult, Plan, PlanCounters
from floeberg.server.planning.pruning import SpecFilters
from floeberg.server.planning.run import PlanRun
from floeberg.server.planning.steps import Stopwatch
from floeberg.server.planning.vectorised.deletes import SegmentDeletes


def plan_files(
    scan: ResolvedScan,
    storage: Storage,
    cache: ManifestCache | None = None,
    run: PlanRun | None = None,
) -> Plan:
    """Return the plan of `scan`; `cache` spares what earlier plans have decoded, and `run` is told
    how far it is, and may stop it.

    A table never written to has an empty plan, and so has a scan of no row. Raises `CorruptTable`
    for manifests that are missing or damaged and for deletes that contradict each other,
    `Unsupported` for encrypted manifests, and what `storage` and `run` raise.
    """
    if scan.snapshot is None or scan.filter == FALSE or scan.request.limit == 0:
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
    scan = replace(scan, request=replace(scan.request, limit=None))
    return count_tasks(plan_files(scan, storage, cache, run).tasks)


# what a plan with a limit begins with
_FIRST, _FIRST_BYTES = 8, 8 << 20


class _Attaching(NamedTuple):
    """All deletes of a plan, what tells which apply to files, and how many rows are asked for."""

    deletes: DeleteFiles
    by_file: SegmentDeletes
    limit: RowLimit


class _Planner:
    """The state of one plan in the making."""

    def __init__(self, scan: ResolvedScan, source: ManifestSource, run: PlanRun) -> None:
        self._scan = scan
        self._source = source
        self._filters = SpecFilters(scan.filter, scan.metadata, scan.schema)
        self._watch = Stopwatch(enter=run.enter)
        self._delete_parts: list[tuple[Segment, Int64s]] = []
        self._files: list[PlannedFiles] = []
        self._data_manifests = 0
        self._counters = PlanCounters()

    def plan(self) -> Plan:
        assert self._scan.snapshot is not None
        step = self._watch.step
        with step("read the manifest list"):
            listed = self._source.manifests(self._scan.snapshot)
        with step("prune manifests"):
            to_read = prune_manifests(listed, self._filters)
        self._counters = replace(
            self._counters,
            data_manifests=to_read.data_counters,
            delete_manifests=to_read.delete_counters,
        )
        attaching: _Attaching | None = None
        with closing(self._parts(listed, to_read)) as read:
            while attaching is None or not attaching.limit.is_reached:
                with step("read manifests"):
                    found = next(read, None)
                if found is None:
                    break
                if found.segment.content is ManifestContent.DELETES:
                    with step("prune delete files"):
                        self._keep_deletes(found.segment)
                    continue
                if attaching is None:
                    with step("index deletes"):
                        attaching = self._attaching()
                with step("prune files, attach deletes"):
                    self._keep_files(found, attaching)
        with step("split"):
            split_size = split_size_of(
                self._scan.request.split_size, self._scan.metadata.properties
            )
            deletes = DeleteFiles() if attaching is None else attaching.deletes
            tasks = PlannedTasks(self._files, deletes, split_size)
        with step("count"):
            total_records = total_rows(self._files, deletes, self._scan.request.limit)
            counters = self._counters.data_manifests
            self._counters = replace(
                self._counters,
                data_manifests=replace(counters, by_limit=counters.read - self._data_manifests),
                delete_files=_referred_to(self._files, deletes),
            )
        trace = replace(self._source.trace, steps=self._watch.steps)
        return Plan(self._scan, tasks, total_records, self._counters, trace)

    def _parts(self, listed: ManifestList, to_read: ManifestsToRead) -> Generator[Part, None, None]:
        """Yield what is read of the list, deletes first; see `ManifestSource.parts`.

        With a limit, the first data manifests are read without any others ahead of them: they
        probably have the rows.
        """
        first = len(to_read.data)
        if self._scan.request.limit is not None:
            upto = np.cumsum(listed.lengths[to_read.data[:_FIRST]])
            first = max(int(np.searchsorted(upto, _FIRST_BYTES, side="right")), 1)
        turns = np.concatenate([to_read.deletes, to_read.data[:first]]), to_read.data[first:]
        for places in filter(len, turns):
            with closing(self._source.parts(listed, places)) as read:
                yield from read

    def _keep_deletes(self, segment: Segment) -> None:
        kept = self._filters[segment.spec_id].entries.kept_delete_files(segment)
        self._delete_parts.append((segment, kept.rows))
        counters = self._counters
        self._counters = replace(
            counters,
            delete_files_listed=counters.delete_files_listed + len(segment),
            delete_files_skipped_by_partition=(
                counters.delete_files_skipped_by_partition + kept.ruled_out_by_partition
            ),
            delete_files_skipped_by_metrics=(
                counters.delete_files_skipped_by_metrics + kept.ruled_out_by_metrics
            ),
        )

    def _attaching(self) -> _Attaching:
        deletes = DeleteFiles(self._delete_parts)
        by_file = SegmentDeletes(
            deletes,
            self._scan.metadata.spec_by_id,
            self._scan.schema,
            may_be_imported=self._scan.metadata.name_mapping() is not None,
        )
        return _Attaching(deletes, by_file, RowLimit(self._scan.request.limit, deletes))

    def _keep_files(self, part: Part, attaching: _Attaching) -> None:
        segment = part.segment
        # a plan of many small manifests does not name them in its tickets
        manifest = part.manifests[0] if len(part.manifests) == 1 else None
        kept = self._filters[segment.spec_id].entries.kept_data_files(segment)
        by_limit = 0
        if len(kept.rows):
            deletes = attaching.by_file.applying_to(segment, kept.rows)
            files = attaching.limit.first_of(
                PlannedFiles(
                    segment, kept.rows, kept.residuals, kept.residual_of, deletes, manifest
                )
            )
            self._files.append(files)
            by_limit = len(kept.rows) - len(files)
        self._data_manifests += len(part.manifests)
        counters = self._counters
        self._counters = replace(
            counters,
            files=counters.files + len(segment),
            files_skipped_by_partition=(
                counters.files_skipped_by_partition + kept.ruled_out_by_partition
            ),
            files_skipped_by_metrics=counters.files_skipped_by_metrics + kept.ruled_out_by_metrics,
            files_skipped_by_limit=counters.files_skipped_by_limit + by_limit,
        )


def _referred_to(files: Sequence[PlannedFiles], deletes: DeleteFiles) -> int:
    """Return how many of `deletes` apply to any of the files."""
    is_used = np.zeros(len(deletes), dtype=np.bool_)
    for part in files:
        is_used[part.deletes.used()] = True
    return int(np.count_nonzero(is_used))
