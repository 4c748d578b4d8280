"""One id names a request everywhere: answer, ticket, logs, errors and status of every process."""

from __future__ import annotations

import json
import logging
from typing import Any, cast

import httpx
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.client import connect
from floeberg.process.logs import JsonFormatter, _with_request
from floeberg.protocol.errors import BadTicket, NoWorkers, UnknownTable
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.tickets import open_ticket
from tests.support.fleet import LocalFleet, read_endpoint
from tests.support.gate import NO_HURRY, now_ms
from tests.support.waiting import wait_until

ORDERS = fl.FlightDescriptor.for_path("db", "orders")
TRACE = "0af7651916cd43dd8448eb211c80319c"


def options(**headers: str) -> fl.FlightCallOptions:
    pairs = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    return fl.FlightCallOptions(headers=cast(Any, pairs))


class Log(logging.Handler):
    """Formats records as a process does, in the thread that logs them."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(JsonFormatter())
        self.addFilter(_with_request)
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))

    def ids_of(self, message: str) -> set[str | None]:
        return {line.get("request_id") for line in self.lines if line["message"] == message}


@pytest.fixture
def log() -> Any:
    handler, logger = Log(), logging.getLogger("floeberg")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_a_request_has_one_id_in_the_answer_the_tickets_and_the_logs_of_both_sides(
    fleet: LocalFleet, client: fl.FlightClient, log: Log
) -> None:
    info = client.get_flight_info(ORDERS, options(x_request_id="nightly-7"))
    for endpoint in info.endpoints:
        read_endpoint(endpoint)  # a stock client, which sends no header here
    wait_until(
        lambda: sum(line["message"] == "stream ended" for line in log.lines) == len(info.endpoints),
        "the streams to end",
    )

    assert json.loads(info.app_metadata)["request_id"] == "nightly-7"
    opened = [open_ticket(e.ticket.ticket, fleet.keys, now_ms=now_ms()) for e in info.endpoints]
    assert {t.origin.request_id for t in opened} == {"nightly-7"}
    assert {t.origin.table for t in opened} == {"warehouse.db.orders"}
    for message in ("scan planned", "stream ended", "storage request"):
        assert log.ids_of(message) == {"nightly-7"}, message
    http = fleet.coordinator.addresses()["http"]
    recent = httpx.get(f"{http}/status.json").json()["recent"]
    assert [q["request_id"] for q in recent] == ["nightly-7"]
    streams = [s for w in fleet.workers for s in cast(Any, w.status()["recent"])]
    assert {s["request_id"] for s in streams} == {"nightly-7"}
    assert {s["table"] for s in streams} == {"warehouse.db.orders"}


def test_a_trace_that_comes_with_the_call_names_it_and_goes_on_in_the_ticket(
    fleet: LocalFleet, client: fl.FlightClient
) -> None:
    traceparent = f"00-{TRACE}-b7ad6b7169203331-01"

    info = client.get_flight_info(ORDERS, options(traceparent=traceparent))

    origin = open_ticket(info.endpoints[0].ticket.ticket, fleet.keys, now_ms=now_ms()).origin
    assert (origin.request_id, origin.traceparent) == (TRACE, traceparent)


def test_each_call_of_a_client_that_sends_no_header_has_an_id_of_its_own(
    client: fl.FlightClient,
) -> None:
    infos = [client.get_flight_info(ORDERS) for _ in range(3)]

    ids = {json.loads(info.app_metadata)["request_id"] for info in infos}
    assert len(ids) == 3
    assert all(len(i) == 16 for i in ids)


def test_an_error_of_a_server_names_the_request(fleet: LocalFleet, client: fl.FlightClient) -> None:
    for worker in fleet.workers:
        worker.stop(NO_HURRY)
    fleet.workers.clear()

    with pytest.raises(fl.FlightUnavailableError) as raised:
        client.get_flight_info(ORDERS, options(x_request_id="nightly-8"))

    error = from_flight(raised.value)
    assert isinstance(error, NoWorkers)
    assert error.request_id == "nightly-8"


def test_a_worker_s_refusal_names_the_request_of_the_ticket(
    fleet: LocalFleet, client: fl.FlightClient, log: Log
) -> None:
    with fl.connect(fleet.workers[0].location) as worker:
        with pytest.raises(pa.ArrowInvalid, match=BadTicket.code):
            worker.do_get(fl.Ticket(b"flb"), options(x_request_id="mine")).read_all()

        fleet.workers[0]._redeemer.drain()
        info = client.get_flight_info(ORDERS, options(x_request_id="planned"))
        with pytest.raises(fl.FlightUnavailableError) as raised:
            worker.do_get(info.endpoints[0].ticket, options(x_request_id="other")).read_all()

    assert from_flight(raised.value).request_id == "other"  # the ticket was not opened
    assert log.ids_of("stream refused") == {"mine", "other"}


def test_floeberg_s_client_knows_the_id_of_what_fails_whatever_the_error(
    fleet: LocalFleet, log: Log
) -> None:
    with connect(fleet.location) as lake:
        lake.table("db.orders").scan().to_arrow()
        with pytest.raises(UnknownTable) as raised:
            lake.table("db.none").scan().to_arrow()
        status = lake.status()

    failed, read = status.recent
    assert log.ids_of("query failed") == {failed.request_id}
    assert raised.value.request_id == failed.request_id
    assert len(str(read.request_id)) == 16
    assert log.ids_of("stream ended") == {read.request_id}


def test_http_requests_are_named_too(fleet: LocalFleet) -> None:
    http = fleet.coordinator.addresses()["http"]

    named = httpx.get(f"{http}/healthz", headers={"x-request-id": "probe-1"})
    unnamed = httpx.get(f"{http}/healthz")

    assert named.headers["x-request-id"] == "probe-1"
    assert len(unnamed.headers["x-request-id"]) == 16
