"""`snapshots`, `history` and `refs`: what a table's metadata says by itself.

They are those of the table as it is, whichever of its snapshots is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.schema import Schema
from floeberg.server.describing import list_refs
from floeberg.server.sql.metadata_tables.schemas import HISTORY, REFS, SNAPSHOTS


def snapshots_table(metadata: TableMetadata) -> pa.Table:
    """Return the snapshots in the order of the metadata. The summary is without the operation,
    which has a column of its own."""
    rows = [
        {
            "committed_at": snapshot.timestamp_ms * 1000,
            "snapshot_id": snapshot.snapshot_id,
            "parent_id": snapshot.parent_snapshot_id,
            "operation": snapshot.summary.get("operation"),
            "manifest_list": snapshot.manifest_list,
            "summary": [(k, v) for k, v in snapshot.summary.items() if k != "operation"]
            if snapshot.summary
            else None,
        }
        for snapshot in metadata.snapshots
    ]
    return _table(rows, SNAPSHOTS)


def history_table(metadata: TableMetadata) -> pa.Table:
    """Return the snapshot log; the parent of a snapshot that has been expired is null."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    ancestors: set[int] = set()
    next_id = metadata.current_snapshot_id
    while next_id is not None and next_id not in ancestors:
        ancestors.add(next_id)
        found = by_id.get(next_id)
        next_id = None if found is None else found.parent_snapshot_id
    rows = []
    for entry in metadata.snapshot_log:
        snapshot = by_id.get(entry.snapshot_id)
        rows.append(
            {
                "made_current_at": entry.timestamp_ms * 1000,
                "snapshot_id": entry.snapshot_id,
                "parent_id": None if snapshot is None else snapshot.parent_snapshot_id,
                "is_current_ancestor": entry.snapshot_id in ancestors,
            }
        )
    return _table(rows, HISTORY)


def refs_table(metadata: TableMetadata) -> pa.Table:
    """Return branches and tags by name; `main` too where the metadata leaves it out."""
    rows = [
        {
            "name": ref.name,
            "type": ref.type.upper(),
            "snapshot_id": ref.snapshot_id,
            "max_reference_age_in_ms": ref.max_ref_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
        }
        for ref in list_refs(metadata)
    ]
    return _table(rows, REFS)


def _table(rows: Sequence[Mapping[str, object]], schema: Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=arrow_schema(schema))
