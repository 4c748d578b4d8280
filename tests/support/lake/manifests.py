"""Manifests and manifest lists: their fields, and how to write and read them back.

Spec: "Manifests", "Manifest Lists".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.lake.avro import avro_value, read_avro, record_schema, to_avro
from tests.support.lake.partitions import result_type, source_type
from tests.support.lake.schemas import Json
from tests.support.lake.values import Plain, lower_bound, plain, to_bytes, upper_bound

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
EXISTING, ADDED, DELETED = 0, 1, 2


@dataclass(frozen=True)
class Metrics:
    """Statistics by field id; an empty map is written as null."""

    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class WrittenFile:
    """A data or delete file that stands on disk, as a manifest will describe it.

    `location` is what manifests say. `partition` maps partition field ids to plain values.
    """

    location: str
    content: int
    format: str
    record_count: int
    size_bytes: int
    spec_id: int
    partition: Mapping[int, Plain] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    split_offsets: tuple[int, ...] = ()
    equality_ids: tuple[int, ...] = ()
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_bytes: int | None = None
    sort_order_id: int | None = None
    key_metadata: bytes | None = None

    def __hash__(self) -> int:  # so that it can be a key in `delete_positions`
        return hash(self.location)


@dataclass(frozen=True)
class Entry:
    """One line of a manifest. Numbers that are None are inherited by the reader."""

    file: WrittenFile
    status: int = ADDED
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None
    first_row_id: int | None = None

    @property
    def is_live(self) -> bool:
        return self.status != DELETED


@dataclass(frozen=True)
class Spec:
    """A partition spec with the types that its values have."""

    spec_id: int
    fields: Sequence[Json]
    types: Mapping[int, Json]

    @classmethod
    def of(cls, metadata: Json, spec_id: int) -> Spec:
        raw = next(s for s in metadata["partition-specs"] if s["spec-id"] == spec_id)
        types: dict[int, Json] = {}
        for f in raw["fields"]:
            source = source_type(
                metadata["schemas"], f.get("source-id", (f.get("source-ids") or [0])[0])
            )
            types[f["field-id"]] = result_type(f["transform"], source)
        return cls(spec_id, raw["fields"], types)

    @property
    def partition_fields(self) -> list[Json]:
        return [_optional(f["field-id"], f["name"], self.types[f["field-id"]]) for f in self.fields]


def _required(field_id: int, name: str, type_: Json) -> Json:
    return {"id": field_id, "name": name, "required": True, "type": type_}


def _optional(field_id: int, name: str, type_: Json) -> Json:
    return {"id": field_id, "name": name, "required": False, "type": type_}


def _map(key_id: int, value_id: int, value: str) -> Json:
    return {
        "type": "map",
        "key-id": key_id,
        "key": "int",
        "value-id": value_id,
        "value": value,
        "value-required": True,
    }


def _list(element_id: int, element: Json) -> Json:
    return {
        "type": "list",
        "element-id": element_id,
        "element": element,
        "element-required": True,
    }


def _entry_fields(version: int, spec: Spec) -> list[Json]:
    data_file = [
        _required(100, "file_path", "string"),
        _required(101, "file_format", "string"),
        _required(102, "partition", {"type": "struct", "fields": spec.partition_fields}),
        _required(103, "record_count", "long"),
        _required(104, "file_size_in_bytes", "long"),
    ]
    if version == 1:
        data_file.append(_required(105, "block_size_in_bytes", "long"))
    else:
        data_file.insert(0, _required(134, "content", "int"))
    data_file += [
        _optional(108, "column_sizes", _map(117, 118, "long")),
        _optional(109, "value_counts", _map(119, 120, "long")),
        _optional(110, "null_value_counts", _map(121, 122, "long")),
        _optional(137, "nan_value_counts", _map(138, 139, "long")),
        _optional(125, "lower_bounds", _map(126, 127, "binary")),
        _optional(128, "upper_bounds", _map(129, 130, "binary")),
        _optional(131, "key_metadata", "binary"),
        _optional(132, "split_offsets", _list(133, "long")),
    ]
    if version >= 2:
        data_file.append(_optional(135, "equality_ids", _list(136, "int")))
    data_file.append(_optional(140, "sort_order_id", "int"))
    if version >= 2:
        data_file.append(_optional(143, "referenced_data_file", "string"))
    if version >= 3:
        data_file += [
            _optional(142, "first_row_id", "long"),
            _optional(144, "content_offset", "long"),
            _optional(145, "content_size_in_bytes", "long"),
        ]
    entry = [_required(0, "status", "int")]
    if version == 1:
        entry.append(_required(1, "snapshot_id", "long"))
    else:
        entry += [
            _optional(1, "snapshot_id", "long"),
            _optional(3, "sequence_number", "long"),
            _optional(4, "file_sequence_number", "long"),
        ]
    return [*entry, _required(2, "data_file", {"type": "struct", "fields": data_file})]


def manifest_bytes(
    version: int,
    schema: Json,
    spec: Spec,
    entries: Sequence[Entry],
    content: Literal["data", "deletes"],
    codec: str = "deflate",
) -> bytes:
    """Return the Avro file of a manifest."""
    metadata = {
        "schema": json.dumps(schema),
        "schema-id": str(schema.get("schema-id", 0)),
        "partition-spec": json.dumps(list(spec.fields)),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(version),
    }
    if version >= 2:
        metadata["content"] = content
    fields = _entry_fields(version, spec)
    struct = {"type": "struct", "fields": fields}
    records = [avro_value(struct, _entry_record(e, spec)) for e in entries]
    return to_avro(record_schema(fields, "manifest_entry"), records, codec=codec, metadata=metadata)


def _entry_record(entry: Entry, spec: Spec) -> dict[str, Plain]:
    file = entry.file
    return {
        "status": entry.status,
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "data_file": {
            "content": file.content,
            "file_path": file.location,
            "file_format": file.format,
            "partition": {f["name"]: file.partition.get(f["field-id"]) for f in spec.fields},
            "record_count": file.record_count,
            "file_size_in_bytes": file.size_bytes,
            "block_size_in_bytes": 64 << 20,
            "column_sizes": _pairs(file.metrics.column_sizes),
            "value_counts": _pairs(file.metrics.value_counts),
            "null_value_counts": _pairs(file.metrics.null_value_counts),
            "nan_value_counts": _pairs(file.metrics.nan_value_counts),
            "lower_bounds": _pairs(file.metrics.lower_bounds),
            "upper_bounds": _pairs(file.metrics.upper_bounds),
            "key_metadata": file.key_metadata,
            "split_offsets": list(file.split_offsets) or None,
            "equality_ids": list(file.equality_ids) or None,
            "sort_order_id": file.sort_order_id,
            "first_row_id": entry.first_row_id,
            "referenced_data_file": file.referenced_data_file,
            "content_offset": file.content_offset,
            "content_size_in_bytes": file.content_size_bytes,
        },
    }


def _pairs(by_id: Mapping[int, Any]) -> list[tuple[int, Any]] | None:
    return sorted(by_id.items()) or None


def read_manifest(raw: bytes, line: Mapping[str, Any], spec: Spec) -> list[Entry]:
    """Return the entries of a manifest that this package or PyIceberg wrote, after inheritance.

    `line` is its line of the manifest list, by the spec's names.
    """
    _, _, records = read_avro(raw)
    next_row_id = line.get("first_row_id")
    entries = []
    for record in records:
        raw_file = record["data_file"]
        inherits = record["status"] == ADDED
        sequence_number = record.get("sequence_number")
        file_sequence_number = record.get("file_sequence_number")
        if inherits and sequence_number is None:
            sequence_number = line["sequence_number"]
        if inherits and file_sequence_number is None:
            file_sequence_number = line["sequence_number"]
        first_row_id = raw_file.get("first_row_id")
        if first_row_id is None and next_row_id is not None and record["status"] != DELETED:
            first_row_id = next_row_id
            next_row_id += raw_file["record_count"]
        entries.append(
            Entry(
                _file_of(raw_file, spec),
                record["status"],
                record["snapshot_id"]
                if record["snapshot_id"] is not None
                else line["added_snapshot_id"],
                sequence_number if sequence_number is not None else 0,
                file_sequence_number,
                first_row_id,
            )
        )
    return entries


def _file_of(raw: Mapping[str, Any], spec: Spec) -> WrittenFile:
    values = list(raw["partition"].values())
    metrics = Metrics(
        **{
            name: {e["key"]: e["value"] for e in raw.get(name) or ()}
            for name in Metrics.__dataclass_fields__
        }
    )
    return WrittenFile(
        raw["file_path"],
        raw.get("content", DATA),
        raw["file_format"],
        raw["record_count"],
        raw["file_size_in_bytes"],
        spec.spec_id,
        # fastavro has decoded dates and timestamps
        {
            f["field-id"]: plain(spec.types[f["field-id"]], v)
            for f, v in zip(spec.fields, values, strict=True)
        },
        metrics,
        tuple(raw.get("split_offsets") or ()),
        tuple(raw.get("equality_ids") or ()),
        raw.get("referenced_data_file"),
        raw.get("content_offset"),
        raw.get("content_size_in_bytes"),
        raw.get("sort_order_id"),
        raw.get("key_metadata"),
    )


# --- manifest lists -------------------------------------------------------------------------------

_SUMMARY: Json = {
    "type": "struct",
    "fields": [
        _required(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "binary"),
        _optional(511, "upper_bound", "binary"),
    ],
}


def _list_fields(version: int) -> list[Json]:
    wanted = _required if version >= 2 else _optional
    fields = [
        _required(500, "manifest_path", "string"),
        _required(501, "manifest_length", "long"),
        _required(502, "partition_spec_id", "int"),
    ]
    if version >= 2:
        fields += [
            _required(517, "content", "int"),
            _required(515, "sequence_number", "long"),
            _required(516, "min_sequence_number", "long"),
        ]
    fields += [
        _required(503, "added_snapshot_id", "long"),
        wanted(504, "added_files_count", "int"),
        wanted(505, "existing_files_count", "int"),
        wanted(506, "deleted_files_count", "int"),
        wanted(512, "added_rows_count", "long"),
        wanted(513, "existing_rows_count", "long"),
        wanted(514, "deleted_rows_count", "long"),
        _optional(507, "partitions", _list(508, _SUMMARY)),
        _optional(519, "key_metadata", "binary"),
    ]
    if version >= 3:
        fields.append(_optional(520, "first_row_id", "long"))
    return fields


def manifest_list_bytes(
    version: int,
    lines: Sequence[Mapping[str, Any]],
    metadata: Mapping[str, str],
    codec: str = "deflate",
) -> bytes:
    """Return the Avro file of a manifest list; `lines` go by the spec's names."""
    fields = _list_fields(version)
    struct = {"type": "struct", "fields": fields}
    records = [avro_value(struct, dict(line)) for line in lines]
    return to_avro(record_schema(fields, "manifest_file"), records, codec=codec, metadata=metadata)


