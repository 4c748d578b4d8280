from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from floeberg.protocol.errors import CorruptDeletes, CorruptManifest, Unsupported
from floeberg.protocol.files import (
    Content,
    DataFile,
    DeleteFile,
    FieldSummary,
    FileFormat,
    ManifestContent,
    ManifestFile,
)
from floeberg.protocol.manifests import (
    EntryStatus,
    decode_deleted,
    describe_manifest,
    read_deleted_entries,
    read_manifest,
    read_manifest_list,
)
from tests.support.avro_container import container

EXISTING, ADDED, DELETED = 0, 1, 2


def field(name: str, field_id: int, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "field-id": field_id}


def optional(name: str, field_id: int, type_: Any) -> dict[str, Any]:
    return field(name, field_id, ["null", type_])


def map_of(key_id: int, value_id: int, value: str) -> dict[str, Any]:
    entry = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [field("key", key_id, "int"), field("value", value_id, value)],
    }
    return {"type": "array", "logicalType": "map", "items": entry}


def record(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


DATA_FILE_V2 = [
    field("content", 134, "int"),
    field("file_path", 100, "string"),
    field("file_format", 101, "string"),
    field("record_count", 103, "long"),
    field("file_size_in_bytes", 104, "long"),
]
MORE = [
    optional("column_sizes", 108, map_of(117, 118, "long")),
    optional("lower_bounds", 125, map_of(126, 127, "bytes")),
    optional("split_offsets", 132, {"type": "array", "items": "long", "element-id": 133}),
    optional("equality_ids", 135, {"type": "array", "items": "int", "element-id": 136}),
    optional("first_row_id", 142, "long"),
    optional("referenced_data_file", 143, "string"),
    optional("content_offset", 144, "long"),
    optional("content_size_in_bytes", 145, "long"),
]
ENTRY_V2 = [
    field("status", 0, "int"),
    optional("snapshot_id", 1, "long"),
    optional("sequence_number", 3, "long"),
    optional("file_sequence_number", 4, "long"),
]


def entry_schema(
    partition: list[dict[str, Any]] | None = None,
    entry: list[dict[str, Any]] | None = None,
    data_file: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    fields = [*(data_file or [*DATA_FILE_V2, *MORE])]
    fields.append(field("partition", 102, record("r102", partition or [])))
    head = ENTRY_V2 if entry is None else entry
    return record("manifest_entry", [*head, field("data_file", 2, record("r2", fields))])


def data_file(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "content": 0,
        "file_path": f"s3://b/{number}.parquet",
        "file_format": "PARQUET",
        "record_count": 10,
        "file_size_in_bytes": 1000,
        "partition": {},
        **fields,
    }


def entry(number: int = 0, status: int = ADDED, **fields: Any) -> dict[str, Any]:
    inherited = {"snapshot_id": None, "sequence_number": None, "file_sequence_number": None}
    own = {k: fields.pop(k) for k in inherited if k in fields}
    return {
        "status": status,
        **inherited,
        **own,
        "data_file": data_file(number, **fields),
    }


def manifest_of(raw: bytes, **facts: Any) -> ManifestFile:
    given = {"sequence_number": 7, "added_snapshot_id": 70, **facts}
    return ManifestFile("s3://b/m.avro", len(raw), 3, **given)


def read(records: list[dict[str, Any]], schema: Any = None, **facts: Any) -> list[Any]:
    raw = container(schema or entry_schema(), records)
    return [e.file for e in read_manifest(raw, manifest_of(raw, **facts))]


# --- what entries say -----------------------------------------------------------------------------


def test_a_data_file_has_all_that_its_entry_says():
    own = entry(
        split_offsets=[4, 500],
        column_sizes=[{"key": 1, "value": 100}],
        lower_bounds=[{"key": 1, "value": b"\x01"}],
    )

    (file,) = read([own])

    assert isinstance(file, DataFile)
    assert file.location == "s3://b/0.parquet"
    assert file.format is FileFormat.PARQUET
    assert (file.record_count, file.size_bytes, file.spec_id) == (10, 1000, 3)
    assert file.split_offsets == (4, 500)
    assert file.metrics.column_sizes == {1: 100}
    assert file.metrics.lower_bounds == {1: b"\x01"}
    assert file.metrics.value_counts == {}


def test_a_deletion_vector_has_its_place():
    own = entry(
        content=1,
        file_format="puffin",
        referenced_data_file="s3://b/1.parquet",
        content_offset=4,
        content_size_in_bytes=40,
    )

    (file,) = read([own], content=ManifestContent.DELETES)

    assert isinstance(file, DeleteFile)
    assert file.is_deletion_vector
    assert file.content is Content.POSITION_DELETES
    assert (file.referenced_data_file, file.content_offset) == ("s3://b/1.parquet", 4)
    assert file.data_sequence_number == 7


def test_deleted_entries_are_left_out():
    files = read([entry(0), entry(1, DELETED), entry(2, EXISTING, sequence_number=1)])

    assert [f.location for f in files] == ["s3://b/0.parquet", "s3://b/2.parquet"]


def test_deleted_entries_are_read_apart():
    listed = [
        entry(0),
        entry(1, DELETED, sequence_number=4),
        entry(2, EXISTING, sequence_number=1),
        entry(3, DELETED, sequence_number=2),
    ]
    raw = container(entry_schema(), listed)
    manifest = ManifestFile("m.avro", len(raw), 0, sequence_number=9, first_row_id=100)

    found = read_deleted_entries(raw, manifest)

    assert [e.status for e in found] == [EntryStatus.DELETED] * 2
    assert [e.file.location for e in found] == ["s3://b/1.parquet", "s3://b/3.parquet"]
    assert [e.file.data_sequence_number for e in found] == [4, 2]
    assert all(isinstance(e.file, DataFile) and e.file.first_row_id is None for e in found)
    segment = decode_deleted(raw, manifest)
    assert segment.entries() == found


@pytest.mark.parametrize(
    ("own", "content", "error"),
    [
        (entry(content=1), ManifestContent.DATA, CorruptManifest),
        (entry(content=0), ManifestContent.DELETES, CorruptManifest),
        (entry(content=3), ManifestContent.DATA, CorruptManifest),
        (entry(status=5), ManifestContent.DATA, CorruptManifest),
        (entry(file_format="lance"), ManifestContent.DATA, Unsupported),
        (entry(content=2), ManifestContent.DELETES, CorruptDeletes),
        (entry(content=1, file_format="puffin"), ManifestContent.DELETES, CorruptDeletes),
    ],
)
def test_entries_that_cannot_be_are_refused(own, content, error):
    with pytest.raises(error):
        read([own], content=content)


def test_a_missing_required_field_is_named_by_id():
    without_path = [f for f in DATA_FILE_V2 if f["field-id"] != 100]

    with pytest.raises(CorruptManifest, match="field 100"):
        read([entry()], entry_schema(data_file=without_path))


def test_a_field_of_another_type_is_refused():
    odd = [field("file_path", 100, "long") if f["field-id"] == 100 else f for f in DATA_FILE_V2]

    with pytest.raises(CorruptManifest, match="field 100"):
        read([entry(file_path=5)], entry_schema(data_file=odd))


def test_a_manifest_shorter_than_its_list_says_is_refused():
    raw = container(entry_schema(), [entry(i) for i in range(4)], records_per_block=2)
    manifest = manifest_of(raw)
    whole_blocks = len(container(entry_schema(), [entry(0), entry(1)]))

    with pytest.raises(CorruptManifest, match=r"manifest s3://b/m\.avro has"):
        read_manifest(raw[:whole_blocks], manifest)


def test_a_wrong_length_is_passed_over_where_the_counts_bear_the_file_out():
    """BigQuery and hand-edited tables state lengths that are too long."""
    raw = container(entry_schema(), [entry(0), entry(1, status=DELETED)])
    stated = manifest_of(raw, added_files_count=1, existing_files_count=0)
    too_long = replace(stated, length=len(raw) + 46)

    assert len(read_manifest(raw, too_long)) == 1

    with pytest.raises(CorruptManifest, match="1 live files"):
        read_manifest(raw, replace(too_long, added_files_count=2))


# --- inheritance ----------------------------------------------------------------------------------


def test_an_added_entry_inherits_snapshot_and_sequence_numbers():
    raw = container(entry_schema(), [entry()])

    (found,) = read_manifest(raw, manifest_of(raw))

    assert (found.status, found.snapshot_id) == (EntryStatus.ADDED, 70)
    assert isinstance(found.file, DataFile)
    assert (found.file.data_sequence_number, found.file.file_sequence_number) == (7, 7)


def test_numbers_that_an_entry_states_stay():
    own = entry(snapshot_id=1, sequence_number=2, file_sequence_number=3)
    raw = container(entry_schema(), [own])

    (found,) = read_manifest(raw, manifest_of(raw))

    assert found.snapshot_id == 1
    assert isinstance(found.file, DataFile)
    assert (found.file.data_sequence_number, found.file.file_sequence_number) == (2, 3)


def test_zero_is_a_sequence_number():
    assert read([entry(sequence_number=0)])[0].data_sequence_number == 0


def test_an_existing_entry_inherits_no_sequence_number():
    with pytest.raises(CorruptManifest, match="EXISTING and has no sequence number"):
        read([entry(status=EXISTING)])


def test_an_existing_entry_without_a_file_sequence_number_is_read():
    (file,) = read([entry(status=EXISTING, sequence_number=2)])

    assert (file.data_sequence_number, file.file_sequence_number) == (2, None)


@pytest.mark.parametrize("status", [EXISTING, ADDED])
@pytest.mark.parametrize("header", [{"format-version": "1"}, {}])
def test_version_1_has_sequence_number_0(status, header):
    v1 = entry_schema(
        entry=[field("status", 0, "int"), field("snapshot_id", 1, "long")],
        data_file=[f for f in DATA_FILE_V2 if f["field-id"] != 134],
    )
    raw = container(v1, [entry(status=status, snapshot_id=5)], metadata=header)

    (found,) = read_manifest(raw, manifest_of(raw, sequence_number=0))

    assert found.file.data_sequence_number == 0


def test_a_v1_manifest_has_number_0_whatever_a_later_list_says():
    v1 = entry_schema(entry=[field("status", 0, "int"), field("snapshot_id", 1, "long")])
    raw = container(v1, [entry(snapshot_id=5)], metadata={"format-version": "1"})

    assert read_manifest(raw, manifest_of(raw))[0].file.data_sequence_number == 0


def test_an_absent_column_of_version_2_is_inherited_as_null_is():
    schema = entry_schema(entry=[field("status", 0, "int")])
    raw = container(schema, [entry()], metadata={"format-version": "2"})

    assert read_manifest(raw, manifest_of(raw))[0].file.data_sequence_number == 7


def test_row_ids_run_over_live_entries_that_lack_one():
    files = read(
        [
            entry(0, EXISTING, sequence_number=1, first_row_id=800, record_count=25),
            entry(1, record_count=50),
            entry(2, DELETED, record_count=1000),
            entry(3, EXISTING, sequence_number=1, record_count=5),
            entry(4, record_count=1),
        ],
        first_row_id=1000,
    )

    assert [f.first_row_id for f in files] == [800, 1000, 1050, 1055]


def test_without_a_manifest_row_id_there_is_none():
    files = read([entry(0), entry(1, first_row_id=800)], first_row_id=None)

    assert [f.first_row_id for f in files] == [None, None]


# --- partitions -----------------------------------------------------------------------------------


def partition_of(
    type_: Any, value: Any, header: Mapping[str, str] | None = None
) -> Mapping[int, Any]:
    schema = entry_schema([optional("p", 1000, type_)])
    raw = container(schema, [entry(partition={"p": value})], metadata=header)
    partition: Mapping[int, Any] = read_manifest(raw, manifest_of(raw))[0].file.partition
    return partition


DECIMAL = {
    "type": "fixed",
    "name": "d",
    "size": 4,
    "logicalType": "decimal",
    "precision": 9,
    "scale": 2,
}
UUID_VALUE = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
MOMENT = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("type_", "written", "read_"),
    [
        ("int", 5, 5),
        ("int", None, None),
        ("string", "a=b", "a=b"),
        ("bytes", b"\x00\xff", b"\x00\xff"),
        ({"type": "int", "logicalType": "date"}, datetime.date(1969, 12, 31), -1),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            MOMENT,
            1704067200000000,
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            MOMENT,
            1704067200000000,
        ),
        ({"type": "long", "logicalType": "timestamp-nanos"}, 5, 5),
        ({"type": "long", "logicalType": "time-micros"}, datetime.time(0, 0, 1), 1000000),
        (DECIMAL, Decimal("-12.30"), Decimal("-12.30")),
        (
            {"type": "fixed", "name": "u", "size": 16},
            UUID_VALUE.bytes,
            UUID_VALUE.bytes,
        ),
        ({"type": "string", "logicalType": "uuid"}, UUID_VALUE, UUID_VALUE.bytes),
    ],
)
def test_partition_values_have_icebergs_form(type_, written, read_):
    assert partition_of(type_, written) == {1000: read_}


