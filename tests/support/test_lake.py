"""PyIceberg opens what the fixture writer writes; what it can't read is checked in the metadata."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import struct
import uuid
import zlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent
from pyiceberg.table import StaticTable, Table
from pyiceberg.transforms import BucketTransform, TruncateTransform
from pyiceberg.types import IcebergType, IntegerType, StringType, UUIDType
from pyroaring import BitMap64

from tests.support.lake import (
    Column,
    FileLayout,
    TableWriter,
    list_of,
    map_of,
    required,
    schema,
)
from tests.support.lake import struct as struct_of
from tests.support.lake.partitions import apply

PEOPLE = schema({"id": required("long"), "name": "string"})
ROWS = [{"id": i, "name": f"n{i}"} for i in range(10)]

EVERYTHING = schema(
    {
        "id": required("long"),
        "b": "boolean",
        "i": "int",
        "f": "float",
        "d": "double",
        "small": "decimal(9,2)",
        "wide": "decimal(38,10)",
        "day": "date",
        "t": "time",
        "ts": "timestamp",
        "tz": "timestamptz",
        "s": "string",
        "u": "uuid",
        "fx": "fixed[4]",
        "bin": "binary",
        "st": struct_of({"a": required("int"), "u": "uuid", "deep": struct_of({"x": "string"})}),
        "l": list_of("int"),
        "ls": list_of(struct_of({"q": "uuid"})),
        "m": map_of("string", "double"),
        "mi": map_of("int", list_of("string")),
    }
)
FULL_ROW = {
    "id": 1,
    "b": True,
    "i": -2,
    "f": 1.5,
    "d": 2.5,
    "small": Decimal("1.20"),
    "wide": Decimal("-123.4567000000"),
    "day": dt.date(1969, 1, 1),
    "t": dt.time(1, 2, 3, 4),
    "ts": dt.datetime(1960, 1, 1, 5, 0, 0, 7),
    "tz": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    "s": "x" * 30,
    "u": uuid.UUID(int=5),
    "fx": b"abcd",
    "bin": b"\xff" * 20,
    "st": {"a": 1, "u": uuid.UUID(int=6), "deep": {"x": "y"}},
    "l": [1, None, 2],
    "ls": [{"q": uuid.UUID(int=9)}, None],
    "m": [("k", 1.0)],
    "mi": [(1, ["a"]), (2, None)],
}
NULL_ROW = {f["name"]: None for f in EVERYTHING["fields"]} | {"id": 2}
EMPTY_ROW = NULL_ROW | {"id": 3, "l": [], "ls": [], "m": [], "mi": []}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    opened_catalog = SqlCatalog("test", uri=f"sqlite:///{tmp_path}/catalog.db")
    opened_catalog.create_namespace("db")
    yield opened_catalog
    opened_catalog.close()


def opened(table: TableWriter) -> Table:
    return StaticTable.from_metadata(str(table.metadata_path))


def read(table: TableWriter, **scan: Any) -> list[dict[str, Any]]:
    return opened(table).scan(**scan).to_arrow().to_pylist()


def file_entries(table: TableWriter, content: DataFileContent) -> list[DataFile]:
    found = opened(table)
    snapshot = found.current_snapshot()
    assert snapshot is not None
    return [
        entry.data_file
        for manifest in snapshot.manifests(found.io)
        for entry in manifest.fetch_manifest_entry(found.io)
        if entry.data_file.content == content
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_what_was_appended(tmp_path: Path, version: int) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, format_version=version)

    table.append(ROWS[:6], layout=FileLayout(row_group_size=2))
    table.append(ROWS[6:])

    assert sorted(read(table), key=lambda r: int(r["id"])) == ROWS


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_type_reads_back_as_written(tmp_path: Path, version: int) -> None:
    table = TableWriter.create(tmp_path / "t", EVERYTHING, format_version=version)

    (file,) = table.append([FULL_ROW, NULL_ROW, EMPTY_ROW])

    assert pq.read_table(table.local(file.location)).to_pylist() == [FULL_ROW, NULL_ROW, EMPTY_ROW]
    # PyIceberg makes a null list of structs an empty one
    assert read(table) == [FULL_ROW, NULL_ROW | {"ls": []}, EMPTY_ROW]


def test_arrow_rows_are_cast_to_the_table(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)

    table.append(pa.table({"name": ["a", None], "id": pa.array([1, 2], pa.int32())}))

    assert read(table) == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


def test_rows_go_into_a_file_a_partition(tmp_path: Path) -> None:
    columns = schema({"id": required("long"), "day": "date", "name": "string"})
    spec = [("day", "month"), ("id", "bucket[4]"), ("name", "truncate[1]")]
    table = TableWriter.create(tmp_path / "t", columns, spec)
    rows = [
        {"id": i, "day": dt.date(1969, 11 + i % 2, 3), "name": None if i == 3 else f"n{i}"}
        for i in range(20)
    ]

    files = table.append(rows)

    assert len(files) == len({tuple(f.partition.items()) for f in files}) > 1
    assert {f.partition[1000] for f in files} == {-2, -1}
    found = read(table, row_filter="day < '1969-12-01'")
    assert sorted(r["id"] for r in found) == list(range(0, 20, 2))


@pytest.mark.parametrize(
    ("transform", "theirs", "type_", "their_type", "value"),
    [
        ("bucket[16]", BucketTransform(16), "string", StringType(), "iceberg ✓"),
        ("bucket[7]", BucketTransform(7), "int", IntegerType(), -34),
        ("bucket[9]", BucketTransform(9), "uuid", UUIDType(), uuid.UUID(int=77).bytes),
        ("truncate[10]", TruncateTransform(10), "int", IntegerType(), -1),
        ("truncate[3]", TruncateTransform(3), "string", StringType(), "✓✓✓✓"),
    ],
)
def test_transforms_agree_with_pyiceberg(
    transform: str, theirs: Any, type_: str, their_type: IcebergType, value: Any
) -> None:
    assert apply(transform, type_, value) == theirs.transform(their_type)(value)


@pytest.mark.parametrize("layout", [{}, {"delete_files": 3}, {"per_file": True}, {"sort": False}])
def test_pyiceberg_applies_position_deletes(tmp_path: Path, layout: dict[str, Any]) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)
    (first,) = table.append(ROWS[:6])
    (second,) = table.append(ROWS[6:])

    written = table.delete_positions({second: [3, 0], first: [5, 1, 2]}, **layout)

    assert sorted(r["id"] for r in read(table)) == [0, 3, 4, 7, 8]
    assert sum(f.record_count for f in written) == 5
    assert {f.referenced_data_file for f in written} <= {None, first.location, second.location}


def test_position_deletes_lie_in_the_partition_of_their_data(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, [("name", "identity")])
    files = table.append(ROWS[:3])

    written = table.delete_positions({f: [0] for f in files[:2]})

    assert [f.partition for f in written] == [f.partition for f in files[:2]]
    assert [r["id"] for r in read(table)] == [2]


def test_position_deletes_may_store_rows_and_any_kind_of_text(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)
    (file,) = table.append(ROWS)
    dictionary = pa.dictionary(pa.int32(), pa.string())

    (with_rows,) = table.delete_positions({file: [0]}, rows={file: [ROWS[0]]})
    (coded,) = table.delete_positions({file: [1]}, path_type=dictionary)

    stored = pq.read_table(table.local(with_rows.location))
    assert stored["row"].to_pylist() == [ROWS[0]]
    assert pq.read_table(table.local(coded.location))["pos"].to_pylist() == [1]
    assert [r["id"] for r in read(table)] == list(range(2, 10))


def test_equality_deletes_store_their_keys_and_nothing_else(tmp_path: Path) -> None:
    columns = schema({"id": required("long"), "who": struct_of({"name": "string", "age": "int"})})
    table = TableWriter.create(tmp_path / "t", columns, [("id", "bucket[2]")])
    table.append([{"id": 1, "who": {"name": "a", "age": 3}}])

    everywhere = table.delete_equal([{"id": 1}, {"id": 2}], ["id"])
    here = table.delete_equal([{"who": {"name": "a"}}], ["who.name"], partition={"id_bucket": 1})

    found = file_entries(table, DataFileContent.EQUALITY_DELETES)
    assert {e.file_path: list(e.equality_ids or ()) for e in found} == {
        everywhere.location: [1],
        here.location: [3],
    }
    assert pq.read_schema(table.local(everywhere.location)).names == ["id"]
    assert pq.read_table(table.local(here.location)).to_pylist() == [{"who": {"name": "a"}}]
    assert everywhere.spec_id != here.spec_id
    assert not opened(table).specs()[everywhere.spec_id].fields


def test_vectors_have_the_blob_of_the_puffin_spec(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, format_version=3)
    (first,) = table.append(ROWS[:6])
    (second,) = table.append(ROWS[6:])

    table.write_vectors({first: [0, 5], second: [2]})

    entries = file_entries(table, DataFileContent.POSITION_DELETES)
    assert len({e.file_path for e in entries}) == 1
    raw = table.local(entries[0].file_path).read_bytes()
    assert len(raw) == entries[0].file_size_in_bytes
    footer = json.loads(raw[raw.rindex(b"PFA1", 0, -4) + 4 : -12])
    assert len(footer["blobs"]) == 2
    for entry, blob in zip(table.entries(table.snapshot_id), footer["blobs"], strict=False):
        file = entry.file
        assert file.content_offset == blob["offset"]
        assert file.content_size_bytes == blob["length"]
        assert file.referenced_data_file == blob["properties"]["referenced-data-file"]
        assert file.record_count == int(blob["properties"]["cardinality"])
        content = raw[blob["offset"] : blob["offset"] + blob["length"]]
        assert struct.unpack(">i", content[:4])[0] == len(content) - 8
        assert content[4:8] == b"\xd1\xd3\x39\x64"
        assert struct.unpack(">I", content[-4:])[0] == zlib.crc32(content[4:-4])
        positions = [0, 5] if file.referenced_data_file == first.location else [2]
        assert list(BitMap64.deserialize(content[8:-4])) == positions


def test_a_later_vector_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, format_version=3)
    (first,) = table.append(ROWS[:6])
    (second,) = table.append(ROWS[6:])
    table.write_vectors({first: [0], second: [0]})

    (vector,) = table.write_vectors({first: [3]})

    live = {e.file.referenced_data_file: e.file for e in table.entries(table.snapshot_id)}
    assert live[first.location] == vector
    assert vector.record_count == 2
    assert live[second.location].record_count == 1
    assert sorted(r["id"] for r in read(table)) == [1, 2, 4, 5, 7, 8, 9]


def test_row_ids_follow_one_another(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, [("id", "bucket[2]")], format_version=3)
    table.append(ROWS)
    table.append(ROWS[:4])

    assert [s["first-row-id"] for s in table.metadata["snapshots"]] == [0, 10]
    assert [s["added-rows"] for s in table.metadata["snapshots"]] == [10, 4]
    assert table.metadata["next-row-id"] == 14
    ids = [
        e.first_row_id + n
        for e in table.entries(table.snapshot_id)
        if e.first_row_id is not None
        for n in range(e.file.record_count)
    ]
    assert sorted(ids) == list(range(14))


def test_a_removed_file_leaves_the_others_with_their_numbers(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, [("id", "bucket[2]")], format_version=3)
    gone, kept = table.append(ROWS)
    table.append(ROWS[:1])
    before = {e.file.location: e for e in table.entries(table.snapshot_id)}

    table.remove(gone)

    after = {e.file.location: e for e in table.entries(table.snapshot_id)}
    assert after.keys() == before.keys() - {gone.location}
    numbers = before[kept.location]
    assert after[kept.location].sequence_number == numbers.sequence_number == 1
    assert after[kept.location].first_row_id == numbers.first_row_id
    assert len(read(table)) == kept.record_count + 1


def test_refs_lead_to_their_snapshots(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)
    table.append(ROWS[:1])
    table.tag("first")
    table.append(ROWS[1:2])
    table.append(ROWS[2:3], branch="audit")
    with table.commit(branch=None) as staged:
        staged.append(ROWS[3:4])

    found = opened(table)

    def count(name: str | None) -> int:
        snapshot = found.snapshot_by_name(name) if name else found.current_snapshot()
        assert snapshot is not None
        return len(found.scan(snapshot_id=snapshot.snapshot_id).to_arrow())

    assert (count(None), count("first"), count("audit")) == (2, 1, 3)
    assert len(found.snapshots()) == 4
    assert len(found.history()) == 2


def test_old_files_read_under_the_evolved_schema(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", schema({"id": "int", "old": "string", "x": "int"}))
    table.append([{"id": 1, "old": "a", "x": 9}])
    table.rename_column("old", "new")
    table.promote_column("id", "long")
    table.drop_column("x")
    table.add_column("st", struct_of({"a": "int"}))
    table.add_column("st.b", "string")
    table.append([{"id": 2**40, "new": "b", "st": {"a": 1, "b": "c"}}])

    assert read(table) == [
        {"id": 2**40, "new": "b", "st": {"a": 1, "b": "c"}},
        {"id": 1, "new": "a", "st": None},
    ]
    assert table.metadata["last-column-id"] == 6


def test_an_evolved_spec_keeps_the_ids_of_its_fields(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, [("id", "bucket[2]")])
    table.append(ROWS[:4])

    table.evolve_spec([("name", "identity"), ("id", "bucket[2]")])
    table.append(ROWS[4:6])

    fields = table.metadata["partition-specs"][1]["fields"]
    assert [f["field-id"] for f in fields] == [1001, 1000]
    assert sorted(r["id"] for r in read(table, row_filter="name = 'n5'")) == [5]


def test_metrics_bound_what_the_file_holds(tmp_path: Path) -> None:
    columns = schema({"s": "string", "b": "binary", "f": "double", "st": struct_of({"i": "int"})})
    table = TableWriter.create(tmp_path / "t", columns)
    (file,) = table.append(
        [
            {"s": "b" * 20, "b": b"\xff" * 20, "f": float("nan"), "st": {"i": 3}},
            {"s": "a", "b": b"\x00", "f": 0.0, "st": None},
        ]
    )
    (bare,) = table.append([{"s": "a"}], layout=FileLayout(metrics="none"))

    metrics = file.metrics
    assert metrics.lower_bounds[1] == b"a"
    assert metrics.upper_bounds[1] == b"b" * 15 + b"c"
    assert 2 not in metrics.upper_bounds, "nothing of 16 bytes is above twenty times 0xff"
    assert (metrics.value_counts[3], metrics.nan_value_counts[3]) == (2, 1)
    assert struct.unpack("<d", metrics.lower_bounds[3])[0].hex() == "-0x0.0p+0"
    assert (metrics.null_value_counts[5], metrics.lower_bounds[5]) == (1, b"\x03\x00\x00\x00")
    assert from_bytes(StringType(), metrics.lower_bounds[1]) == "a"
    assert not bare.metrics.value_counts


def test_split_offsets_are_where_row_groups_start(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)

    (file,) = table.append(ROWS, layout=FileLayout(row_group_size=4))

    assert len(file.split_offsets) == 3
    assert file.split_offsets[0] == 4
    assert list(file.split_offsets) == sorted(file.split_offsets)


def test_files_without_ids_read_by_the_name_mapping(tmp_path: Path) -> None:
    mapping = [{"field-id": 1, "names": ["ident"]}, {"field-id": 2, "names": ["name"]}]
    table = TableWriter.create(
        tmp_path / "t",
        schema({"id": "long", "name": "string"}),
        properties={"schema.name-mapping.default": json.dumps(mapping)},
    )
    with table.commit() as commit:
        commit.append_arrow(pa.table({"ident": pa.array([1], pa.int64()), "name": ["a"]}))

    table.append([{"id": 2, "name": "b"}], layout=FileLayout(field_ids=False, omit=["id"]))

    assert pq.read_schema(table.local(table.files()[0].location)).names == ["name"]
    assert {r["name"] for r in read(table)} == {"a", "b"}


@pytest.mark.parametrize("suffix", [".gz.metadata.json", ".metadata.json.gz"])
def test_metadata_may_be_compressed_under_both_spellings(tmp_path: Path, suffix: str) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)
    table.metadata_suffix = suffix

    table.append(ROWS)

    assert table.metadata_path.name == f"v2{suffix}"
    assert json.loads(gzip.decompress(table.metadata_path.read_bytes())) == table.metadata
    assert TableWriter.open(tmp_path / "t").metadata == table.metadata


def test_v1_may_name_its_manifests_in_the_snapshot(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, format_version=1)

    with table.commit(inline_manifests=True) as commit:
        commit.append(ROWS)

    (snapshot,) = table.metadata["snapshots"]
    assert "manifest-list" not in snapshot
    assert [table.local(m).exists() for m in snapshot["manifests"]] == [True]


def test_a_table_at_another_location_is_written_here(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, location="s3://bucket/a b/t%20t")

    (file,) = table.append(ROWS)

    assert file.location.startswith("s3://bucket/a b/t%20t/data/")
    assert table.local(file.location).exists()
    assert table.files() == [file]


def test_the_same_calls_write_the_same_metadata(tmp_path: Path) -> None:
    written = []
    for name in ("a", "b"):
        table = TableWriter.create(tmp_path / name, PEOPLE, location="file:/same")
        table.append(ROWS)
        table.delete_equal([{"id": 3}], ["id"])
        written.append(table.metadata)

    assert written[0] == written[1]


def test_a_failed_commit_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)
    table.append(ROWS)
    before = table.metadata_path.read_bytes()

    with pytest.raises(KeyError, match="no live file"):
        table.remove("file:/elsewhere")

    assert table.metadata_path.read_bytes() == before


def test_entries_may_be_dealt_out_over_manifests(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, [("id", "identity")])
    table.entries_per_manifest = 4

    table.append(ROWS)

    assert [line["added_files_count"] for line in table.lines(table.snapshot_id)] == [4, 4, 2]
    assert len(read(table)) == 10


def test_a_table_of_pyiceberg_is_taken_over_whole(tmp_path: Path, catalog: SqlCatalog) -> None:
    theirs = catalog.create_table(
        "db.orders",
        pa.Table.from_pylist(ROWS).schema,
        properties={"format-version": "2"},
        location=f"file://{tmp_path}/warehouse/db/orders",
    )
    theirs.append(pa.Table.from_pylist(ROWS))
    theirs.append(pa.Table.from_pylist(ROWS[:2]))

    ours = TableWriter.open(tmp_path / "warehouse/db/orders")
    newest, oldest = ours.files()
    ours.delete_positions({oldest: [0], newest: [1]})
    ours.delete_equal([{"name": "n5"}], ["name"])

    found = opened(ours)
    assert found.metadata.table_uuid == theirs.metadata.table_uuid
    assert [s.snapshot_id for s in found.snapshots()][:2] == [
        s.snapshot_id for s in theirs.snapshots()
    ]
    without_keys = found.scan(snapshot_id=found.snapshots()[2].snapshot_id)
    assert {r["id"] for r in without_keys.to_arrow().to_pylist()} == set(range(10))
    assert len(without_keys.to_arrow()) == 10
    assert file_entries(ours, DataFileContent.EQUALITY_DELETES)[0].equality_ids == [2]


def test_defaults_and_lineage_stand_where_the_spec_puts_them(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, format_version=3)
    table.append(ROWS[:1])
    table.add_column("score", Column("int", initial_default=7, write_default=8))
    with table.commit() as commit:
        (file,) = commit.append([{"id": 1, "_row_id": 40, "score": 1}], stored_lineage=True)

    assert table.schema["fields"][2] == {
        "id": 3,
        "name": "score",
        "required": False,
        "type": "int",
        "initial-default": 7,
        "write-default": 8,
    }
    assert pq.read_table(table.local(file.location))["_row_id"].to_pylist() == [40]


def test_data_and_deletes_lie_in_manifests_of_their_own(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)
    with table.commit() as commit:
        (file,) = commit.append(ROWS)
        commit.delete_positions({file: [0]})

    found = opened(table)
    snapshot = found.current_snapshot()
    assert snapshot is not None
    assert [m.content for m in snapshot.manifests(found.io)] == [
        ManifestContent.DATA,
        ManifestContent.DELETES,
    ]
    assert len(read(table)) == 9
