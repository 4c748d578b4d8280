"""The columns of metadata tables.

Field ids are the specification's where it has them, as of a manifest's fields.

Spec: "Manifests", "Data File Fields", "Snapshots", "Snapshot References".
"""

from __future__ import annotations

from typing import Final

from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.metadata_columns import partition_column
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    IntType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    Type,
)
from floeberg.server.sql.metadata_tables.readable_metrics import readable_metrics_field

INT, LONG, TEXT, BYTES, FLAG = IntType(), LongType(), StringType(), BinaryType(), BooleanType()
INSTANT = TimestampType(zoned=True)


def _must(field_id: int, name: str, type_: Type) -> NestedField:
    return NestedField(field_id, name, type_, required=True)


def _may(field_id: int, name: str, type_: Type) -> NestedField:
    return NestedField(field_id, name, type_)


def _map(key_id: int, key: Type, value_id: int, value: Type) -> MapType:
    return MapType(key_id, key, value_id, value, value_required=True)


SNAPSHOTS: Final = Schema(
    (
        _must(1, "committed_at", INSTANT),
        _must(2, "snapshot_id", LONG),
        _may(3, "parent_id", LONG),
        _may(4, "operation", TEXT),
        _may(5, "manifest_list", TEXT),
        _may(6, "summary", _map(7, TEXT, 8, TEXT)),
    )
)
HISTORY: Final = Schema(
    (
        _must(1, "made_current_at", INSTANT),
        _must(2, "snapshot_id", LONG),
        _may(3, "parent_id", LONG),
        _must(4, "is_current_ancestor", FLAG),
    )
)
REFS: Final = Schema(
    (
        _must(1, "name", TEXT),
        _must(2, "type", TEXT),
        _must(3, "snapshot_id", LONG),
        _may(4, "max_reference_age_in_ms", LONG),
        _may(5, "min_snapshots_to_keep", INT),
        _may(6, "max_snapshot_age_in_ms", LONG),
    )
)
_SUMMARY = StructType(
    (
        _must(10, "contains_null", FLAG),
        _may(11, "contains_nan", FLAG),
        _may(12, "lower_bound", TEXT),
        _may(13, "upper_bound", TEXT),
    )
)
# version 1 may leave out the counts and the snapshot
MANIFESTS: Final = Schema(
    (
        _must(14, "content", INT),
        _must(1, "path", TEXT),
        _must(2, "length", LONG),
        _must(3, "partition_spec_id", INT),
        _may(4, "added_snapshot_id", LONG),
        _may(5, "added_data_files_count", INT),
        _may(6, "existing_data_files_count", INT),
        _may(7, "deleted_data_files_count", INT),
        _may(15, "added_delete_files_count", INT),
        _may(16, "existing_delete_files_count", INT),
        _may(17, "deleted_delete_files_count", INT),
        _must(8, "partition_summaries", ListType(9, _SUMMARY, element_required=True)),
    )
)
_COUNTED = (
    _must(2, "record_count", LONG),
    _must(3, "file_count", INT),
    _must(11, "total_data_file_size_in_bytes", LONG),
    _must(5, "position_delete_record_count", LONG),
    _must(6, "position_delete_file_count", INT),
    _must(7, "equality_delete_record_count", LONG),
    _must(8, "equality_delete_file_count", INT),
    _may(9, "last_updated_at", INSTANT),
    _may(10, "last_updated_snapshot_id", LONG),
)
_COUNTS = _map(117, INT, 118, LONG), _map(119, INT, 120, LONG), _map(121, INT, 122, LONG)
_FILE_BEFORE_PARTITION = (
    _must(134, "content", INT),
    _must(100, "file_path", TEXT),
    _must(101, "file_format", TEXT),
    _must(141, "spec_id", INT),
)
_FILE_BEHIND_PARTITION = (
    _must(103, "record_count", LONG),
    _must(104, "file_size_in_bytes", LONG),
    _may(108, "column_sizes", _COUNTS[0]),
    _may(109, "value_counts", _COUNTS[1]),
    _may(110, "null_value_counts", _COUNTS[2]),
    _may(137, "nan_value_counts", _map(138, INT, 139, LONG)),
    _may(125, "lower_bounds", _map(126, INT, 127, BYTES)),
    _may(128, "upper_bounds", _map(129, INT, 130, BYTES)),
    _may(131, "key_metadata", BYTES),
    _may(132, "split_offsets", ListType(133, LONG, element_required=True)),
    _may(135, "equality_ids", ListType(136, INT, element_required=True)),
    _may(140, "sort_order_id", INT),
    _may(142, "first_row_id", LONG),
    _may(143, "referenced_data_file", TEXT),
    _may(144, "content_offset", LONG),
    _may(145, "content_size_in_bytes", LONG),
)
_ENTRY = (
    _must(0, "status", INT),
    _may(1, "snapshot_id", LONG),
    _may(3, "sequence_number", LONG),
    _may(4, "file_sequence_number", LONG),
)
_DATA_FILE_ID, _PARTITION_ID = 2, 102


def metadata_schema(kind: str, metadata: TableMetadata) -> Schema:
    """Return the columns of a metadata table, one of `names.METADATA_TABLES`.

    A table that never was partitioned has no column `partition`, and its `partitions` no `spec_id`.
    Raises `Unsupported` for a table whose specs contradict each other, as `partition_column` does.
    """
    match kind:
        case "snapshots":
            return SNAPSHOTS
        case "history":
            return HISTORY
        case "refs":
            return REFS
        case "manifests":
            return MANIFESTS
        case "partitions":
            partition = _partition(metadata, field_id=1)
            spec_id = _must(4, "spec_id", INT)
            return Schema((*partition, spec_id, *_COUNTED) if partition else _COUNTED)
        case "files":
            return Schema((*_file(metadata), readable_metrics_field(metadata)))
        case "entries":
            data_file = _must(_DATA_FILE_ID, "data_file", StructType(_file(metadata)))
            return Schema((*_ENTRY, data_file, readable_metrics_field(metadata)))
        case _:
            raise ValueError(f"there is no metadata table {kind!r}")


def _file(metadata: TableMetadata) -> tuple[NestedField, ...]:
    partition = _partition(metadata, _PARTITION_ID)
    return (*_FILE_BEFORE_PARTITION, *partition, *_FILE_BEHIND_PARTITION)


def _partition(metadata: TableMetadata, field_id: int) -> tuple[NestedField, ...]:
    """Return the column of partition tuples, if any spec has a field: no engine knows a struct
    without one."""
    type_ = partition_column(metadata).type
    assert isinstance(type_, StructType)
    return (_must(field_id, "partition", type_),) if type_.fields else ()