def read_manifest_list(raw: bytes) -> list[dict[str, Any]]:
    """Return the lines of a manifest list by the spec's names, with v1's absent numbers as 0."""
    schema, _, records = read_avro(raw)
    names = {f["name"]: f["field-id"] for f in schema["fields"]}
    wanted = {f["id"]: f["name"] for f in _list_fields(3)}
    lines = []
    for record in records:
        line = {wanted[names[k]]: v for k, v in record.items() if names.get(k) in wanted}
        defaults = {"content": 0, "sequence_number": 0, "min_sequence_number": 0}
        lines.append({**defaults, **line})
    return lines


def line_of(
    location: str,
    length: int,
    content: int,
    spec: Spec,
    entries: Sequence[Entry],
    snapshot_id: int,
    sequence_number: int,
) -> dict[str, Any]:
    """Return the manifest list's line for a manifest that a commit writes."""

    def count(status: int) -> int:
        return sum(e.status == status for e in entries)

    def rows(status: int) -> int:
        return sum(e.file.record_count for e in entries if e.status == status)

    numbers = [
        sequence_number if e.sequence_number is None else e.sequence_number
        for e in entries
        if e.is_live
    ]
    return {
        "manifest_path": location,
        "manifest_length": length,
        "partition_spec_id": spec.spec_id,
        "content": content,
        "sequence_number": sequence_number,
        "min_sequence_number": min(numbers, default=sequence_number),
        "added_snapshot_id": snapshot_id,
        "added_files_count": count(ADDED),
        "existing_files_count": count(EXISTING),
        "deleted_files_count": count(DELETED),
        "added_rows_count": rows(ADDED),
        "existing_rows_count": rows(EXISTING),
        "deleted_rows_count": rows(DELETED),
        "partitions": [_summary(f, spec, entries) for f in spec.fields],
        "key_metadata": None,
        "first_row_id": None,
    }


def _summary(partition_field: Json, spec: Spec, entries: Sequence[Entry]) -> dict[str, Any]:
    type_ = spec.types[partition_field["field-id"]]
    values = [e.file.partition.get(partition_field["field-id"]) for e in entries]
    known = [v for v in values if v is not None and v == v]  # NaN isn't equal to itself
    return {
        "contains_null": None in values,
        "contains_nan": any(v is not None and v != v for v in values),
        "lower_bound": to_bytes(type_, lower_bound(known)) if known else None,
        "upper_bound": to_bytes(type_, upper_bound(known)) if known else None,
    }
