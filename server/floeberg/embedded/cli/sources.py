"""Where a command reads from: a floeberg server, or a table opened in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from floeberg.client import Progress, RemoteScan, RemoteTable
from floeberg.embedded.options import ScanOptions
from floeberg.embedded.reader import BatchReader
from floeberg.embedded.scan import TableScan
from floeberg.embedded.table import Table
from floeberg.protocol.actions import Explanation, PlanPage, SnapshotList, TableDescription
from floeberg.protocol.types import Json
from floeberg.server.describing import describe_table, list_snapshots
from floeberg.server.planning import PlanProgress, PlanRun

_READING_THREADS = 2


@dataclass(frozen=True)
class Selection:
    """What the options of a command select. `as_of` is ms since the epoch or ISO text."""

    filter: str | None = None
    select: tuple[str, ...] | None = None
    snapshot_id: int | None = None
    ref: str | None = None
    as_of: str | None = None
    limit: int | None = None
    case_sensitive: bool = True
    ordered: bool = False


@dataclass(frozen=True)
class RowStream:
    """A scan under way.

    `total_rows` is None where the plan does not know it. The plan has so many `parts`, called
    `parts_name`; `parts_done` tells how many have ended, where that is known.
    """

    schema: pa.Schema
    batches: Generator[pa.RecordBatch, None, None] | BatchReader
    total_rows: int | None
    parts: int
    parts_name: str
    parts_done: Callable[[], int] | None = None


class Source(Protocol):
    """One table, wherever it is read."""

    def progress(self) -> PlanProgress | None:
        """Return how far the plan has come that is made here, in any thread; None for a server's,
        which tells nobody but in its status."""
        ...

    def describe(self) -> TableDescription: ...

    def snapshots(self) -> SnapshotList: ...

    def files(self, selection: Selection) -> Json:
        """Return the data files of a scan in the shape of the REST protocol's scan tasks."""
        ...

    def explain(self, selection: Selection) -> Explanation: ...

    def count(self, selection: Selection) -> int: ...

    def rows(self, selection: Selection) -> RowStream:
        """Return the rows of a scan; its `batches` want closing."""
        ...


class ServerSource:
    """A table that a server serves."""

    def __init__(self, table: RemoteTable) -> None:
        self._table = table

    def progress(self) -> PlanProgress | None:
        return None

    def describe(self) -> TableDescription:
        return self._table.describe()

    def snapshots(self) -> SnapshotList:
        return self._table.snapshots()

    def files(self, selection: Selection) -> Json:
        return _joined(self._scan(selection).files())

    def explain(self, selection: Selection) -> Explanation:
        return self._scan(selection).explain()

    def count(self, selection: Selection) -> int:
        return self._scan(selection).count()

    def rows(self, selection: Selection) -> RowStream:
        ended: list[None] = []  # appended to by several threads

        def note(progress: Progress) -> None:
            ended.extend([None] * progress.finished_endpoints)

        planned = self._scan(selection, on_progress=note).planned()
        total = planned.info.total_records
        return RowStream(
            planned.info.schema,
            planned.batches(),
            total if total >= 0 else None,
            len(planned.info.endpoints),
            "endpoints",
            lambda: len(ended),
        )

    def _scan(self, selection: Selection, **options: Any) -> RemoteScan:
        return self._table.scan(**asdict(selection), **options)


def _joined(pages: Sequence[PlanPage]) -> Json:
    """Return one plan of several pages, whose tasks count the delete files of their own page."""
    tasks: list[Json] = []
    delete_files: list[Json] = []
    for page in pages:
        first = len(delete_files)
        for task in page.tasks:
            references = [first + place for place in task["delete-file-references"]]
            tasks.append({**task, "delete-file-references": references})
        delete_files += page.delete_files
    return {"delete-files": delete_files, "file-scan-tasks": tasks}


class LocalSource:
    """A table opened in this process, by the location of its metadata or directory."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._run = PlanRun()

    def progress(self) -> PlanProgress | None:
        return self._run.progress

    def describe(self) -> TableDescription:
        table = self._table
        return describe_table(table.metadata, table.metadata_location, catalog="", identifier=())

    def snapshots(self) -> SnapshotList:
        return list_snapshots(self._table.metadata)

    def files(self, selection: Selection) -> Json:
        return json.loads(self._scan(selection).with_split_size(0).plan_files_json())

    def explain(self, selection: Selection) -> Explanation:
        return self._scan(selection).explain()

    def count(self, selection: Selection) -> int:
        return self._scan(selection).count()

    def rows(self, selection: Selection) -> RowStream:
        options = ScanOptions(num_workers=_READING_THREADS)
        reader = self._scan(selection).to_batch_reader(options)
        return RowStream(reader.schema, reader, None, reader.num_tasks, "tasks")

    def _scan(self, selection: Selection) -> TableScan:
        return replace(self._table.scan(**asdict(selection)), run=self._run)
