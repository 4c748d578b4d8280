from __future__ import annotations

import inspect
import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.client import Lake, Progress, RemoteTable
from floeberg.embedded import ScanOptions, Table, open_table
from floeberg.protocol.errors import (
    BadCommand,
    BadFilter,
    BadLiteral,
    ConflictingSnapshot,
    UnknownColumn,
    UnknownRef,
    UnknownSnapshot,
)
from tests.support.fleet import LocalFleet, read_all
from tests.support.lake import TableWriter
from tests.support.orders import live_ids
from tests.support.rows import assert_same_rows


@pytest.fixture(scope="session")
def in_process(warehouse: Path) -> Table:
    return open_table(str(warehouse / "db" / "orders"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"filter": "id >= 100 AND region = 'eu'"},
        {"filter": ["and", [">=", "id", 100], ["=", "region", "eu"]]},
        {"select": ["note", "customer.name", "id", "_pos"]},
        {"select": []},
        {"filter": "amount IS NULL", "select": ["id"], "ordered": True},
        {"filter": "ID = 4", "case_sensitive": False},
        {"ref": "v1"},
        {"ref": "audit", "filter": "id > 200"},
        {"split_size": 1},
        {"ordered": True, "split_size": 1},
    ],
)
def test_a_scan_gives_what_a_scan_in_process_gives(orders: RemoteTable, in_process, options):
    scan = orders.scan(**options)
    expected = in_process.scan(**options).to_table()

    rows = scan.to_arrow()

    assert rows.schema == expected.schema == scan.schema()
    assert_same_rows(rows, expected)
    if options.get("ordered"):
        assert rows == expected
    assert scan.count() == expected.num_rows
    assert_same_rows(pa.Table.from_batches(scan.to_batches(), schema=rows.schema), expected)
    assert_same_rows(scan.to_reader().read_all(), expected)


def test_a_snapshot_is_chosen_by_id_or_time(
    orders: RemoteTable, in_process: Table, warehouse: Path
):
    metadata = TableWriter.open(warehouse / "db" / "orders").metadata
    tagged = metadata["refs"]["v1"]["snapshot-id"]
    at_ms = next(s["timestamp-ms"] for s in metadata["snapshots"] if s["snapshot-id"] == tagged)
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    expected = orders.scan(ref="v1", ordered=True).to_arrow()

    for choice in (
        {"snapshot_id": tagged},
        {"as_of": at_ms},
        {"as_of": at},
        {"as_of": at.isoformat()},
    ):
        assert orders.scan(ordered=True, **choice).to_arrow() == expected
        assert in_process.scan(**choice).to_table() == expected


@pytest.mark.parametrize("limit", [0, 1, 37, 10_000])
def test_a_limit_is_exact(orders: RemoteTable, in_process: Table, limit: int):
    total = sum(n >= 10 for n in live_ids())

    remote = orders.scan(limit=limit, filter="id >= 10", ordered=True)
    local = in_process.scan(limit=limit, filter="id >= 10", ordered=True)

    assert remote.to_arrow().num_rows == remote.count() == min(limit, total)
    assert local.to_table() == remote.to_arrow()
    assert local.count() == remote.count()


def test_a_path_a_command_and_the_client_read_the_same(fleet: LocalFleet, orders: RemoteTable):
    with fl.connect(fleet.location) as stock:
        path = read_all(stock.get_flight_info(fl.FlightDescriptor.for_path("db", "orders")))
        command = json.dumps({"table": "db.orders"}).encode()
        told = read_all(stock.get_flight_info(fl.FlightDescriptor.for_command(command)))

    assert_same_rows(path, told)
    assert_same_rows(orders.scan().to_arrow(), path)


def test_a_table_never_written_to_has_its_schema_and_no_rows(lake: Lake):
    scan = lake.table("db.empty").scan()

    assert scan.to_arrow() == scan.schema().empty_table()
    assert (scan.count(), list(scan.to_batches())) == (0, [])


