"""Metadata tables by their names, read as plans read manifests."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing

import numpy as np
import pyarrow as pa

from floeberg.protocol.manifests import Segment
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.snapshots import Snapshot
from floeberg.server.planning import ManifestSource
from floeberg.server.planning.manifest_list import ManifestList
from floeberg.server.sql.metadata_tables.files import FileRows
from floeberg.server.sql.metadata_tables.manifests import manifests_table
from floeberg.server.sql.metadata_tables.partitions import partitions_table
from floeberg.server.sql.metadata_tables.schemas import metadata_schema
from floeberg.server.sql.metadata_tables.snapshots import (
    history_table,
    refs_table,
    snapshots_table,
)


def metadata_table(
    kind: str,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    source: ManifestSource,
    columns: Collection[str] | None = None,
) -> pa.Table:
    """Return a metadata table, one of `names.METADATA_TABLES`, with those of its columns that
    `columns` names, or all, in the order of `metadata_schema`.

    `files`, `entries`, `manifests` and `partitions` are as of `snapshot`, and empty without one;
    `source` reads its manifests, of the same table. `files` and `partitions` have what is live,
    `entries` also what its manifests mark as deleted, behind all others. `snapshots`, `history` and
    `refs` read nothing.

    It tells of all rows of the table; that the caller may read them is for others to check. Raises
    what `ManifestSource` and `metadata_schema` raise, and `CorruptManifest` for values that are
    none of their types.
    """
    if kind in _OF_METADATA:
        return _chosen(_OF_METADATA[kind](metadata), columns)
    schema = metadata_schema(kind, metadata)
    listed = None if snapshot is None else source.manifests(snapshot)
    if kind == "manifests":
        manifests = () if listed is None else listed.manifests
        return _chosen(manifests_table(manifests, metadata), columns)
    if kind == "partitions":
        return partitions_table(_live(listed, source), metadata, schema, columns)
    rows = FileRows(metadata, schema, columns)
    batches = [batch for segment in _live(listed, source) for batch in rows.batches(segment)]
    if kind == "entries" and listed is not None:
        with_deleted = [m for m in listed.manifests if m.deleted_files_count != 0]
        for segment in source.deleted(with_deleted):
            batches += rows.batches(segment)
    return pa.Table.from_batches(batches, schema=rows.schema)


_OF_METADATA = {"snapshots": snapshots_table, "history": history_table, "refs": refs_table}


def _live(listed: ManifestList | None, source: ManifestSource) -> Iterator[Segment]:
    """Yield the live entries of all manifests, in the list's order."""
    if listed is None:
        return
    with closing(source.parts(listed, np.flatnonzero(listed.are_live))) as parts:
        for part in parts:
            yield part.segment


def _chosen(table: pa.Table, columns: Collection[str] | None) -> pa.Table:
    if columns is None:
        return table
    return table.select([name for name in table.column_names if name in columns])
