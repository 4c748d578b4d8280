"""Queries that wait for workers: for the first one, and for room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow.flight as fl
import pytest
from adbc_driver_flightsql import dbapi

from floeberg.process.http import new_registry
from floeberg.protocol.errors import Cancelled, FleetBusy
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.sealing import Keyring
from floeberg.server.flight.endpoints import WAITING_FOR_WORKERS, Endpoints, ScanPolicy
from floeberg.server.flight.members import Members
from floeberg.server.planning import PlanRun
from tests.support.fleet import LocalFleet, local_fleet, read_all
from tests.support.gate import Gate
from tests.support.lake import TableWriter
from tests.support.waiting import wait_until

ORDERS = fl.FlightDescriptor.for_path("db", "orders")
LONG_LEASE = 3600.0


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate(rows=1)
    yield gate
    gate.let_through(10)


def sum_of_ids(fleet: LocalFleet) -> int:
    with dbapi.connect(fleet.location, autocommit=True) as con, con.cursor() as cursor:
        cursor.execute("SELECT sum(id) FROM db.orders")
        ((total,),) = cursor.fetchall()
    return int(total)


def rows_of_orders(fleet: LocalFleet) -> int:
    with fl.connect(fleet.location) as client:
        return read_all(client.get_flight_info(ORDERS)).num_rows


def waits(fleet: LocalFleet) -> bool:
    plans = fleet.coordinator._facts.status().plans
    return [plan.phase for plan in plans] == [WAITING_FOR_WORKERS]


@pytest.mark.parametrize(("ask", "answer"), [(sum_of_ids, 319_600), (rows_of_orders, 800)])
def test_a_young_coordinator_s_first_query_waits_for_a_worker_and_holds_up_nobody(
    warehouse: Path,
    orders: TableWriter,
    pool: ThreadPoolExecutor,
    ask: Callable[[LocalFleet], int],
    answer: int,
) -> None:
    with local_fleet(warehouse, workers=0, lease_seconds=LONG_LEASE) as fleet:
        asked: Future[int] = pool.submit(ask, fleet)
        wait_until(lambda: waits(fleet), "the query to wait")

        with fl.connect(fleet.location) as client:
            assert client.get_schema(ORDERS) is not None
        fleet.add_worker()

        assert asked.result(20) == answer


def test_a_query_in_sql_waits_for_room_and_a_scan_does_not(
    warehouse: Path, orders: TableWriter, pool: ThreadPoolExecutor, gate: Gate
) -> None:
    with (
        local_fleet(warehouse, workers=0, lease_seconds=LONG_LEASE) as fleet,
        fl.connect(fleet.location) as client,
    ):
        worker = fleet.add_worker(gate, max_streams=1)
        ticket = client.get_flight_info(ORDERS).endpoints[0].ticket
        with fl.connect(worker.location) as reader:
            stream = reader.do_get(ticket)
            members = fleet.coordinator.members
            wait_until(lambda: members.with_room()[1], "the coordinator to know of it")
            asked: Future[int] = pool.submit(one_region, fleet)
            wait_until(lambda: waits(fleet), "the query to wait")

            with pytest.raises(fl.FlightUnavailableError) as refused:
                client.get_flight_info(ORDERS)
            gate.let_through(10)
            stream.read_all()

        assert type(from_flight(refused.value)) is FleetBusy
        assert asked.result(20) == 1


def one_region(fleet: LocalFleet) -> int:
    with dbapi.connect(fleet.location, autocommit=True) as con, con.cursor() as cursor:
        cursor.execute("SELECT region FROM db.orders LIMIT 1")
        return len(cursor.fetchall())


def test_a_query_whose_client_leaves_waits_no_longer() -> None:
    keys = Keyring.generate()
    endpoints = Endpoints(Members(keys, 3600.0, new_registry()), keys, ScanPolicy())

    with pytest.raises(Cancelled):
        endpoints.admit(PlanRun(is_cancelled=lambda: True))
