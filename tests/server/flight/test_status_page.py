"""The coordinator's page shows what the coordinator knows."""

from __future__ import annotations

import json

import httpx
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.process.page.layout import whole_page
from floeberg.protocol.status import PlanFacts, QueryEntry, Status, WorkerEntry
from floeberg.server.flight.status_page import coordinator_page
from tests.support.fleet import LocalFleet, read_all
from tests.support.html_page import Element, facts, parse_page, tables

HOSTILE = "<img src=x onerror=alert(1)>"
WEST = fl.FlightDescriptor.for_command(
    json.dumps({"table": "db.orders", "filter": "region = 'us'"})
)


def page_of(fleet: LocalFleet) -> Element:
    return parse_page(httpx.get(f"{fleet.coordinator.addresses()['http']}/status").text)


def test_the_numbers_are_those_of_the_fleet(fleet: LocalFleet, client: fl.FlightClient) -> None:
    info = client.get_flight_info(WEST)
    read_all(info)
    with pytest.raises(pa.ArrowKeyError):
        client.get_flight_info(fl.FlightDescriptor.for_path("db", "none"))

    page = page_of(fleet)

    assert facts(page)["workers ready"] == "2"
    assert facts(page)["scans since the start"] == "2"
    assert facts(page)["calls that failed"] == "1"
    found = tables(page)
    workers = found["The workers of this coordinator, as they said last"]
    assert {w["location"] for w in workers} == {w.location for w in fleet.workers}
    assert all(w["streams"] == "0 of 32" and w["state"] == "ready" for w in workers)
    failed, planned = found["The last queries, the newest first"]
    assert (failed["table"], failed["outcome"]) == ("db.none", "UNKNOWN_TABLE")
    assert (planned["table"], planned["outcome"], planned["tasks"]) == ("db.orders", "planned", "4")
    assert planned["endpoints"] == str(len(info.endpoints))
    assert planned["manifests ruled out"] == "0 of 8"
    assert planned["files ruled out"] == "4 of 8"
    assert found["Failed calls by code"] == [{"code": "UNKNOWN_TABLE", "calls": "1"}]


def test_the_json_has_the_facts_of_the_status_action(
    fleet: LocalFleet, client: fl.FlightClient
) -> None:
    client.get_flight_info(WEST)

    answer = httpx.get(f"{fleet.coordinator.addresses()['http']}/status.json")

    assert answer.headers["content-type"] == "application/json"
    status = Status.model_validate_json(answer.text, extra="forbid")
    assert status.coordinator_id == fleet.coordinator.members.coordinator_id
    assert [q.table for q in status.recent] == ["db.orders"]


def test_no_filter_and_no_secret_is_on_the_page(fleet: LocalFleet, client: fl.FlightClient) -> None:
    with pytest.raises(pa.ArrowInvalid):
        client.get_flight_info(
            fl.FlightDescriptor.for_command(
                json.dumps({"table": "db.orders", "filter": "id = 'ann@example.com'"})
            )
        )
    http = fleet.coordinator.addresses()["http"]

    for path in ("/status", "/status.json"):
        text = httpx.get(f"{http}{path}").text
        assert "ann@example.com" not in text
        assert fleet.keys.to_text().split(":")[1].strip() not in text


def status(**given: object) -> Status:
    return Status.model_validate(
        {
            "coordinator_id": HOSTILE,
            "version": HOSTILE,
            "started_ms": 0,
            "uptime_seconds": 1,
            "workers": (),
            "catalogs": (),
            "queries": {},
            **given,
        }
    )


def shown(found: Status) -> Element:
    page = coordinator_page(found)
    return parse_page(whole_page(page.title, page.heading, page.content))


def worker(http_address: str) -> WorkerEntry:
    return WorkerEntry(
        worker_id=HOSTILE,
        location=HOSTILE,
        state="draining",
        version=HOSTILE,
        zone=HOSTILE,
        http_address=http_address,
        max_streams=1,
        streams=1,
        max_bytes=0,
        bytes_in_flight=0,
        last_seen_ms=0,
    )


def test_whatever_others_name_is_text() -> None:
    query = QueryEntry(
        kind="scan",
        table=HOSTILE,
        principal=HOSTILE,
        outcome="failed",
        code=HOSTILE,
        began_ms=0,
        seconds=0,
        plan=PlanFacts(tasks=1, bytes=1, endpoints=1, counters={}),
    )

    page = shown(status(workers=[worker("x")], recent=[query], errors={HOSTILE: 1}))

    assert not list(page.all("img"))
    assert page.text.count(HOSTILE) >= 8


@pytest.mark.parametrize(
    ("address", "is_link"),
    [
        ("http://10.0.0.7:8080", True),
        ("http://[fd00::1]:80", True),
        ("http://0.0.0.0:8080", False),
        ("javascript:alert(1)", False),
        ("http://x/y'onclick=z", False),
    ],
)
def test_a_worker_s_page_is_a_link_where_a_browser_can_follow(address: str, is_link: bool) -> None:
    links = list(shown(status(workers=[worker(address)])).the("main").all("a"))

    assert [a.attributes["href"] for a in links] == ([f"{address}/status"] if is_link else [])


def test_an_idle_coordinator_says_what_is_missing() -> None:
    text = shown(status()).text

    assert "NO_WORKERS" in text
    assert "None since the start." in text
