"""Scans that a fleet has no room for, and which worker is asked while others are full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.flight as fl
import pytest

from floeberg.protocol.errors import FleetBusy, WorkerBusy
from floeberg.protocol.flight_errors import from_flight
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.gate import Gate
from tests.support.lake import TableWriter
from tests.support.waiting import wait_until

ORDERS = fl.FlightDescriptor.for_path("db", "orders")


def is_refused(client: fl.FlightClient) -> bool:
    try:
        client.get_flight_info(ORDERS)
    except fl.FlightUnavailableError as error:
        return type(from_flight(error)) is FleetBusy
    return False


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate(rows=1)
    yield gate
    gate.let_through(10)


# workers say by themselves when they are full: a lease as long as this is not renewed meanwhile
LONG_LEASE = {"lease_seconds": 3600.0}


def test_a_fleet_without_room_refuses_before_it_plans_and_plans_again_when_there_is_room(
    warehouse: Path, orders: TableWriter, gate: Gate
) -> None:
    with (
        local_fleet(warehouse, workers=0, **LONG_LEASE) as fleet,
        fl.connect(fleet.location) as client,
    ):
        worker = fleet.add_worker(gate, max_streams=1)
        ticket = client.get_flight_info(ORDERS).endpoints[0].ticket
        with fl.connect(worker.location) as reader:
            stream = reader.do_get(ticket)

            wait_until(lambda: is_refused(client), "the coordinator to know of the full worker")
            gate.let_through(1)
            stream.read_all()

        wait_until(lambda: not is_refused(client), "the coordinator to know of the room")


def test_where_it_is_so_configured_clients_find_out_at_the_workers(
    warehouse: Path, orders: TableWriter, gate: Gate
) -> None:
    with (
        local_fleet(warehouse, workers=0, refuse_when_full=False, **LONG_LEASE) as fleet,
        fl.connect(fleet.location) as client,
    ):
        worker = fleet.add_worker(gate, max_streams=1)
        ticket = client.get_flight_info(ORDERS).endpoints[0].ticket
        with fl.connect(worker.location) as reader:
            stream = reader.do_get(ticket)
            wait_until(lambda: told_streams(fleet) == [1], "the worker to say so")

            info = client.get_flight_info(ORDERS)

            with pytest.raises(fl.FlightUnavailableError) as refused:
                reader.do_get(info.endpoints[0].ticket)
            assert type(from_flight(refused.value)) is WorkerBusy
            stream.cancel()


def test_endpoints_begin_with_workers_that_have_room(
    warehouse: Path, orders: TableWriter, gate: Gate
) -> None:
    with (
        local_fleet(warehouse, workers=1, **LONG_LEASE) as fleet,
        fl.connect(fleet.location) as client,
    ):
        (free,) = fleet.workers
        full = fleet.add_worker(gate, max_streams=1)
        ticket = client.get_flight_info(ORDERS).endpoints[0].ticket
        with fl.connect(full.location) as reader:
            stream = reader.do_get(ticket)
            wait_until(lambda: sum(told_streams(fleet)) == 1, "the worker to say so")

            info = client.get_flight_info(ORDERS)

            assert {tuple(at.uri.decode() for at in e.locations) for e in info.endpoints} == {
                (free.location, full.location)
            }
            stream.cancel()


def told_streams(fleet: LocalFleet) -> list[int]:
    return [member.streams for member, _ in fleet.coordinator.members.all()]
