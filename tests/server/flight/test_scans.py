"""Scans through a coordinator and its workers, with a stock Flight client."""

from __future__ import annotations

import json
import logging
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.protocol.actions import EXPLAIN, Explanation
from floeberg.protocol.errors import (
    BadCommand,
    BadFilter,
    BadLiteral,
    ConflictingSnapshot,
    FloebergError,
    NoWorkers,
    ReadOnly,
    UnknownColumn,
    UnknownRef,
    UnknownSnapshot,
    UnknownTable,
)
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.flight_sql.wire import pack
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.tickets import open_ticket
from tests.support.fleet import LocalFleet, local_fleet, read_all, read_endpoint
from tests.support.gate import NO_HURRY, now_ms
from tests.support.lake import TableWriter, required, schema
from tests.support.waiting import wait_until

ORDERS = fl.FlightDescriptor.for_path("db", "orders")
ALL_IDS = list(range(800))


def command(**keys: object) -> fl.FlightDescriptor:
    return fl.FlightDescriptor.for_command(json.dumps({"table": "db.orders", **keys}))


def plans_of(fleet: LocalFleet, info: fl.FlightInfo) -> list[ReadPlan]:
    return [open_ticket(e.ticket.ticket, fleet.keys, now_ms=now_ms()).plan for e in info.endpoints]


def ids(rows: pa.Table) -> list[int]:
    return sorted(rows["id"].to_pylist())


# --- endpoints -----------------------------------------------------------------------------------


def test_bytes_are_spread_over_the_workers_and_every_endpoint_has_a_stand_in(
    fleet: LocalFleet, client: fl.FlightClient
) -> None:
    info = client.get_flight_info(ORDERS)

    workers = {w.location.encode() for w in fleet.workers}
    spread: Counter[bytes] = Counter()
    for endpoint, plan in zip(info.endpoints, plans_of(fleet, info), strict=True):
        named = [location.uri for location in endpoint.locations]
        assert set(named) == workers
        spread[named[0]] += sum(task.size_bytes for task in plan.tasks)
    assert set(spread) == workers
    assert max(spread.values()) <= 2 * min(spread.values())
    assert 2 <= len(info.endpoints) <= 8


def test_the_same_scan_has_the_same_tasks_in_the_same_endpoints(
    fleet: LocalFleet, client: fl.FlightClient
) -> None:
    first, second = (client.get_flight_info(command(filter="id < 700")) for _ in range(2))

    assert plans_of(fleet, first) == plans_of(fleet, second)
    assert [e.locations for e in first.endpoints] == [e.locations for e in second.endpoints]


def test_endpoints_hold_the_table_once_in_plan_order(
    fleet: LocalFleet, client: fl.FlightClient
) -> None:
    info = client.get_flight_info(command(ordered=True))
    (whole,) = plans_of(fleet, client.get_flight_info(command(limit=10_000)))

    assert info.ordered
    assert not client.get_flight_info(ORDERS).ordered
    assert [t for plan in plans_of(fleet, info) for t in plan.tasks] == list(whole.tasks)
    assert ids(read_all(info)) == ALL_IDS


def test_any_ticket_reads_the_same_from_any_worker_and_through_the_coordinator(
    fleet: LocalFleet, client: fl.FlightClient
) -> None:
    for endpoint in client.get_flight_info(ORDERS).endpoints:
        here, there = (read_endpoint(endpoint, location) for location in range(2))
        relayed = client.do_get(endpoint.ticket).read_all()

        assert here.equals(there)
        assert here.equals(relayed)


def test_the_schema_is_one_from_plan_to_rows(client: fl.FlightClient) -> None:
    asked = command(select=["amount", "id", "_file"], filter="region = 'nowhere'")
    info = client.get_flight_info(asked)

    assert info.schema.names == ["amount", "id", "_file"]
    assert not info.schema.field("id").nullable
    assert client.get_schema(asked).schema == info.schema
    assert read_all(info).schema.equals(info.schema, check_metadata=True)


def test_tickets_expire_when_the_endpoint_says(warehouse: Path, orders: TableWriter) -> None:
    with local_fleet(warehouse, ticket_seconds=60) as fleet, fl.connect(fleet.location) as client:
        (endpoint, *_) = client.get_flight_info(ORDERS).endpoints

    expires = open_ticket(endpoint.ticket.ticket, fleet.keys, now_ms=now_ms()).expires_at_ms
    assert endpoint.expiration_time.as_py().timestamp() * 1000 == pytest.approx(expires, abs=1)
    assert 0 < expires - now_ms() <= 60_000