def test_a_plan_has_pages_of_tasks_in_the_rest_shape(orders: RemoteTable, in_process):
    whole = json.loads(in_process.scan().plan_files_json())["file-scan-tasks"]

    (page,) = orders.scan().plan()
    (files,) = orders.scan(split_size=1).files()

    assert list(page.tasks) == whole
    assert len(files.tasks) == len({t["data-file"]["file-path"] for t in whole})


def test_a_scan_is_explained_as_in_process_and_has_endpoints(
    orders: RemoteTable, in_process: Table
):
    here, there = in_process.scan().explain(), orders.scan().explain()

    assert there.endpoints
    assert (there.levels, there.deletes, there.residuals) == (
        here.levels,
        here.deletes,
        here.residuals,
    )


def test_rows_come_as_pandas_and_polars_too(orders: RemoteTable, in_process: Table):
    for scan in (orders.scan(), in_process.scan()):
        assert sorted(scan.to_pandas()["id"]) == list(live_ids())
        assert sorted(scan.to_polars()["id"]) == list(live_ids())
    few = in_process.scan().to_pandas(ScanOptions(limit=3), strings_to_categorical=True)
    assert (len(few), few["region"].dtype) == (3, "category")


def test_progress_adds_up_to_what_was_read(orders: RemoteTable):
    told: list[Progress] = []

    rows = orders.scan(on_progress=told.append).to_arrow()

    assert sum(p.rows for p in told) == rows.num_rows
    assert sum(p.size_bytes for p in told) >= rows.nbytes
    assert sum(p.finished_endpoints for p in told) == len(orders.scan().planned().info.endpoints)


def test_reading_can_end_early(orders: RemoteTable):
    batches = orders.scan().to_batches()
    next(batches)
    batches.close()

    assert next(batches, None) is None
    assert not [t for t in threading.enumerate() if t.name.startswith("floeberg-read")]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"filter": "id >"}, BadFilter),
        ({"snapshot_id": 1, "ref": "v1"}, ConflictingSnapshot),
        ({"as_of": "yesterday"}, BadCommand),
        ({"as_of": datetime(2025, 1, 1)}, BadCommand),
        ({"limit": -1}, BadCommand),
        ({"limit": 2.5}, BadCommand),
        ({"split_size": -1}, BadCommand),
        ({"select": "id"}, BadCommand),
        ({"select": [1]}, BadCommand),
        ({"snapshot_id": "newest"}, BadCommand),
        ({"ref": ""}, BadCommand),
        ({"case_sensitive": "no"}, BadCommand),
        ({"filter": 1}, BadFilter),
    ],
)
def test_what_the_server_need_not_tell_is_refused_at_once_and_alike_in_process(
    orders: RemoteTable, in_process: Table, options, error
):
    with pytest.raises(error) as over_flight:
        orders.scan(**options)
    with pytest.raises(error) as here:
        in_process.scan(**options)
    assert str(here.value) == str(over_flight.value)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"filter": "nope = 1"}, UnknownColumn),
        ({"filter": "id = 'x'"}, BadLiteral),
        ({"select": ["nope"]}, UnknownColumn),
        ({"ref": "nope"}, UnknownRef),
        ({"snapshot_id": 1}, UnknownSnapshot),
    ],
)
def test_what_the_server_refuses_has_its_own_error(
    orders: RemoteTable, in_process: Table, options, error
):
    scan = orders.scan(**options)
    with pytest.raises(error) as here:
        in_process.scan(**options).to_table()

    for ask in (scan.schema, scan.to_arrow, scan.to_batches, scan.to_reader, scan.count, scan.plan):
        with pytest.raises(error) as raised:
            ask()
        assert str(raised.value) == str(here.value)


def test_a_scan_takes_the_same_arguments_over_flight_and_in_process():
    over_flight = inspect.signature(RemoteTable.scan).parameters
    here = inspect.signature(Table.scan).parameters

    assert {**here, "on_progress": over_flight["on_progress"]} == dict(over_flight)
