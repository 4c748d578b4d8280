"""The worker's page shows what the worker is doing."""

from __future__ import annotations

from pathlib import Path

import httpx
import pyarrow.flight as fl
import pytest

from floeberg.process.config import load_config
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.status import WorkerStatus
from floeberg.protocol.tickets import seal_ticket
from floeberg.worker.config import WorkerConfig
from floeberg.worker.process import WorkerService
from tests.support.gate import NO_HURRY, Gate, now_ms
from tests.support.html_page import Element, facts, parse_page, tables
from tests.support.lake import TableWriter, required, schema
from tests.support.plans import plan_of
from tests.support.waiting import wait_until

KEYS = Keyring.generate()
RUNNING = "Streams under way, the oldest first"
ENDED = "The last streams that ended, the newest first"


@pytest.fixture
def ticket(tmp_path: Path) -> fl.Ticket:
    table = TableWriter.create(tmp_path / "orders", schema({"id": required("long")}))
    plan = plan_of(table, table.append([{"id": i} for i in range(10)]))
    sealed = seal_ticket(plan, KEYS, principal="ann", expires_at_ms=now_ms() + 60_000)
    return fl.Ticket(sealed)


def http(worker: WorkerService) -> str:
    return str(worker.addresses()["http"])


def page_of(worker: WorkerService) -> Element:
    return parse_page(httpx.get(f"{http(worker)}/status").text)


def test_streams_are_shown_under_way_and_afterwards(ticket: fl.Ticket) -> None:
    gate = Gate(rows=3)
    flags = {"key": KEYS.to_text(), "drain_seconds": 0, "zone": "z1", "max_streams": 7}
    worker = WorkerService(load_config(WorkerConfig, flags=flags), gate)
    worker.start()
    try:
        with fl.connect(worker.location) as client:
            reader = client.do_get(ticket)
            gate.let_through(2)
            reader.read_chunk()
            wait_until(lambda: worker.status()["rows"], "a row to be counted")

            page = page_of(worker)
            gate.let_through(1)
            reader.read_all()
        wait_until(lambda: not worker.status()["streams"], "the stream to end")
        after = page_of(worker)
        facts_json = httpx.get(f"{http(worker)}/status.json").text
    finally:
        worker.stop(NO_HURRY)

    assert facts(page)["streams"] == "1"
    (running,) = tables(page)[RUNNING]
    assert (running["for"], running["state"], running["task"]) == ("ann", "sending", "1 of 1")
    assert running["table"].endswith("/orders")
    assert ENDED not in tables(page)
    (ended,) = tables(after)[ENDED]
    assert (ended["state"], ended["rows"]) == ("done", "3")
    status = WorkerStatus.model_validate_json(facts_json, extra="forbid")
    assert (status.rows, status.ended, status.zone) == (3, {"done": 1}, "z1")
    assert status.max_streams == 7
    assert [s.principal for s in status.recent] == ["ann"]


def test_a_worker_without_streams_says_so_and_what_failed(ticket: fl.Ticket) -> None:
    flags = {"key": KEYS.to_text(), "coordinator": ["grpc://127.0.0.1:1"]}
    worker = WorkerService(load_config(WorkerConfig, flags=flags))
    worker.start()
    try:
        with fl.connect(worker.location) as client, pytest.raises(fl.FlightError):
            client.do_get(fl.Ticket(ticket.ticket[:-1])).read_all()
        page = page_of(worker)
    finally:
        worker.stop(NO_HURRY)

    assert facts(page)["streams since the start"] == "1"
    assert tables(page)["Failed calls by code"] == [{"code": "BAD_TICKET", "calls": "1"}]
    seats = tables(page)["Coordinators that this worker was told of"]
    assert seats == [{"coordinator": "grpc://127.0.0.1:1", "state": "not registered"}]
