"""Plans that nobody waits for any more, or that have had their time, while storage hangs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pyarrow.flight as fl
import pytest

from floeberg.protocol.actions import COUNT, EXPLAIN, FILES, PLAN, STATUS
from floeberg.protocol.errors import PlanTimeout
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.status import RunningPlan, Status
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.held import Holdup
from tests.support.lake import TableWriter
from tests.support.processes import environment
from tests.support.waiting import wait_until

ORDERS = fl.FlightDescriptor.for_path("db", "orders")
BODY = json.dumps({"table": "db.orders"}).encode()
SOON = fl.FlightCallOptions(timeout=0.3)

Call = Callable[[fl.FlightClient], object]

CALLS: dict[str, Call] = {
    "GetFlightInfo": lambda client: client.get_flight_info(ORDERS, SOON),
    **{
        action.name: lambda client, name=action.name: list(  # type: ignore[misc]
            client.do_action(fl.Action(name, BODY), SOON)
        )
        for action in (PLAN, FILES, EXPLAIN, COUNT)
    },
}


@pytest.fixture
def holdup() -> Iterator[Holdup]:
    """Holds up every manifest, and no list of them."""
    holdup = Holdup("-m0.avro")
    yield holdup
    holdup.release()


@pytest.fixture
def fleet(warehouse: Path, orders: TableWriter, holdup: Holdup) -> Iterator[LocalFleet]:
    with local_fleet(warehouse, workers=1, open_storage=holdup.storage) as fleet:
        yield fleet


def status_of(fleet: LocalFleet) -> Status:
    with fl.connect(fleet.location) as client:
        (result,) = client.do_action(fl.Action(STATUS.name, b""))
        return STATUS.parse_reply(result.body.to_pybytes())


def wait_for_plan(fleet: LocalFleet, holdup: Holdup) -> RunningPlan:
    """Return the only plan once it waits for a manifest."""

    def waiting() -> tuple[RunningPlan, ...]:
        return tuple(p for p in status_of(fleet).plans if holdup.held and p.manifests)

    (plan,) = wait_until(waiting, "a plan to wait for a manifest")
    return plan


def rest_plans(fleet: LocalFleet) -> str:
    http = fleet.coordinator.addresses()["http"]
    return f"{http}/v1/warehouse/namespaces/db/tables/orders/plan"


def wait_for_no_plan(fleet: LocalFleet) -> None:
    wait_until(lambda: not status_of(fleet).plans, "the plan to end")


@pytest.mark.parametrize("name", CALLS)
def test_a_plan_ends_with_the_deadline_of_its_client_while_a_read_hangs(
    fleet: LocalFleet, holdup: Holdup, name: str
) -> None:
    with fl.connect(fleet.location) as client:
        while not holdup.held:  # a busy machine may take the deadline to come so far
            with pytest.raises(fl.FlightTimedOutError):
                CALLS[name](client)

    wait_for_no_plan(fleet)
    assert holdup.held > 0
    assert bool(status_of(fleet).queries["cancelled"]) == (name == "GetFlightInfo")


@contextmanager
def client_process(fleet: LocalFleet) -> Iterator[None]:
    """Run a client that asks for a plan, and kill it at the end of the block."""
    asks = (
        "import sys, pyarrow.flight as fl;"
        "fl.connect(sys.argv[1]).get_flight_info(fl.FlightDescriptor.for_path('db', 'orders'))"
    )
    client = subprocess.Popen([sys.executable, "-c", asks, fleet.location], env=environment())
    try:
        yield
    finally:
        client.kill()
        client.wait()


def test_a_plan_ends_when_its_client_is_killed(fleet: LocalFleet, holdup: Holdup) -> None:
    with client_process(fleet):
        wait_for_plan(fleet, holdup)

    wait_for_no_plan(fleet)
    assert holdup.held > 0


def test_a_plan_that_waits_for_what_another_plan_reads_ends_alone(
    fleet: LocalFleet, holdup: Holdup
) -> None:
    with (
        fl.connect(fleet.location) as patient,
        fl.connect(fleet.location) as hasty,
        ThreadPoolExecutor(1) as pool,
    ):
        answer = pool.submit(patient.get_flight_info, ORDERS)
        wait_for_plan(fleet, holdup)
        with pytest.raises(fl.FlightTimedOutError):
            hasty.get_flight_info(ORDERS, SOON)

        wait_until(lambda: len(status_of(fleet).plans) == 1, "the hasty plan to end")
        holdup.release()
        assert answer.result(20).total_records == 800


def test_a_plan_takes_over_what_another_plan_no_longer_reads(
    fleet: LocalFleet, holdup: Holdup
) -> None:
    def both_wait() -> bool:
        return len([plan for plan in status_of(fleet).plans if plan.manifests]) == 2

    with fl.connect(fleet.location) as client, ThreadPoolExecutor(1) as pool:
        with client_process(fleet):
            wait_for_plan(fleet, holdup)
            answer = pool.submit(client.get_flight_info, ORDERS)
            wait_until(both_wait, "both plans to wait for manifests")
        wait_until(lambda: len(status_of(fleet).plans) == 1, "the killed client's plan to end")
        holdup.release()
        assert answer.result(20).total_records == 800


def test_a_schema_whose_client_left_is_not_waited_for(warehouse: Path, orders: TableWriter) -> None:
    holdup = Holdup("metadata.json")
    catalog = WarehouseCatalog("warehouse", str(warehouse), storage_factory=holdup.storage)
    with local_fleet(Catalogs([catalog]), workers=0) as fleet:
        with fl.connect(fleet.location) as client:
            while not holdup.held:
                with pytest.raises((fl.FlightError, OSError)):
                    client.get_schema(ORDERS, SOON)
        wait_for_no_plan(fleet)
        assert holdup.held > 0
        holdup.release()


def test_a_plan_that_has_had_its_time_says_so(
    warehouse: Path, orders: TableWriter, holdup: Holdup
) -> None:
    with (
        local_fleet(warehouse, 1, holdup.storage, plan_seconds=0.2) as fleet,
        fl.connect(fleet.location) as client,
    ):
        while not holdup.held:
            with pytest.raises(fl.FlightTimedOutError) as raised:
                client.get_flight_info(ORDERS)
            assert isinstance(from_flight(raised.value), PlanTimeout)

        wait_for_no_plan(fleet)
        assert holdup.held > 0
        holdup.release()


def test_running_plans_are_told_of_in_status_and_metrics(fleet: LocalFleet, holdup: Holdup) -> None:
    def plans_counted() -> str:
        text = httpx.get(f"{fleet.coordinator.addresses()['http']}/metrics").text
        return next(t for t in text.splitlines() if t.startswith("floeberg_plans_running "))

    with fl.connect(fleet.location) as client, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: list(client.do_action(fl.Action(PLAN.name, BODY))))
        plan = wait_for_plan(fleet, holdup)

        assert (plan.table, plan.phase) == ("db.orders", "read manifests")
        assert (plan.manifests, plan.manifests_read) == (8, 0)
        assert plans_counted() == "floeberg_plans_running 1.0"
        holdup.release()
        (page,) = [PLAN.parse_reply(r.body.to_pybytes()) for r in answer.result(10)]
        assert len(page.tasks) == 8
    wait_for_no_plan(fleet)
    assert plans_counted() == "floeberg_plans_running 0.0"


def test_a_plan_of_a_rest_client_ends_when_the_client_leaves(
    warehouse: Path, orders: TableWriter, holdup: Holdup
) -> None:
    with local_fleet(warehouse, 0, holdup.storage, rest_planning=True) as fleet:
        while not holdup.held:  # a busy machine may take the timeout to come so far
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(rest_plans(fleet), json={}, timeout=0.5)

        wait_for_no_plan(fleet)
        assert holdup.held > 0
        holdup.release()


def test_a_plan_of_a_rest_client_ends_when_it_is_cancelled(
    warehouse: Path, orders: TableWriter, holdup: Holdup
) -> None:
    flags = {"rest_planning": True, "rest_wait_seconds": 0}
    with local_fleet(warehouse, 0, holdup.storage, **flags) as fleet:
        plans = rest_plans(fleet)
        plan_id = httpx.post(plans, json={}).json()["plan-id"]
        wait_for_plan(fleet, holdup)

        httpx.delete(f"{plans}/{plan_id}")

        wait_for_no_plan(fleet)
        assert holdup.held > 0
        assert httpx.get(f"{plans}/{plan_id}").json() == {"status": "cancelled"}
        holdup.release()