def test_a_decimal_partition_keeps_the_scale_of_its_type():
    value = partition_of(DECIMAL, Decimal("12.30"))[1000]

    assert value.as_tuple().exponent == -2


# --- manifest lists -------------------------------------------------------------------------------

SUMMARY = record(
    "r508",
    [
        field("contains_null", 509, "boolean"),
        optional("contains_nan", 518, "boolean"),
        optional("lower_bound", 510, "bytes"),
        optional("upper_bound", 511, "bytes"),
    ],
)
LIST_V2 = [
    field("manifest_path", 500, "string"),
    field("manifest_length", 501, "long"),
    field("partition_spec_id", 502, "int"),
    field("content", 517, "int"),
    field("sequence_number", 515, "long"),
    field("min_sequence_number", 516, "long"),
    field("added_snapshot_id", 503, "long"),
    field("added_files_count", 504, "int"),
    optional("partitions", 507, {"type": "array", "items": SUMMARY, "element-id": 508}),
    optional("first_row_id", 520, "long"),
]
LINE = {
    "manifest_path": "s3://b/m.avro",
    "manifest_length": 100,
    "partition_spec_id": 2,
    "content": 0,
    "sequence_number": 9,
    "min_sequence_number": 4,
    "added_snapshot_id": 90,
    "added_files_count": 3,
    "partitions": [{"contains_null": True, "lower_bound": b"a", "upper_bound": None}],
    "first_row_id": 1000,
}