def test_a_limit_is_one_endpoint_and_exact(client: fl.FlightClient) -> None:
    info = client.get_flight_info(command(limit=250))

    assert len(info.endpoints) == 1
    assert info.total_records == 250
    assert read_all(info).num_rows == 250


def test_records_are_counted_where_metadata_decides_and_unknown_otherwise(
    client: fl.FlightClient, orders: TableWriter
) -> None:
    assert client.get_flight_info(ORDERS).total_records == 800
    assert client.get_flight_info(command(filter="amount > 17.25")).total_records == -1

    orders.delete_equal([{"id": 5}], ["id"])
    info = client.get_flight_info(ORDERS)

    assert info.total_records == -1
    assert ids(read_all(info)) == [i for i in ALL_IDS if i != 5]


def test_the_plan_is_told_beside_the_endpoints(
    client: fl.FlightClient, orders: TableWriter
) -> None:
    info = client.get_flight_info(ORDERS)

    told = json.loads(info.app_metadata)
    assert told["table"] == "warehouse.db.orders"
    assert told["snapshot_id"] == orders.metadata["current-snapshot-id"]
    assert told["tasks"] == 8
    assert told["counters"]["files"] == 8
    assert info.total_bytes > 0


def test_a_table_never_written_to_is_an_endpoint_without_rows(
    fleet: LocalFleet, client: fl.FlightClient, warehouse: Path
) -> None:
    TableWriter.create(warehouse / "db" / "empty", schema({"id": required("long")}))

    info = client.get_flight_info(fl.FlightDescriptor.for_path("db", "empty"))

    assert info.total_records == 0
    assert len(info.endpoints) == 1
    assert read_all(info).equals(info.schema.empty_table())


# --- what is read --------------------------------------------------------------------------------


def test_filter_columns_and_snapshot_are_the_command_s(
    client: fl.FlightClient, orders: TableWriter
) -> None:
    oldest = orders.metadata["snapshots"][0]["snapshot-id"]

    filtered = read_all(client.get_flight_info(command(filter="id >= 790", select=["amount"])))
    then = read_all(client.get_flight_info(command(snapshot_id=oldest)))

    assert sorted(filtered["amount"].to_pylist()) == [i / 2 for i in range(790, 800)]
    assert ids(then) == list(range(100))


def test_a_commit_after_planning_changes_nothing_in_what_is_read(
    client: fl.FlightClient, orders: TableWriter
) -> None:
    info = client.get_flight_info(ORDERS)
    orders.append([{"id": 1000, "region": "eu", "amount": 0.0}])
    orders.delete_equal([{"id": 7}], ["id"])

    assert ids(read_all(info)) == ALL_IDS
    assert ids(read_all(client.get_flight_info(ORDERS))) == [i for i in [*ALL_IDS, 1000] if i != 7]


def test_tickets_are_read_without_metadata_manifests_or_catalog(
    fleet: LocalFleet,
    client: fl.FlightClient,
    orders: TableWriter,
    warehouse: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    orders.delete_positions({orders.append([{"id": 900}, {"id": 901}])[0]: [1]})
    info = client.get_flight_info(ORDERS)

    shutil.rmtree(warehouse / "db" / "orders" / "metadata")
    fleet.coordinator.stop(NO_HURRY)
    caplog.set_level(logging.DEBUG, "floeberg.process.storage")
    caplog.clear()
    rows = read_all(info)

    assert ids(rows) == [*ALL_IDS, 900]
    asked = [r.__dict__["location"] for r in caplog.records if r.msg == "storage request"]
    assert asked
    assert not [a for a in asked if "/metadata/" in a or a.endswith((".avro", ".json"))]


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("descriptor", "expected"),
    [
        (fl.FlightDescriptor.for_path("db", "order"), UnknownTable),
        (fl.FlightDescriptor.for_path("nowhere", "db", "orders"), UnknownTable),
        (fl.FlightDescriptor.for_path("db", ""), BadCommand),
        (fl.FlightDescriptor.for_command(b""), BadCommand),
        (fl.FlightDescriptor.for_command(b"\x00\xff\xfe"), BadCommand),
        (fl.FlightDescriptor.for_command(b'{"table": '), BadCommand),
        (fl.FlightDescriptor.for_command(b"[1]"), BadCommand),
        (command(fitler="id > 1"), BadCommand),
        (command(filter="id >"), BadFilter),
        (command(filter="id > 'x'"), BadLiteral),
        (command(filter="idd > 1"), UnknownColumn),
        (command(select=["nope"]), UnknownColumn),
        (command(snapshot_id=1), UnknownSnapshot),
        (command(ref="nope"), UnknownRef),
        (command(ref="main", snapshot_id=1), ConflictingSnapshot),
        (
            fl.FlightDescriptor.for_command(pack("CommandStatementQuery", query="DROP TABLE t")),
            ReadOnly,
        ),
    ],
)
def test_a_bad_request_is_named_shows_no_inside_and_harms_no_other(
    client: fl.FlightClient, descriptor: fl.FlightDescriptor, expected: type[FloebergError]
) -> None:
    for call in (client.get_flight_info, client.get_schema):
        with pytest.raises((fl.FlightError, pa.ArrowException, KeyError)) as raised:
            call(descriptor)
        error = from_flight(raised.value)
        assert isinstance(error, expected)
        assert error.code in str(raised.value)
        assert "Traceback" not in str(raised.value)
        assert ".py" not in str(raised.value)
        assert client.get_flight_info(ORDERS).total_records == 800


