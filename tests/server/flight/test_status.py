"""What a coordinator tells of itself is what has happened."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.protocol.actions import COUNT, EXPLAIN, PLAN, STATUS
from floeberg.protocol.status import PlanFacts, Status
from tests.support.fleet import LocalFleet, read_all
from tests.support.lake import TableWriter
from tests.support.waiting import wait_until

WEST = json.dumps({"table": "db.orders", "filter": "region = 'us'"}).encode()


def status_of(client: fl.FlightClient) -> Status:
    (result,) = client.do_action(fl.Action(STATUS.name, b""))
    return STATUS.parse_reply(result.body.to_pybytes())


def test_a_query_is_remembered_with_what_its_plan_kept_and_ruled_out(
    client: fl.FlightClient, orders: TableWriter
) -> None:
    info = client.get_flight_info(fl.FlightDescriptor.for_command(WEST))

    (query,) = status_of(client).recent
    assert (query.kind, query.table, query.outcome) == ("scan", "db.orders", "planned")
    assert query.plan is not None
    assert query.plan == PlanFacts(
        tasks=4,
        bytes=info.total_bytes,
        endpoints=len(info.endpoints),
        counters=json.loads(info.app_metadata)["counters"],
    )
    assert query.plan.counters["files_skipped_by_metrics"] == 4
    assert "us" not in query.model_dump_json()


@pytest.mark.parametrize(
    ("action", "kind"), [(PLAN.name, "plan"), (EXPLAIN.name, "explain"), (COUNT.name, "count")]
)
def test_what_is_asked_without_reading_is_told_apart(
    client: fl.FlightClient, action: str, kind: str
) -> None:
    list(client.do_action(fl.Action(action, WEST)))

    (query,) = status_of(client).recent
    assert (query.kind, query.outcome) == (kind, "planned")
    assert query.plan is None or query.plan.endpoints is None


def test_a_query_that_failed_is_told_by_its_code_alone(client: fl.FlightClient) -> None:
    for text in ("nothing = 'secret'", "id = 'secret'"):
        bad = json.dumps({"table": "db.orders", "filter": text})
        with pytest.raises(pa.ArrowInvalid):
            client.get_flight_info(fl.FlightDescriptor.for_command(bad))
    with pytest.raises(pa.ArrowKeyError):
        client.get_flight_info(fl.FlightDescriptor.for_path("db", "none"))

    status = status_of(client)

    codes = [(q.outcome, q.code) for q in status.recent]
    assert codes == [
        ("failed", "UNKNOWN_TABLE"),
        ("failed", "BAD_LITERAL"),
        ("failed", "UNKNOWN_COLUMN"),
    ]
    assert status.errors == {"BAD_LITERAL": 1, "UNKNOWN_COLUMN": 1, "UNKNOWN_TABLE": 1}
    assert status.queries == {"planned": 0, "failed": 3, "cancelled": 0}
    assert "secret" not in status.model_dump_json()


def test_looking_at_schemas_is_no_query(client: fl.FlightClient) -> None:
    client.get_schema(fl.FlightDescriptor.for_path("db", "orders"))
    list(client.list_flights())

    assert status_of(client).recent == ()


def test_caches_tell_how_often_they_helped(client: fl.FlightClient) -> None:
    for _ in range(2):
        client.get_flight_info(fl.FlightDescriptor.for_command(WEST))

    caches = {c.name: c for c in status_of(client).caches}
    manifests = caches["manifests in memory"]
    assert manifests.misses > 0
    assert manifests.hits >= manifests.misses
    assert manifests.size_bytes
    assert caches["table metadata"].hits == 1


def test_workers_tell_their_load_and_lease(fleet: LocalFleet, client: fl.FlightClient) -> None:
    read_all(client.get_flight_info(fl.FlightDescriptor.for_path("db", "orders")))

    rows = [w.status()["rows"] for w in fleet.workers]
    wait_until(lambda: all(w.lease_seconds > 0 for w in status_of(client).workers), "a lease")
    assert sum(int(str(n)) for n in rows) == 800
    assert all(w.lease_seconds <= 10 for w in status_of(client).workers)
