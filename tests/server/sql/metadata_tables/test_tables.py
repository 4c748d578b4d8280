"""Metadata tables beside PyIceberg's own, and of what PyIceberg does not tell."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform, IdentityTransform

from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.errors import Cancelled, MissingFile
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.types import StructType
from floeberg.server.planning import PlanRun
from floeberg.server.sql.metadata_tables import metadata_schema, metadata_table
from floeberg.server.sql.names import METADATA_TABLES
from tests.support.lake import TableWriter, required, schema
from tests.support.metadata_tables import comparable, source_of, told
from tests.support.orders import write_orders
from tests.support.scans import RecordingStorage, scan_of

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("ts", pa.timestamp("us")),
        pa.field("region", pa.string()),
        pa.field("amount", pa.float64()),
        pa.field("small", pa.float32()),
        pa.field("day", pa.date32()),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("is_new", pa.bool_()),
        pa.field("tags", pa.list_(pa.string())),
    ]
)


def rows(start: int, stop: int) -> pa.Table:
    first = datetime.datetime(1969, 12, 30)
    listed: list[dict[str, Any]] = [
        {
            "id": i,
            "ts": None if i % 11 == 10 else first + datetime.timedelta(hours=7 * i),
            "region": ("eu", "us", "ünï", None)[i % 4],
            "amount": float("nan") if i % 13 == 12 else i / 4,
            "small": i / 2,
            "day": first.date() + datetime.timedelta(days=i),
            "price": None,
            "is_new": i % 2 == 0,
            "tags": ["a"] * (i % 3),
        }
        for i in range(start, stop)
    ]
    return pa.Table.from_pylist(listed, schema=COLUMNS)


def without_v3_columns(row: dict[str, Any]) -> dict[str, Any]:
    v3 = {"first_row_id", "referenced_data_file", "content_offset", "content_size_in_bytes"}
    return {k: v for k, v in row.items() if k not in v3}


@pytest.fixture(scope="module")
def catalogued(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table that PyIceberg wrote: its spec evolved, a file rewritten, a tag and a branch."""
    directory: Path = tmp_path_factory.mktemp("lake")
    catalog = SqlCatalog(
        "lake", uri=f"sqlite:///{directory}/catalog.db", warehouse=f"file://{directory}"
    )
    try:
        catalog.create_namespace("db")
        made = catalog.create_table("db.t", COLUMNS)
        made.append(rows(0, 20))
        with made.update_spec() as update:
            update.add_field("region", IdentityTransform(), "region")
            update.add_field("ts", DayTransform(), "ts_day")
        made.append(rows(20, 60))
        made.delete("id = 7")
        first = made.metadata.snapshots[0].snapshot_id
        made.manage_snapshots().create_tag(first, "v1", max_ref_age_ms=10**9).commit()
        made.manage_snapshots().create_branch(
            first, "audit", max_snapshot_age_ms=77, min_snapshots_to_keep=3
        ).commit()
        return made
    finally:
        catalog.close()


def metadata_of(table: Table) -> TableMetadata:
    return TableMetadata.parse(table.metadata.model_dump_json(), table.metadata_location)


@pytest.mark.parametrize("kind", ["snapshots", "history", "refs", "manifests"])
def test_tells_what_pyiceberg_tells(catalogued, kind):
    ours, theirs = told(kind, metadata_of(catalogued)), getattr(catalogued.inspect, kind)()

    assert ours.column_names == theirs.column_names
    by_name = (lambda row: row["name"]) if kind == "refs" else (lambda _: 0)
    assert sorted(map(comparable, ours.to_pylist()), key=by_name) == sorted(
        map(comparable, theirs.to_pylist()), key=by_name
    )


def test_tells_of_files_what_pyiceberg_tells(catalogued):
    ours, theirs = told("files", metadata_of(catalogued)), catalogued.inspect.files()

    assert [
        n for n in ours.column_names if n in without_v3_columns(dict.fromkeys(ours.column_names))
    ] == theirs.column_names
    assert_same_files(ours.to_pylist(), theirs.to_pylist())


def test_tells_of_entries_what_pyiceberg_tells(catalogued):
    def unfolded(row: dict[str, Any]) -> dict[str, Any]:
        return {**row.pop("data_file"), **row}

    ours, theirs = told("entries", metadata_of(catalogued)), catalogued.inspect.entries()

    assert ours.column_names == theirs.column_names
    assert 2 in ours["status"].to_pylist()
    assert_same_files(
        [unfolded(row) for row in ours.to_pylist()], [unfolded(row) for row in theirs.to_pylist()]
    )