def test_without_workers_a_scan_can_be_tried_again_later(
    warehouse: Path, orders: TableWriter
) -> None:
    with local_fleet(warehouse, workers=1) as fleet, fl.connect(fleet.location) as client:
        fleet.workers.pop().stop(NO_HURRY)
        with pytest.raises(fl.FlightUnavailableError) as raised:
            client.get_flight_info(ORDERS)
        assert type(from_flight(raised.value)) is NoWorkers
        # what is wrong with the request comes first: waiting would not help
        with pytest.raises((fl.FlightError, pa.ArrowException), match="UNKNOWN_COLUMN"):
            client.get_flight_info(command(select=["nope"]))
        assert client.get_schema(ORDERS).schema.names == ["id", "region", "amount"]

        fleet.add_worker()
        assert ids(read_all(client.get_flight_info(ORDERS))) == ALL_IDS


# --- who serves ----------------------------------------------------------------------------------


def test_a_worker_that_leaves_is_in_no_new_endpoint(
    fleet: LocalFleet, client: fl.FlightClient
) -> None:
    gone = fleet.workers.pop()
    gone.stop(NO_HURRY)

    info = client.get_flight_info(ORDERS)

    named = {location.uri.decode() for e in info.endpoints for location in e.locations}
    assert named == {fleet.workers[0].location}
    assert ids(read_all(info)) == ALL_IDS


def test_a_new_coordinator_at_the_old_address_gets_the_workers_back(
    fleet: LocalFleet, client: fl.FlightClient
) -> None:
    info = client.get_flight_info(ORDERS)

    fleet.restart_coordinator()

    assert ids(read_all(info)) == ALL_IDS  # tickets outlive the coordinator that sealed them
    wait_until(lambda: len(fleet.coordinator.members.ready()) == 2, "the workers to join again")
    with fl.connect(fleet.location) as again:
        assert ids(read_all(again.get_flight_info(ORDERS))) == ALL_IDS


# --- explaining ----------------------------------------------------------------------------------


def explained(client: fl.FlightClient, **keys: object) -> Explanation:
    body = json.dumps({"table": "db.orders", **keys}).encode()
    (result,) = client.do_action(fl.Action(EXPLAIN.name, body))
    return EXPLAIN.parse_reply(result.body.to_pybytes())


def test_an_explanation_has_the_endpoints_that_the_scan_has(client: fl.FlightClient) -> None:
    info = client.get_flight_info(command(filter="id < 700"))
    found = explained(client, filter="id < 700")

    assert found.endpoints is not None
    assert [e.ticket_bytes for e in found.endpoints] == [
        pytest.approx(len(e.ticket.ticket), abs=64) for e in info.endpoints
    ]
    assert [e.locations for e in found.endpoints] == [
        tuple(location.uri.decode() for location in e.locations) for e in info.endpoints
    ]
    assert sum(e.tasks for e in found.endpoints) == found.tasks == 7
    assert sum(e.bytes for e in found.endpoints) == found.bytes == info.total_bytes
    assert found.table == "warehouse.db.orders"


def test_an_explanation_tells_the_time_from_the_catalog_to_the_seal(
    client: fl.FlightClient,
) -> None:
    steps = [step.name for step in explained(client).steps]

    assert steps[:2] == ["load the table", "bind names"]
    assert steps[-2:] == ["place tasks on workers", "seal tickets"]


def test_the_coordinator_remembers_what_it_explained(client: fl.FlightClient) -> None:
    explained(client)

    assert explained(client).manifests_fetched == 0


def test_without_workers_a_scan_is_explained_all_the_same(
    warehouse: Path, orders: TableWriter
) -> None:
    with local_fleet(warehouse, workers=0) as nobody, fl.connect(nobody.location) as client:
        found = explained(client)

    assert (found.tasks, found.endpoints) == (8, ())
