"""Plans beside PyIceberg's own: of a table that it wrote, and of one with every transform."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable, Table
from pyiceberg.transforms import IdentityTransform

from floeberg.process.storage import open_storage
from floeberg.protocol.metadata import TableMetadata
from floeberg.server.planning import Plan, plan_files
from tests.support.lake import TableWriter, required, schema
from tests.support.scans import scan_of_metadata

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("ts", pa.timestamp("us")),
        pa.field("region", pa.string()),
        pa.field("amount", pa.float64()),
    ]
)
FIRST = datetime.datetime(1969, 12, 30)
REGIONS = ["eu", "us", "ünï", None, ""]


def rows(start: int, stop: int) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "ts": None if i % 11 == 10 else FIRST + datetime.timedelta(hours=7 * i),
            "region": REGIONS[i % len(REGIONS)],
            "amount": float("nan") if i % 13 == 12 else i / 4,
        }
        for i in range(start, stop)
    ]


@pytest.fixture(scope="module")
def catalogued(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table that PyIceberg wrote, its spec changed half way, in a catalog on SQLite."""
    directory: Path = tmp_path_factory.mktemp("lake")
    catalog = SqlCatalog(
        "lake", uri=f"sqlite:///{directory}/catalog.db", warehouse=f"file://{directory}"
    )
    try:
        catalog.create_namespace("db")
        made = catalog.create_table("db.t", SCHEMA)
        made.append(pa.Table.from_pylist(rows(0, 40), schema=SCHEMA))
        with made.update_spec() as update:
            update.add_field("region", IdentityTransform(), "region")
        made.append(pa.Table.from_pylist(rows(40, 80), schema=SCHEMA))
        made.delete("id = 7")
        return made
    finally:
        catalog.close()


@pytest.fixture(scope="module")
def transformed(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table whose spec went through every transform."""
    columns = {"id": required("long"), "ts": "timestamp", "region": "string", "amount": "double"}
    table = TableWriter.create(tmp_path_factory.mktemp("lake") / "t", schema(columns))
    specs: list[list[Any]] = [
        [],
        [("ts", "day")],
        [("region", "identity"), ("id", "bucket[3]")],
        [("region", "truncate[1]"), ("ts", "month")],
        [("id", "truncate[10]"), ("ts", "hour")],
        [("region", "void"), ("ts", "year")],
    ]
    for number, spec in enumerate(specs):
        table.evolve_spec(spec)
        table.append(rows(16 * number, 16 * (number + 1)))
    return StaticTable.from_metadata(str(table.metadata_path))


FILTERS = [
    (["true"], "id >= 0"),
    (["=", "id", 45], "id = 45"),
    (["=", "region", "eu"], "region = 'eu'"),
    (["in", "region", ["us", "ünï"]], "region IN ('us', 'ünï')"),
    (["is-null", "region"], "region IS NULL"),
    (["is-null", "ts"], "ts IS NULL"),
    (["<", "ts", "1970-01-01T00:00:00"], "ts < '1970-01-01T00:00:00'"),
    (
        ["and", [">=", "ts", "1970-01-10T00:00:00"], ["=", "region", "eu"]],
        "ts >= '1970-01-10T00:00:00' AND region = 'eu'",
    ),
    (["or", ["=", "id", 1], ["=", "id", 71]], "id = 1 OR id = 71"),
    ([">", "amount", 18.0], "amount > 18.0"),
    (["starts-with", "region", "e"], "region LIKE 'e%'"),
]


def plan(table: Table, filter_: Any) -> Plan:
    raw = table.metadata.model_dump_json()
    metadata = TableMetadata.parse(raw, table.metadata_location)
    return plan_files(scan_of_metadata(metadata, filter_), open_storage())


def assert_planned_alike(table: Table, ours: Any, theirs: str) -> None:
    found = plan(table, ours)

    expected = {t.file.file_path for t in table.scan(row_filter=theirs).plan_files()}
    assert {t.data_file.location for t in found.tasks} == expected


@pytest.mark.parametrize(("ours", "theirs"), FILTERS)
def test_of_a_table_that_pyiceberg_wrote_the_same_files_are_planned(catalogued, ours, theirs):
    assert_planned_alike(catalogued, ours, theirs)


@pytest.mark.parametrize(("ours", "theirs"), FILTERS)
def test_through_every_transform_the_same_files_are_planned(transformed, ours, theirs):
    assert_planned_alike(transformed, ours, theirs)


def test_the_count_is_exact_where_no_filter_is_left(catalogued):
    assert plan(catalogued, ["true"]).total_records == 79
    assert plan(catalogued, ["=", "region", "eu"]).total_records == 16
    assert plan(catalogued, [">", "id", 50]).total_records is None