def assert_same_files(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    def normal(row: dict[str, Any], of: dict[str, Any]) -> dict[str, Any]:
        row = comparable({k: v for k, v in row.items() if k in of})
        row["content"] = int(row["content"])
        # PyIceberg tells of a list as of a column, and nothing of its elements
        row["readable_metrics"].pop("tags", None)
        row["readable_metrics"].pop("tags.element", None)
        return row

    def in_order(listed: list[dict[str, Any]], of: dict[str, Any]) -> list[str]:
        # as text, to which one NaN is another
        return sorted(repr(sorted(normal(row, of).items())) for row in listed)

    # entries of PyIceberg say their spec id, and its schema has no column for it
    assert in_order(ours, theirs[0]) == in_order(theirs, theirs[0])


def test_tells_of_partitions_what_pyiceberg_tells(catalogued):
    ours, theirs = told("partitions", metadata_of(catalogued)), catalogued.inspect.partitions()

    assert ours.column_names == theirs.column_names
    assert ours.num_rows > 20
    assert sorted(map(repr, map(comparable, ours.to_pylist()))) == sorted(
        map(repr, map(comparable, theirs.to_pylist()))
    )


@pytest.mark.parametrize("kind", sorted(METADATA_TABLES))
def test_has_the_columns_that_are_asked_for_and_no_others(tmp_path, kind):
    metadata = scan_of(write_orders(tmp_path / "t", files=1)).metadata
    known = metadata_schema(kind, metadata)
    whole = told(kind, metadata)

    assert whole.schema.equals(arrow_schema(known), check_metadata=True)
    for name in known.names:
        if "." not in name:
            assert told(kind, metadata, columns=[name]).equals(whole.select([name]))


def test_is_as_of_the_snapshot_that_is_asked_for(tmp_path):
    table = write_orders(tmp_path / "t", files=2)
    metadata = scan_of(table).metadata
    at = metadata.snapshot_for_ref("v1")

    def counted(kind: str, snapshot: Any) -> int:
        return told(kind, metadata, snapshot).num_rows

    # of each append three data files, one of deleted positions, one of equality deletes
    assert counted("files", at) == 3 + 3 + 1 + 1
    assert counted("manifests", at) == 4
    assert pc.sum(told("partitions", metadata, at)["record_count"]).as_py() == 80
    assert counted("snapshots", at) == len(metadata.snapshots)
    for kind in ("files", "entries", "manifests", "partitions"):
        assert counted(kind, None) == 0


def test_tells_of_delete_files_of_every_kind(tmp_path):
    table = TableWriter.create(tmp_path / "t", schema({"id": required("long")}), format_version=3)
    (data,) = table.append([{"id": i} for i in range(10)])
    table.write_vectors({data: [1, 2]})
    table.delete_equal([{"id": 5}], ["id"])
    metadata = scan_of(table).metadata

    found = {row["content"]: row for row in told("files", metadata).to_pylist()}

    assert "partition" not in found[0]  # no engine knows a struct without fields
    assert (found[0]["first_row_id"], found[0]["equality_ids"]) == (0, None)
    vector = found[1]
    assert (vector["file_format"], vector["referenced_data_file"]) == ("PUFFIN", data.location)
    assert (vector["record_count"], vector["content_offset"]) == (2, 4)
    assert vector["content_size_in_bytes"] > 0
    assert found[2]["equality_ids"] == [1]
    (whole,) = told("partitions", metadata).to_pylist()
    assert (whole["record_count"], whole["file_count"]) == (10, 1)
    assert (whole["position_delete_record_count"], whole["position_delete_file_count"]) == (2, 1)
    assert (whole["equality_delete_record_count"], whole["equality_delete_file_count"]) == (1, 1)
    assert whole["last_updated_snapshot_id"] == metadata.current_snapshot_id


def test_partitions_of_evolved_specs_have_the_fields_of_all(tmp_path):
    columns = schema({"id": required("long"), "region": "string"})
    table = TableWriter.create(tmp_path / "t", columns, [("region", "identity")])
    table.append([{"id": 1, "region": "eu"}])
    table.evolve_spec([("region", "identity"), ("id", "bucket[2]")])
    table.append([{"id": 1, "region": "eu"}])
    metadata = scan_of(table).metadata

    (partition,) = (f for f in metadata_schema("files", metadata).fields if f.name == "partition")
    assert isinstance(partition.type, StructType)
    assert [f.name for f in partition.type.fields] == ["region", "id_bucket"]
    found = told("files", metadata)["partition"].to_pylist()
    assert sorted(found, key=repr) == [
        {"region": "eu", "id_bucket": 0},
        {"region": "eu", "id_bucket": None},
    ]


def test_reads_no_manifest_where_metadata_tells_everything(tmp_path):
    metadata = scan_of(write_orders(tmp_path / "t", files=1)).metadata
    storage = RecordingStorage()
    for kind in ("snapshots", "history", "refs"):
        metadata_table(kind, metadata, metadata.current_snapshot(), source_of(metadata, storage))
    assert storage.read_locations == []


@pytest.mark.parametrize("kind", ["files", "entries", "partitions"])
def test_stops_where_nobody_waits_any_more(tmp_path, kind):
    metadata = scan_of(write_orders(tmp_path / "t", files=1)).metadata
    run = PlanRun(is_cancelled=lambda: True)
    with pytest.raises(Cancelled):
        metadata_table(kind, metadata, metadata.current_snapshot(), source_of(metadata, run=run))


def test_names_the_manifest_that_is_missing(tmp_path):
    table = write_orders(tmp_path / "t", files=1)
    metadata = scan_of(table).metadata
    location = table.lines(metadata.current_snapshot_id)[0]["manifest_path"]
    table.local(location).unlink()
    with pytest.raises(MissingFile, match="manifest"):
        told("files", metadata)