def test_a_manifest_list_is_read_in_order():
    lines = [LINE, {**LINE, "manifest_path": "s3://b/n.avro", "content": 1}]

    first, second = read_manifest_list(container(record("l", LIST_V2), lines), "s3://b/l.avro")

    assert first == ManifestFile(
        "s3://b/m.avro",
        100,
        2,
        sequence_number=9,
        min_sequence_number=4,
        added_snapshot_id=90,
        added_files_count=3,
        partitions=(FieldSummary(True, None, b"a", None),),
        first_row_id=1000,
    )
    assert second.content is ManifestContent.DELETES
    assert second.first_row_id is None  # deletes have no rows of their own


def test_a_v1_list_with_old_names_is_read_by_id():
    v1 = [
        field("manifest_path", 500, "string"),
        field("manifest_length", 501, "long"),
        field("partition_spec_id", 502, "int"),
        optional("added_snapshot_id", 503, "long"),
        optional("added_data_files_count", 504, "int"),
    ]
    line = {**LINE, "added_data_files_count": 3}

    (found,) = read_manifest_list(container(record("l", v1), [line]), "s3://b/l.avro")

    assert found.content is ManifestContent.DATA
    assert (found.sequence_number, found.min_sequence_number) == (0, 0)
    assert (found.added_files_count, found.existing_files_count) == (3, None)
    assert found.partitions == ()


