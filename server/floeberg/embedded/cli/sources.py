"""Where a command reads from: a floeberg server, or a table opened in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from floeberg.client import RemoteScan, RemoteTable
from floeberg.embedded.options import ScanOptions
from floeberg.embedded.scan import TableScan
from floeberg.embedded.table import Table
from floeberg.protocol.actions import SnapshotList, TableDescription
from floeberg.protocol.bodies import validate_body
from floeberg.protocol.commands import ScanCommand
from floeberg.protocol.types import Json
from floeberg.server.describing import describe_table, list_snapshots


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
    """A scan under way. `total_rows` is None where the plan does not know it."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    total_rows: int | None
    parts: int


class Source(Protocol):
    """One table, wherever it is read."""

    def describe(self) -> TableDescription: ...
    def snapshots(self) -> SnapshotList: ...
    def files(self, selection: Selection) -> list[Json]: ...
    def count(self, selection: Selection) -> int: ...
    def rows(self, selection: Selection) -> RowStream: ...


class ServerSource:
    """A table that a server serves."""

    def __init__(self, table: RemoteTable) -> None:
        self._table = table

    def describe(self) -> TableDescription:
        return self._table.describe()

    def snapshots(self) -> SnapshotList:
        return self._table.snapshots()

    def files(self, selection: Selection) -> list[Json]:
        return [task for page in self._scan(selection).plan() for task in page.tasks]

    def count(self, selection: Selection) -> int:
        return self._scan(selection).count()

    def rows(self, selection: Selection) -> RowStream:
        planned = self._scan(selection).planned()
        total = planned.info.total_records
        return RowStream(
            planned.info.schema,
            planned.batches(),
            total if total >= 0 else None,
            len(planned.info.endpoints),
        )

    def _scan(self, selection: Selection) -> RemoteScan:
        return self._table.scan(
            filter=selection.filter,
            select=selection.select,
            snapshot_id=selection.snapshot_id,
            ref=selection.ref,
            as_of=selection.as_of,
            limit=selection.limit,
            ordered=selection.ordered,
            case_sensitive=selection.case_sensitive,
        )


class LocalSource:
    """A table opened in this process, by the location of its metadata or directory."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def describe(self) -> TableDescription:
        location = self._table.metadata_location or ""
        return describe_table(self._table.metadata, location, catalog="", identifier=())

    def snapshots(self) -> SnapshotList:
        return list_snapshots(self._table.metadata)

    def files(self, selection: Selection) -> list[Json]:
        plan = json.loads(self._scan(selection).plan_files_json())
        tasks: list[Json] = plan["file-scan-tasks"]
        return tasks

    def count(self, selection: Selection) -> int:
        return self._scan(selection).count()

    def rows(self, selection: Selection) -> RowStream:
        reader = self._scan(selection).to_batch_reader(ScanOptions(num_workers=2))
        return RowStream(reader.schema, reader, None, reader.num_tasks)

    def _scan(self, selection: Selection) -> TableScan:
        # read by the same rules as the command that a server would get
        body = {
            "table": "table",
            "filter": selection.filter,
            "select": selection.select,
            "snapshot_id": selection.snapshot_id,
            "ref": selection.ref,
            "as_of": selection.as_of,
            "limit": selection.limit,
            "case_sensitive": selection.case_sensitive,
        }
        command = validate_body(ScanCommand, body, "scan")
        return TableScan(
            self._table.metadata, self._table.storage, self._table.config, command.to_request()
        )
