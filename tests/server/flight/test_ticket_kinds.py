"""Tickets that list files and tickets that name manifests are worth the same rows, everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.client import connect
from floeberg.protocol.errors import PlanTooLarge, StaleTicket
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.named_tasks import NamedTasks
from floeberg.protocol.tickets import decode_place, open_ticket, with_resume
from tests.support.fleet import LocalFleet, local_fleet, read_all, read_endpoint
from tests.support.gate import now_ms
from tests.support.lake import FileLayout, TableWriter, required, schema

LISTED, NAMED = 8 << 20, 0
ROW_GROUPS = FileLayout(row_group_size=10)
DELETED = {3, 17, 55, 120, 121, 250}
FIRSTS = range(350, -1, -50)  # the newest manifest stands first
IDS = [i for first in FIRSTS for i in range(first, first + 50) if i not in DELETED]


@pytest.fixture
def orders(warehouse: Path) -> TableWriter:
    """`db.orders`: eight files of five row groups in eight manifests, and deletes of both kinds."""
    table = TableWriter.create(
        warehouse / "db" / "orders",
        schema({"id": required("long"), "region": "string"}),
        [("region", "identity")],
    )
    files = []
    for first in range(0, 400, 50):
        region = "eu" if first < 200 else None
        rows = [{"id": i, "region": region} for i in range(first, first + 50)]
        files += table.append(rows, layout=ROW_GROUPS)
    table.delete_positions({files[0]: [3, 17], files[5]: [0]})
    table.delete_equal([{"id": i} for i in (55, 120, 121)], ["id"])
    return table


@pytest.fixture(params=[LISTED, NAMED], ids=["listed", "named"])
def max_info_bytes(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def fleet(warehouse: Path, orders: TableWriter, max_info_bytes: int) -> Iterator[LocalFleet]:
    with local_fleet(warehouse, max_info_bytes=max_info_bytes) as fleet:
        yield fleet


def command(**keys: object) -> fl.FlightDescriptor:
    keys = {"table": "db.orders", "split_size": 100, **keys}
    return fl.FlightDescriptor.for_command(json.dumps(keys))


def tasks_of(fleet: LocalFleet, endpoint: fl.FlightEndpoint) -> Any:
    return open_ticket(endpoint.ticket.ticket, fleet.keys, now_ms=now_ms()).plan.tasks


def ids(rows: pa.Table) -> list[int]:
    return rows["id"].to_pylist()


def test_all_rows_come_in_plan_order(
    fleet: LocalFleet, client: fl.FlightClient, max_info_bytes: int
) -> None:
    info = client.get_flight_info(command())

    assert len(info.endpoints) > 2
    for endpoint in info.endpoints:
        assert isinstance(tasks_of(fleet, endpoint), NamedTasks) == (max_info_bytes == NAMED)
    assert ids(read_all(info)) == IDS
    assert sum(len(tasks_of(fleet, e)) for e in info.endpoints) == 8 * 5


def test_a_filter_leaves_rows_of_manifests_and_residuals(client: fl.FlightClient) -> None:
    for text, kept in [
        ("id >= 130 AND id < 270", [i for i in IDS if 130 <= i < 270]),
        ("region = 'eu' AND id > 10", [i for i in IDS if 10 < i < 200]),
        ("region IS NULL", [i for i in IDS if i >= 200]),
        ("id < 0", []),
    ]:
        assert ids(read_all(client.get_flight_info(command(filter=text)))) == kept


def test_a_limit_is_kept(client: fl.FlightClient) -> None:
    assert ids(read_all(client.get_flight_info(command(limit=7)))) == IDS[:7]


def test_any_worker_and_the_coordinator_give_the_same(client: fl.FlightClient) -> None:
    for endpoint in client.get_flight_info(command()).endpoints:
        here, there = (read_endpoint(endpoint, location) for location in range(2))

        assert here.equals(there)
        assert here.equals(client.do_get(endpoint.ticket).read_all())


def test_a_stream_resumes_from_each_of_its_places_at_another_worker(
    client: fl.FlightClient,
) -> None:
    (endpoint,) = client.get_flight_info(command(limit=1000)).endpoints
    seen: list[int] = []
    with fl.connect(endpoint.locations[0]) as one, fl.connect(endpoint.locations[1]) as other:
        for chunk in one.do_get(endpoint.ticket):
            seen += ids(pa.Table.from_batches([chunk.data]))
            place = decode_place(chunk.app_metadata.to_pybytes())
            ticket = fl.Ticket(with_resume(endpoint.ticket.ticket, place))
            assert seen + ids(other.do_get(ticket).read_all()) == IDS


def test_python_clients_read_it(fleet: LocalFleet) -> None:
    with connect(fleet.location) as lake:
        rows = lake.table("db.orders").scan(ordered=True).to_arrow()

    assert ids(rows) == IDS


def test_manifests_that_are_gone_are_an_error_that_says_what_to_do(
    client: fl.FlightClient, orders: TableWriter, max_info_bytes: int
) -> None:
    info = client.get_flight_info(command())
    for path in (orders.metadata_path.parent).glob("*.avro"):
        path.unlink()

    if max_info_bytes == LISTED:
        assert ids(read_all(info)) == IDS
        return
    with pytest.raises((fl.FlightError, pa.ArrowException)) as raised:
        read_all(info)
    error = from_flight(raised.value)
    assert type(error) is StaleTicket
    assert "does not exist any more" in str(error)
    assert "call GetFlightInfo again" in str(error)


def test_a_plan_of_too_many_tasks_is_refused_with_advice(
    warehouse: Path, orders: TableWriter
) -> None:
    with (
        local_fleet(warehouse, max_tasks=39) as fleet,
        fl.connect(fleet.location) as client,
    ):
        with pytest.raises(pa.ArrowInvalid) as raised:
            client.get_flight_info(command())
        assert ids(read_all(client.get_flight_info(command(split_size=0)))) == IDS

    error = from_flight(raised.value)
    assert type(error) is PlanTooLarge
    assert "40 tasks, and at most 39" in str(error)
    assert "narrow the filter, or ask for a larger split_size" in str(error)
