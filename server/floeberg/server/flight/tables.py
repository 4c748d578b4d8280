"""Tables as clients are told of them: listings, descriptions, snapshots."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

from floeberg.protocol.actions import (
    RefEntry,
    SnapshotEntry,
    SnapshotList,
    TableDescription,
    TableEntry,
    TablesRequest,
)
from floeberg.protocol.metadata import TableMetadata
from floeberg.server.catalogs import Catalogs, LoadedTable


def list_tables(catalogs: Catalogs, request: TablesRequest) -> list[TableEntry]:
    """Return the tables that `request` asks for, catalog by catalog.

    A catalog that doesn't answer hides no other, unless it is the one that was asked for: then its
    error is raised.
    """
    if request.catalog is not None:
        found = [(request.catalog, i) for i in catalogs.get(request.catalog).list_tables()]
    else:
        found = list(catalogs.list_tables().tables)
    default = catalogs.default.name
    namespace = request.namespace
    return [
        TableEntry(catalog=catalog, identifier=i, is_default_catalog=catalog == default)
        for catalog, i in found
        if i[: len(namespace)] == namespace and len(i) > len(namespace)
    ]


def name_filter(criteria: bytes) -> Callable[[TableEntry], bool]:
    """Return the test for ListFlights' criteria: a pattern with `*` and `?` for the dotted
    name, with or without the catalog; or a part of it. Empty criteria let every table through.
    """
    pattern = criteria.decode("utf-8", "replace")

    def matches(entry: TableEntry) -> bool:
        name = ".".join(entry.identifier)
        names = (name, f"{entry.catalog}.{name}")
        if any(c in pattern for c in "*?["):
            return any(fnmatchcase(n, pattern) for n in names)
        return pattern in names[1]

    return matches


def path_of(entry: TableEntry) -> tuple[str, ...]:
    """Return the path that names a table in a descriptor, the catalog before it where it must be.

    >>> path_of(TableEntry(catalog="lake", identifier=("db", "t"), is_default_catalog=True))
    ('db', 't')
    """
    identifier = entry.identifier
    # one element alone is read as a dotted name
    is_plain = len(identifier) > 1 or "." not in "".join(identifier)
    return identifier if entry.is_default_catalog and is_plain else (entry.catalog, *identifier)


def describe(table: LoadedTable) -> TableDescription:
    metadata = table.metadata
    return TableDescription(
        catalog=table.catalog,
        identifier=table.identifier,
        location=metadata.location,
        metadata_location=table.metadata_location,
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
        refs=_refs(metadata),
    )


def snapshots(metadata: TableMetadata) -> SnapshotList:
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
            for s in sorted(metadata.snapshots, key=lambda s: (s.timestamp_ms, s.sequence_number))
        ),
        current_snapshot_id=metadata.current_snapshot_id,
        refs=_refs(metadata),
    )


def _refs(metadata: TableMetadata) -> tuple[RefEntry, ...]:
    return tuple(
        RefEntry(
            name=name,
            type="branch" if ref.is_branch else "tag",
            snapshot_id=ref.snapshot_id,
            min_snapshots_to_keep=ref.min_snapshots_to_keep,
            max_snapshot_age_ms=ref.max_snapshot_age_ms,
            max_ref_age_ms=ref.max_ref_age_ms,
        )
        for name, ref in sorted(metadata.refs.items())
    )
