"""What there is to tell of a table without scanning it."""

from __future__ import annotations

from floeberg.protocol.actions import RefEntry, SnapshotEntry, SnapshotList, TableDescription
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.snapshots import MAIN_BRANCH


def describe_table(
    metadata: TableMetadata,
    metadata_location: str | None,
    catalog: str,
    identifier: tuple[str, ...],
) -> TableDescription:
    """Return what the table is like now, for people and programs."""
    return TableDescription(
        catalog=catalog,
        identifier=identifier,
        location=metadata.location,
        metadata_location=metadata_location,
        format_version=metadata.format_version,
        table_uuid=metadata.table_uuid,
        last_updated_ms=metadata.last_updated_ms,
        table_schema=metadata.schema().to_json(),
        partition_specs=tuple(spec.to_json() for spec in metadata.partition_specs),
        default_spec_id=metadata.default_spec_id,
        sort_orders=tuple(order.to_json() for order in metadata.sort_orders),
        default_sort_order_id=metadata.default_sort_order_id,
        properties=dict(metadata.properties),
        current_snapshot_id=metadata.current_snapshot_id,
        snapshot_count=len(metadata.snapshots),
        refs=list_refs(metadata),
    )


def list_snapshots(metadata: TableMetadata) -> SnapshotList:
    """Return the table's snapshots, oldest first, and its branches and tags."""
    ordered = sorted(metadata.snapshots, key=lambda s: (s.timestamp_ms, s.sequence_number))
    return SnapshotList(
        snapshots=tuple(
            SnapshotEntry(
                snapshot_id=s.snapshot_id,
                parent_snapshot_id=s.parent_snapshot_id,
                sequence_number=s.sequence_number,
                timestamp_ms=s.timestamp_ms,
                operation=s.operation,
                summary=dict(s.summary),
                schema_id=s.schema_id,
                manifest_list=s.manifest_list,
            )
            for s in ordered
        ),
        current_snapshot_id=metadata.current_snapshot_id,
        refs=list_refs(metadata),
    )


def list_refs(metadata: TableMetadata) -> tuple[RefEntry, ...]:
    """Return the table's branches and tags by name; `main` too where the metadata leaves it out."""
    refs = dict(metadata.refs)
    main = metadata.ref_by_name(MAIN_BRANCH)
    if main is not None:
        refs[MAIN_BRANCH] = main
    return tuple(
        RefEntry(
            name=name,
            type=ref.type.value,
            snapshot_id=ref.snapshot_id,
            min_snapshots_to_keep=ref.min_snapshots_to_keep,
            max_snapshot_age_ms=ref.max_snapshot_age_ms,
            max_ref_age_ms=ref.max_ref_age_ms,
        )
        for name, ref in sorted(refs.items())
    )
