"""A scan: which rows and columns of which snapshot a caller asks for.

`ScanRequest` is what the caller wrote. `resolve` reads it against a table's metadata and gives a
`ResolvedScan`, in which every name is bound: that is what planning and reading work from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from floeberg.protocol.errors import (
    BadCommand,
    ConflictingSnapshot,
    CorruptMetadata,
    Unsupported,
)
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.model import TRUE, BoundExpression, Expression
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.metadata_columns import PARTITION_NAME, PLAIN_COLUMNS, partition_column
from floeberg.protocol.schema import Schema
from floeberg.protocol.snapshots import Snapshot
from floeberg.protocol.suggestions import cut
from floeberg.protocol.types import NestedField, children


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """A scan as it was asked for. At most one of `snapshot_id`, `ref` and `as_of_ms` is given.

    `select` is None for every column of the schema; names may be dotted, and `_file`, `_pos`, … are
    metadata columns (unless the schema has a column of that name). `split_size` is in bytes; None
    leaves it to the planner, 0 is one task a file. `limit` counts rows.
    """

    filter: Expression = TRUE
    select: tuple[str, ...] | None = None
    snapshot_id: int | None = None
    ref: str | None = None
    as_of_ms: int | None = None
    case_sensitive: bool = True
    split_size: int | None = None
    limit: int | None = None
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class ResolvedScan:
    """A scan with every name bound to one snapshot of one table.

    `snapshot` is None for a table never written to. `schema` is the schema that is read (the
    snapshot's own, or the table's current one for a scan of a branch or of the table as it is).
    `projection` holds the columns of the answer in order, pruned, metadata columns included under
    their reserved ids. `filter` is bound to `schema`.
    """

    metadata: TableMetadata
    snapshot: Snapshot | None
    schema: Schema
    projection: Schema
    filter: BoundExpression
    request: ScanRequest


class View(Protocol):
    """A table as a caller sees it who may not read all of it. Metadata columns are not in it."""

    def shown(self, schema: Schema) -> Schema:
        """Return what there is of one of the table's schemas."""
        ...

    def narrowed(self, filter: BoundExpression, schema: Schema) -> BoundExpression:
        """Return a filter on what is `shown` of `schema`, as one on `schema` that is true of no row
        which the caller may not read."""
        ...


def resolve(
    metadata: TableMetadata,
    request: ScanRequest,
    *,
    use_snapshot_schema: bool | None = None,
    view: View | None = None,
) -> ResolvedScan:
    """Bind every name of `request` to the table, or to what `view` shows of it.

    `use_snapshot_schema` says whether names are those of the snapshot's schema or of the table's
    current one; without it, the choice of the snapshot decides.

    Raises `ConflictingSnapshot`, `UnknownSnapshot`, `UnknownRef` and `NoSnapshotAsOf` for the
    choice of the snapshot, `UnknownColumn` and `AmbiguousColumn` for a name, and what binding a
    filter raises.
    """
    if request.limit is not None and request.limit < 0:
        raise BadCommand(f"limit {request.limit} is negative")
    if request.split_size is not None and request.split_size < 0:
        raise BadCommand(f"split_size {request.split_size} is negative")
    snapshot, schema = _choose_snapshot(metadata, request)
    if use_snapshot_schema is not None:
        schema = metadata.schema()
        if use_snapshot_schema and snapshot is not None:
            schema = metadata.schema_for_snapshot(snapshot)
    if snapshot is not None and not snapshot.names_manifests:
        raise CorruptMetadata(
            f"snapshot {snapshot.snapshot_id} of table {metadata.location} has neither a"
            " manifest-list nor manifests"
        )
    shown = schema if view is None else view.shown(schema)
    filter_ = bind(request.filter, shown, request.case_sensitive)
    if view is not None:
        filter_ = view.narrowed(filter_, schema)
    if request.select is None:
        projection = shown
    else:
        # they tell of rows and partition values that the caller may not read
        beside = () if view is not None else _metadata_columns(metadata, schema, request.select)
        projection = _project(shown, beside, request.select, request.case_sensitive)
    return ResolvedScan(metadata, snapshot, schema, projection, filter_, request)


def _choose_snapshot(
    metadata: TableMetadata, request: ScanRequest
) -> tuple[Snapshot | None, Schema]:
    """Return the snapshot to read, and the schema to read it with.

    An id, a tag or a time means the table as it was, schema included; a branch lives on, and has
    the table's current schema.
    """
    choices = {
        "snapshot_id": request.snapshot_id,
        "ref": request.ref,
        "as_of": request.as_of_ms,
    }
    given = [f"{name} {cut(repr(value))}" for name, value in choices.items() if value is not None]
    if len(given) > 1:
        raise ConflictingSnapshot(given)
    if request.ref is not None:
        ref = metadata.ref_by_name(request.ref)
        snapshot = metadata.snapshot_for_ref(request.ref)
        if ref is None or snapshot is None or ref.is_branch:
            return snapshot, metadata.schema()
    elif request.snapshot_id is not None:
        snapshot = metadata.snapshot_by_id(request.snapshot_id)
    elif request.as_of_ms is not None:
        snapshot = metadata.snapshot_as_of(request.as_of_ms)
    else:
        return metadata.current_snapshot(), metadata.schema()
    return snapshot, metadata.schema_for_snapshot(snapshot)


def _project(
    schema: Schema, beside: tuple[NestedField, ...], select: Sequence[str], case_sensitive: bool
) -> Schema:
    """Return the selected columns of `schema`, and `beside` it, in the order in which they are
    first named.

    Names that share a column select parts of it: they come back as one pruned column.
    """
    known = replace(schema, fields=schema.fields + beside)
    ids = [known.lookup(name, case_sensitive).field_id for name in select]
    return known.prune(ids)


def _metadata_columns(
    metadata: TableMetadata, schema: Schema, select: Sequence[str]
) -> tuple[NestedField, ...]:
    """Return the metadata columns that no column of the table hides."""
    columns = [c for c in PLAIN_COLUMNS if c.name not in schema.names]
    # the partition column is put together from all specs, so only for who may mean it
    if PARTITION_NAME not in schema.names and any(
        name.lower().startswith(PARTITION_NAME) for name in select
    ):
        columns.append(_partition_beside(schema, metadata))
    return tuple(columns)


def _partition_beside(schema: Schema, metadata: TableMetadata) -> NestedField:
    """Return the partition column; among very many columns, its ids may be those of columns."""
    column = partition_column(metadata)
    for field in children(column.type):
        if (other := schema.find(field.field_id)) is not None:
            raise Unsupported(
                f"{PARTITION_NAME}: field id {field.field_id} is column {other.name!r} too"
            )
    return column
