"""Metadata tables of written tables, and in a form in which PyIceberg's compare with them."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from typing import Any

import pyarrow as pa

from floeberg.process.storage import open_storage
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.snapshots import Snapshot
from floeberg.protocol.storage import Storage
from floeberg.server.planning import ManifestCache, ManifestSource, PlanRun
from floeberg.server.sql.metadata_tables import metadata_table

CURRENT: Any = object()


def source_of(
    metadata: TableMetadata, storage: Storage | None = None, run: PlanRun | None = None
) -> ManifestSource:
    """Return what reads the manifests of a table afresh."""
    run = run or PlanRun()
    storage = run.storage(storage or open_storage())
    return ManifestSource(storage, ManifestCache(), metadata.table_uuid, run)


def told(
    kind: str,
    metadata: TableMetadata,
    snapshot: Snapshot | None = CURRENT,
    columns: Collection[str] | None = None,
) -> pa.Table:
    """Return a metadata table, valid throughout; of the current snapshot if nothing is said."""
    at = metadata.current_snapshot() if snapshot is CURRENT else snapshot
    table = metadata_table(kind, metadata, at, source_of(metadata), columns)
    table.validate(full=True)
    return table


def comparable(value: Any) -> Any:
    """Return a value of a row such that equal ones of PyIceberg's are equal.

    A map becomes a dictionary, and one without entries, like an empty list, becomes None: writers
    leave them out or not. Fields are in the order of their names, and times are naive, as
    PyIceberg's are.
    """
    match value:
        case datetime.datetime():
            return value.replace(tzinfo=None)
        case [(_, _), *_]:
            return {k: comparable(v) for k, v in value}
        case list() | dict() if not value:
            return None
        case list():
            return [comparable(each) for each in value]
        case dict():
            return {k: comparable(v) for k, v in sorted(value.items())}
        case _:
            return value
