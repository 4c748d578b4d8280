"""A scan in this process: planned and read here, by the same code as a fleet's coordinator and
workers.

The rows and their order are those that a fleet returns for the same scan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from floeberg.embedded.kept import KeptOfTable
from floeberg.embedded.options import ScanOptions
from floeberg.embedded.reader import BatchReader
from floeberg.embedded.reading import read_plan
from floeberg.process.frames import to_pandas, to_polars
from floeberg.protocol.actions import Explanation
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.commands import instant
from floeberg.protocol.errors import BadCommand
from floeberg.protocol.expressions import as_expression
from floeberg.protocol.expressions.model import TRUE, And, Expression
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.plans import ReadOptions, ReadPlan
from floeberg.protocol.scans import ResolvedScan, ScanRequest, resolve
from floeberg.protocol.storage import Storage, StorageConfig
from floeberg.protocol.suggestions import quoted
from floeberg.protocol.tasks import FileScanTask
from floeberg.server.planning import (
    ManifestCache,
    PlanRun,
    Stopwatch,
    explain,
    plan_files,
    rest_json,
)
from floeberg.server.planning import count as count_rows

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_DEFAULT = ScanOptions()


@dataclass(frozen=True)
class TableScan:
    """What to read of a table. Every setter returns a new scan; nothing is read until rows are
    asked for.

    `run`, if one is given, is told how far a plan of the scan is: another thread may look, at its
    `progress`.
    """

    metadata: TableMetadata
    storage: Storage
    config: StorageConfig
    request: ScanRequest = field(default_factory=ScanRequest)
    run: PlanRun | None = field(default=None, repr=False, compare=False)
    kept: KeptOfTable = field(default_factory=KeptOfTable, repr=False, compare=False)

    # --- what to read -----------------------------------------------------------------------------

    def filter(self, filter: str | list[Any] | Expression) -> TableScan:
        """Return the scan narrowed to rows of which `filter` is true; a second filter narrows
        further.

        A filter is text (`amount > 10 AND region IN ('eu', 'us')`) or the JSON form (`["and", [">",
        "amount", 10], …]`). Raises `BadFilter` when it cannot be parsed; columns and literals are
        checked when the scan is planned.
        """
        added = as_expression(filter)
        before = self.request.filter
        return self._with(filter=added if before == TRUE else And((before, added)))

    def select(self, columns: Iterable[str]) -> TableScan:
        """Return the scan with only `columns`, in that order; dotted names reach into structs.

        `_file`, `_pos`, `_spec_id`, `_partition`, `_row_id` and `_last_updated_sequence_number` are
        there on request. No column at all still counts rows.
        """
        return self._with(select=_names(columns, "columns"))

    def use_snapshot(self, snapshot_id: int) -> TableScan:
        """Return the scan of one snapshot, with the schema that it was written with."""
        return self._with(snapshot_id=snapshot_id)

    def use_ref(self, name: str) -> TableScan:
        """Return the scan of a branch or tag; `branch=x` or `tag=x` insist on the kind."""
        return self._with(ref=name)

    def as_of(self, time: int | str | datetime) -> TableScan:
        """Return the scan of the snapshot that was current at `time`: ms since the epoch, an aware
        datetime, or its ISO text."""
        try:
            return self._with(as_of_ms=instant(time))
        except ValueError as exc:
            raise BadCommand(f"as_of: {exc}") from exc

    def with_split_size(self, size_bytes: int) -> TableScan:
        """Return the scan with data files divided into tasks of about `size_bytes`; 0 is one task a
        file."""
        return self._with(split_size=size_bytes)

    def case_insensitive(self) -> TableScan:
        return self._with(case_sensitive=False)

    def _with(self, **changes: Any) -> TableScan:
        return replace(self, request=replace(self.request, **changes))

    # --- planning ---------------------------------------------------------------------------------

    def resolved(self) -> ResolvedScan:
        """Return the scan with every name bound, or raise what is wrong with it."""
        return resolve(self.metadata, self.request)

    def schema(self) -> pa.Schema:
        """Return the schema of the rows: of every batch, and of an empty answer."""
        return arrow_schema(self.resolved().projection)

    def plan_files(self) -> Sequence[FileScanTask]:
        """Return the tasks of the scan in plan order, planned with what the table's scans have kept
        of its manifests.

        With a limit these are the first ones, as far as metadata tells that they have the rows.
        They are made as they are looked at: their number is known at once, however many they are.
        """
        return self.plan_files_with(self.kept.manifests)

    def plan_files_with(self, cache: ManifestCache) -> Sequence[FileScanTask]:
        """Return the tasks of the scan, reusing (and adding to) the manifests in `cache`.

        For planning several snapshots of a table, which share most of their manifests. A cache with
        `SegmentFiles` keeps them on disk, too.
        """
        return plan_files(self.resolved(), self.storage, cache, self.run).tasks

    def plan_files_json(self) -> str:
        """Return the plan as JSON: the REST spec's file scan tasks, with start, length, spec-id,
        data-sequence-number and residual beside each."""
        return json.dumps(rest_json(plan_files(self.resolved(), self.storage, run=self.run)))

    def explain(self) -> Explanation:
        """Return what planning the scan does: what it looks at and rules out, and by what; deletes,
        what is left of the filter, and the time of each step."""
        watch = Stopwatch()
        with watch.step("bind names"):
            scan = self.resolved()
        return explain(plan_files(scan, self.storage, run=self.run), before=watch.steps)

    # --- reading ----------------------------------------------------------------------------------

    def to_table(self, options: ScanOptions = _DEFAULT) -> pa.Table:
        """Return all rows of the scan as one table."""
        with self.to_batch_reader(options) as reader:
            return reader.read_all()

    def to_pandas(self, options: ScanOptions = _DEFAULT, **pandas_options: Any) -> pd.DataFrame:
        """Return all rows of the scan as a pandas DataFrame (extra `pandas`); `pandas_options` are
        those of `pyarrow.Table.to_pandas`."""
        return to_pandas(lambda: self.to_table(options), pandas_options)

    def to_polars(self, options: ScanOptions = _DEFAULT) -> pl.DataFrame:
        """Return all rows of the scan as a Polars DataFrame (extra `polars`)."""
        return to_polars(lambda: self.to_table(options))

    def to_batches(self, options: ScanOptions = _DEFAULT) -> list[pa.RecordBatch]:
        """Return all rows of the scan, batch by batch as they were read; nothing is
        concatenated."""
        with self.to_batch_reader(options) as reader:
            return list(reader)

    def to_batch_reader(self, options: ScanOptions = _DEFAULT) -> BatchReader:
        """Return the scan's batches as a stream that holds a bounded window.

        The scan is planned before this returns, so what is wrong with it raises here and not on the
        first batch.
        """
        scan = self.resolved()
        planned = self._split(scan, options)
        planned = replace(planned, request=replace(planned.request, limit=self._limit(options)))
        plan = plan_files(planned, self.storage, self.kept.manifests, self.run)
        return self._read(scan, plan.tasks, options)

    def to_batches_for_tasks(
        self, tasks: Sequence[FileScanTask], options: ScanOptions = _DEFAULT
    ) -> list[pa.RecordBatch]:
        """Return the rows of tasks that were planned before, without planning again.

        The scan supplies what a task does not carry: the schema and the projection. The residual is
        the task's own.
        """
        with self._read(self.resolved(), tasks, options) as reader:
            return list(reader)

    def to_batches_for_paths(
        self, paths: Iterable[str], options: ScanOptions = _DEFAULT
    ) -> list[pa.RecordBatch]:
        """Return the rows of the data files at `paths`, as the whole scan would return them.

        The scan is planned again, so its pruning, residuals and deletes apply. A path that today's
        plan does not hold is ignored: the union over all workers of a stale plan is never wrong,
        only shorter.
        """
        wanted = frozenset(_names(paths, "paths"))
        return self._read_selected(lambda task: task.data_file.location in wanted, options)

    def to_batches_for_splits(
        self, paths: Sequence[str], starts: Sequence[int], options: ScanOptions = _DEFAULT
    ) -> list[pa.RecordBatch]:
        """Return the rows of the tasks that begin at (path, start), pairwise; unknown pairs are
        ignored.

        The scan must be split as the one that named the pairs was.
        """
        if len(paths) != len(starts):
            raise BadCommand(f"{len(paths)} paths and {len(starts)} starts: give one start a path")
        wanted = frozenset(zip(paths, starts, strict=True))
        return self._read_selected(
            lambda task: (task.data_file.location, task.start) in wanted, options
        )

    def count(self, options: ScanOptions = _DEFAULT) -> int:
        """Return how many rows `to_table` would have: from metadata where that is exact, reading
        only the other tasks, and no column of them."""
        self.resolved()  # columns don't change the count, but unknown ones are still an error
        scan = resolve(self.metadata, replace(self.request, select=()))
        counted = count_rows(
            self._split(scan, options), self.storage, self.kept.manifests, self.run
        )
        with self._read(scan, counted.to_read, replace(options, limit=None)) as reader:
            for _ in reader:
                pass
            total = counted.rows + reader.rows
        limit = self._limit(options)
        return total if limit is None else min(total, limit)

    def _read_selected(
        self, is_wanted: Callable[[FileScanTask], bool], options: ScanOptions
    ) -> list[pa.RecordBatch]:
        scan = self.resolved()
        planned = self._split(scan, options)
        # the limit is of the rows of these tasks, which may come late in the plan
        planned = replace(planned, request=replace(planned.request, limit=None))
        tasks = plan_files(planned, self.storage, self.kept.manifests, self.run).tasks
        with self._read(scan, [t for t in tasks if is_wanted(t)], options) as reader:
            return list(reader)

    def _limit(self, options: ScanOptions) -> int | None:
        limits = [n for n in (self.request.limit, options.limit) if n is not None]
        return min(limits, default=None)

    def _split(self, scan: ResolvedScan, options: ScanOptions) -> ResolvedScan:
        if options.split_size is None:
            return scan
        return replace(scan, request=replace(scan.request, split_size=options.split_size))

    def _read(
        self, scan: ResolvedScan, tasks: Sequence[FileScanTask], options: ScanOptions
    ) -> BatchReader:
        if isinstance(tasks, PlannedTasks):
            tasks = tasks.without_metrics()
        plan = ReadPlan(
            metadata=scan.metadata.for_reading(scan.snapshot),
            schema_id=scan.schema.schema_id,
            projection=scan.projection,
            tasks=tasks,
            storage=self.config,
            options=ReadOptions(
                batch_size=options.batch_size,
                limit=self._limit(options),
                verify_crc=options.verify_crc,
                prune=options.prune,
            ),
        )
        batches = read_plan(
            plan,
            self.storage,
            self.kept,
            in_flight=min(options.num_workers, options.files_at_once or options.num_workers),
            overlap=options.overlap_io,
        )
        return BatchReader(arrow_schema(scan.projection), batches, len(tasks))


def _names(given: Iterable[str], what: str) -> tuple[str, ...]:
    """Return the names in `given`; one text alone would be taken apart into its letters."""
    if isinstance(given, str):
        raise BadCommand(f"{what} are given as a list, such as [{quoted(given)}]")
    names = tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise BadCommand(f"{what} are a list of texts, and not of {type(name).__name__}")
    return names
