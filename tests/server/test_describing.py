from __future__ import annotations

from pathlib import Path

import pytest

from floeberg.protocol.metadata import TableMetadata
from floeberg.server.describing import describe_table, list_refs, list_snapshots
from tests.support.lake import TableWriter, required, schema
from tests.support.orders import write_orders


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    return write_orders(tmp_path_factory.mktemp("lake") / "orders", files=1)


def parsed(table: TableWriter) -> TableMetadata:
    return TableMetadata.parse(table.metadata_path.read_bytes(), "a test")


def test_a_table_is_described_as_its_metadata_has_it(orders: TableWriter):
    metadata = parsed(orders)

    found = describe_table(metadata, "v1.metadata.json", "lake", ("db", "orders"))

    assert (found.catalog, found.identifier) == ("lake", ("db", "orders"))
    assert found.metadata_location == "v1.metadata.json"
    assert found.table_schema == metadata.schema().to_json()
    assert [spec["spec-id"] for spec in found.partition_specs] == [0, 1]
    assert found.default_spec_id == 0
    assert found.snapshot_count == len(metadata.snapshots)
    assert found.current_snapshot_id == orders.current_snapshot_id


def test_snapshots_are_listed_oldest_first_whatever_the_metadata_has(tmp_path: Path):
    table = write_orders(tmp_path / "orders", files=2)
    written = [s["snapshot-id"] for s in table.metadata["snapshots"]]
    table.edit(lambda metadata: metadata["snapshots"].reverse())

    listed = list_snapshots(parsed(table)).snapshots

    assert [s.snapshot_id for s in listed] == written
    assert listed[0].operation == "append"
    assert listed[0].summary["added-records"] == "40"


def test_refs_are_listed_by_name(orders: TableWriter):
    refs = list_refs(parsed(orders))

    assert [(r.name, r.type) for r in refs] == [
        ("audit", "branch"),
        ("main", "branch"),
        ("v1", "tag"),
    ]


def test_main_is_there_where_the_metadata_leaves_refs_out(tmp_path: Path):
    table = TableWriter.create(tmp_path / "t", schema({"id": required("long")}), format_version=1)
    table.append([{"id": 1}])
    table.edit(lambda metadata: metadata.pop("refs", None))

    (main,) = list_refs(parsed(table))

    assert (main.name, main.snapshot_id) == ("main", table.current_snapshot_id)


def test_a_table_never_written_to_has_no_snapshots_and_no_refs(tmp_path: Path):
    table = TableWriter.create(tmp_path / "t", schema({"id": required("long")}))

    found = list_snapshots(parsed(table))

    assert (found.snapshots, found.refs, found.current_snapshot_id) == ((), (), None)