def test_a_list_whose_sequence_numbers_contradict_is_refused():
    line = {**LINE, "sequence_number": 3}

    with pytest.raises(CorruptManifest, match="sequence number 3 has files of 4 and later"):
        read_manifest_list(container(record("l", LIST_V2), [line]), "s3://b/l.avro")


def test_a_damaged_list_is_named_with_its_role():
    with pytest.raises(CorruptManifest, match=r"manifest list s3://b/l\.avro"):
        read_manifest_list(b"garbled", "s3://b/l.avro")


def test_a_manifest_without_header_facts_is_what_the_list_says():
    manifest = ManifestFile("s3://b/m.avro", 0, 4, ManifestContent.DELETES)

    assert read_manifest(container(entry_schema(), []), manifest) == []


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"partition-spec-id": "3"}, "partition-spec-id '3', and the manifest list '4'"),
        ({"content": "data"}, "content 'data', and the manifest list 'deletes'"),
    ],
)
def test_a_manifest_that_contradicts_the_list_is_refused(header, message):
    manifest = ManifestFile("s3://b/m.avro", 0, 4, ManifestContent.DELETES)

    with pytest.raises(CorruptManifest, match=message):
        read_manifest(container(entry_schema(), [], metadata=header), manifest)


def test_a_manifest_is_described_by_its_own_header():
    header = {"partition-spec-id": "4", "content": "deletes"}
    raw = container(entry_schema(), [], metadata=header)

    found = describe_manifest(raw, "s3://b/m.avro")

    assert found == ManifestFile("s3://b/m.avro", len(raw), 4, ManifestContent.DELETES)


def test_an_old_header_means_the_first_spec_and_data():
    found = describe_manifest(container(entry_schema(), []), "s3://b/m.avro")

    assert (found.spec_id, found.content) == (0, ManifestContent.DATA)
