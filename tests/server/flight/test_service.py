"""What a coordinator answers beside scans, with a stock Flight client."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.protocol.actions import (
    COUNT,
    DESCRIBE,
    FILES,
    PLAN,
    SNAPSHOTS,
    STATUS,
    TABLES,
    WORKERS,
    Action,
)
from floeberg.protocol.errors import BadCommand, CorruptTable, UnknownTable
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.registration import RENEW_WORKER
from tests.support.fleet import LocalFleet
from tests.support.lake import TableWriter, required, schema
from tests.support.waiting import wait_until

ORDERS = {"table": "db.orders"}


def ask(client: fl.FlightClient, action: Action, body: object = None) -> list:  # type: ignore[type-arg]
    raw = b"" if body is None else json.dumps(body).encode()
    results = client.do_action(fl.Action(action.name, raw))
    return [action.parse_reply(r.body.to_pybytes()) for r in results]


@pytest.fixture
def customers(warehouse: Path) -> TableWriter:
    return TableWriter.create(warehouse / "crm" / "customers", schema({"id": required("long")}))


# --- listing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        (b"", [["crm", "customers"], ["db", "orders"]]),
        (b"crm.*", [["crm", "customers"]]),
        (b"*.orders", [["db", "orders"]]),
        (b"warehouse.db.*", [["db", "orders"]]),
        (b"order", [["db", "orders"]]),
        (b"nothing", []),
    ],
)
def test_flights_are_the_tables_whose_names_match(
    client: fl.FlightClient, customers: TableWriter, criteria: bytes, expected: list[list[str]]
) -> None:
    flights = list(client.list_flights(criteria))

    assert [[p.decode() for p in f.descriptor.path] for f in flights] == expected
    for flight in flights:
        assert flight.schema == client.get_flight_info(flight.descriptor).schema
        assert flight.total_records == -1


def test_a_damaged_table_is_listed_with_what_is_wrong(
    client: fl.FlightClient, customers: TableWriter
) -> None:
    customers.metadata_path.write_text("{")

    damaged, whole = client.list_flights()

    assert json.loads(damaged.app_metadata)["error"]["code"] == "CORRUPT_METADATA"
    assert whole.schema.names == ["id", "region", "amount"]
    with pytest.raises(fl.FlightError) as raised:
        client.get_flight_info(damaged.descriptor)
    assert isinstance(from_flight(raised.value), CorruptTable)


# --- actions -------------------------------------------------------------------------------------


def test_actions_are_listed_and_an_unknown_one_is_refused(client: fl.FlightClient) -> None:
    listed = [a.type for a in client.list_actions()]

    assert {TABLES.name, PLAN.name, STATUS.name, RENEW_WORKER} <= set(listed)
    with pytest.raises(pa.ArrowInvalid, match=TABLES.name) as raised:
        list(client.do_action(fl.Action("floeberg.tabels", b"")))
    assert isinstance(from_flight(raised.value), BadCommand)


def test_workers_are_told_as_endpoints_name_them(
    client: fl.FlightClient, fleet: LocalFleet
) -> None:
    (told,) = ask(client, WORKERS)

    assert set(told.locations) == {worker.location for worker in fleet.workers}
    with pytest.raises(pa.ArrowInvalid, match="BAD_COMMAND"):
        ask(client, WORKERS, {"zone": "a"})


def test_tables_are_told_by_namespace(client: fl.FlightClient, customers: TableWriter) -> None:
    (every,) = ask(client, TABLES)
    (some,) = ask(client, TABLES, {"namespace": ["crm"]})

    assert [t.identifier for t in every.tables] == [("crm", "customers"), ("db", "orders")]
    assert [t.identifier for t in some.tables] == [("crm", "customers")]
    assert every.tables[0].is_default_catalog


def test_a_table_and_its_snapshots_are_described(
    client: fl.FlightClient, orders: TableWriter
) -> None:
    orders.tag("first", orders.metadata["snapshots"][0]["snapshot-id"])
    (described,) = ask(client, DESCRIBE, ORDERS)
    (told,) = ask(client, SNAPSHOTS, ORDERS)

    assert described.table_uuid == orders.metadata["table-uuid"]
    assert [f["name"] for f in described.table_schema["fields"]] == ["id", "region", "amount"]
    assert {r.name: r.type for r in described.refs} == {"main": "branch", "first": "tag"}
    assert [s.snapshot_id for s in told.snapshots] == [
        s["snapshot-id"] for s in orders.metadata["snapshots"]
    ]


def test_a_count_is_told_where_metadata_decides(client: fl.FlightClient) -> None:
    def count(**keys: object) -> int | None:
        (reply,) = ask(client, COUNT, {**ORDERS, **keys})
        return reply.count

    assert count() == 800
    assert count(limit=10) == 10
    assert count(filter="amount > 17.25") is None
    assert count(filter="amount > 17.25", limit=0) == 0


def test_a_plan_has_a_task_a_split_and_files_has_one_a_file(client: fl.FlightClient) -> None:
    (files,) = ask(client, FILES, ORDERS)
    (plan,) = ask(client, PLAN, {**ORDERS, "split_size": 100})

    paths = [t["data-file"]["file-path"] for t in files.tasks]
    assert len(paths) == len(set(paths)) == 8
    assert sum(t["data-file"]["record-count"] for t in files.tasks) == 800
    assert plan.counters["files"] == 8
    assert {t["data-file"]["file-path"] for t in plan.tasks} == set(paths)


def test_errors_of_actions_are_named(client: fl.FlightClient) -> None:
    with pytest.raises((fl.FlightError, pa.ArrowException)) as raised:
        ask(client, DESCRIBE, {"table": "db.order"})
    assert isinstance(from_flight(raised.value), UnknownTable)
    with pytest.raises(pa.ArrowInvalid, match=r"\[BAD_COMMAND\]"):
        ask(client, DESCRIBE, {"tabel": "db.orders"})


def test_status_tells_of_workers_catalogs_and_queries(
    fleet: LocalFleet, client: fl.FlightClient
) -> None:
    client.get_flight_info(fl.FlightDescriptor.for_path("db", "orders"))
    with pytest.raises((fl.FlightError, pa.ArrowException)):
        client.get_flight_info(fl.FlightDescriptor.for_path("db", "nothing"))

    (status,) = ask(client, STATUS)

    assert {w.location for w in status.workers} == {w.location for w in fleet.workers}
    assert all(w.state == "ready" and w.max_streams == 32 for w in status.workers)
    assert [(c.name, c.is_default) for c in status.catalogs] == [("warehouse", True)]
    assert status.queries == {"planned": 1, "failed": 1, "cancelled": 0}


# --- the side port -------------------------------------------------------------------------------


def test_the_side_port_tells_health_and_numbers(fleet: LocalFleet, client: fl.FlightClient) -> None:
    http = fleet.coordinator.addresses()["http"]
    client.get_flight_info(fl.FlightDescriptor.for_path("db", "orders"))

    assert httpx.get(f"{http}/healthz").status_code == 200
    assert httpx.get(f"{http}/readyz").status_code == 200
    text = httpx.get(f"{http}/metrics").text
    assert 'floeberg_scans_total{outcome="planned"} 1.0' in text
    assert 'floeberg_fleet_workers{state="ready"} 2.0' in text
    assert "floeberg_tasks_total 8.0" in text


def numbers(fleet: LocalFleet) -> dict[str, float]:
    """Return what `/metrics` has, without labels, by the names that follow `floeberg_`."""
    text = httpx.get(f"{fleet.coordinator.addresses()['http']}/metrics").text
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("floeberg_")]
    return {name.removeprefix("floeberg_"): float(value) for name, value in lines}


def test_a_coordinator_keeps_manifests_where_it_is_told(
    warehouse: Path, orders: TableWriter, tmp_path: Path
) -> None:
    files = tmp_path / "cache" / "manifests"
    with closing(LocalFleet(warehouse, manifest_cache_dir=str(files.parent))) as served:
        with fl.connect(served.location) as client:
            for _ in range(2):
                ask(client, COUNT, ORDERS)
        wait_until(lambda: len(list(files.glob("*.segment"))) == 8, "every manifest to be written")
        first = numbers(served)
        served.restart_coordinator()
        with fl.connect(served.location) as client:
            ask(client, COUNT, ORDERS)
        second = numbers(served)

    assert first["manifest_cache_hits_total"] == 9  # the list, and the manifests in it
    assert first["manifest_cache_misses_total"] == 9
    assert first["manifest_cache_bytes"] > 1000
    assert (first["manifest_disk_hits_total"], first["manifest_disk_misses_total"]) == (0, 8)
    assert (second["manifest_disk_hits_total"], second["manifest_disk_misses_total"]) == (8, 0)
    assert second["manifest_disk_written_bytes_total"] == 0
    assert second["manifest_disk_damaged_total"] == 0
    assert second["manifest_disk_evictions_total"] == second["manifest_cache_evictions_total"] == 0
    assert first["metadata_cache_misses_total"] == 1
    assert first["metadata_cache_hits_total"] == 1
