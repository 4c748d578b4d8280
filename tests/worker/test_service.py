"""A worker behind Flight, in this process, with a stock client before it."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.process.auth import Principal
from floeberg.process.config import load_config
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.errors import (
    BadConfig,
    BadTicket,
    ExpiredTicket,
    InternalError,
    MissingFile,
    ServerUnavailable,
    WorkerBusy,
)
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.status import StreamEntry, WorkerStatus
from floeberg.protocol.storage import Storage
from floeberg.protocol.tickets import decode_place, seal_ticket, with_resume
from floeberg.worker.config import WorkerConfig
from floeberg.worker.process import WorkerService
from floeberg.worker.service import without_others
from floeberg.worker.streams import Placed
from tests.support.gate import NO_HURRY, Gate, now_ms
from tests.support.lake import TableWriter, required, schema
from tests.support.plans import plan_of
from tests.support.waiting import wait_until

KEYS = Keyring.generate()


def ticket_of(plan: ReadPlan, keys: Keyring = KEYS, lasts_ms: int = 60_000) -> bytes:
    return seal_ticket(plan, keys, principal=None, expires_at_ms=now_ms() + lasts_ms)


Serve = Callable[..., WorkerService]


@pytest.fixture(autouse=True)
def no_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "tracebacklimit", 0, raising=False)


@pytest.fixture
def serve() -> Iterator[Serve]:
    running: list[WorkerService] = []

    def start(read: object = None, **flags: object) -> WorkerService:
        values = {"key": KEYS.to_text(), "drain_seconds": 0, **flags}
        config = load_config(WorkerConfig, flags=values)
        worker = WorkerService(config, read) if read else WorkerService(config)  # type: ignore[arg-type]
        running.append(worker)
        worker.start()
        return worker

    yield start
    for worker in running:
        worker.stop(NO_HURRY)


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    return TableWriter.create(
        tmp_path / "orders", schema({"id": required("long"), "name": "string"})
    )


@pytest.fixture
def plan(table: TableWriter) -> ReadPlan:
    """Three files of 100 rows each; ids count on from file to file."""
    files = [
        *table.append([{"id": i, "name": f"n{i}"} for i in range(100)]),
        *table.append([{"id": i, "name": f"n{i}"} for i in range(100, 200)]),
        *table.append([{"id": i, "name": f"n{i}"} for i in range(200, 300)]),
    ]
    return plan_of(table, files)


def streams_of(worker: WorkerService) -> object:
    return worker.status()["streams"]


# --- rows ----------------------------------------------------------------------------------------


def test_a_ticket_gives_its_rows_in_its_schema_and_any_worker_the_same(
    serve: Serve, plan: ReadPlan
) -> None:
    ticket = fl.Ticket(ticket_of(plan))

    tables = []
    for worker in (serve(), serve()):
        with fl.connect(worker.location) as client:
            tables.append(client.do_get(ticket).read_all())

    assert tables[0].schema.equals(arrow_schema(plan.projection), check_metadata=True)
    assert tables[0]["id"].to_pylist() == list(range(300))
    assert tables[0].equals(tables[1])


def test_each_batch_says_where_to_go_on_after_it(serve: Serve, plan: ReadPlan) -> None:
    raw = ticket_of(plan)
    with fl.connect(serve().location) as client:
        reader = client.do_get(fl.Ticket(raw))
        chunk = reader.read_chunk()
        place = decode_place(chunk.app_metadata.to_pybytes())
        reader.cancel()

        rest = client.do_get(fl.Ticket(with_resume(raw, place))).read_all()

    assert place == ResumePlace(1, 0)
    assert rest["id"].to_pylist() == list(range(chunk.data.num_rows, 300))


def test_a_plan_without_tasks_is_an_empty_stream_with_the_schema(
    serve: Serve, table: TableWriter
) -> None:
    plan = plan_of(table, [])
    with fl.connect(serve().location) as client:
        empty = client.do_get(fl.Ticket(ticket_of(plan))).read_all()

    assert empty.num_rows == 0
    assert empty.schema == arrow_schema(plan.projection)


# --- refusals ------------------------------------------------------------------------------------


def test_tickets_that_are_no_good_are_refused_by_name_and_the_worker_goes_on(
    serve: Serve, plan: ReadPlan
) -> None:
    good = ticket_of(plan)
    flipped = bytearray(good)
    flipped[-20] ^= 1
    bad = {
        b"": BadTicket,
        b"nonsense": BadTicket,
        good[:-1]: BadTicket,
        bytes(flipped): BadTicket,
        ticket_of(plan, Keyring.generate()): BadTicket,
        ticket_of(plan, lasts_ms=-5000): ExpiredTicket,
        with_resume(good, ResumePlace(9, 9)): BadTicket,
    }
    with fl.connect(serve().location) as client:
        for raw, expected in bad.items():
            with pytest.raises((fl.FlightError, pa.ArrowException)) as raised:
                client.do_get(fl.Ticket(raw))
            assert type(from_flight(raised.value)) is expected
            assert "Traceback" not in str(raised.value)
            assert ".py" not in str(raised.value)

        assert client.do_get(fl.Ticket(good)).read_all().num_rows == 300


def test_a_full_worker_refuses_before_the_first_message_and_never_queues(
    serve: Serve, plan: ReadPlan
) -> None:
    gate = Gate()
    worker = serve(gate, max_streams=1)
    ticket = fl.Ticket(ticket_of(plan))
    with fl.connect(worker.location) as client:
        first = client.do_get(ticket)

        with pytest.raises(fl.FlightUnavailableError) as raised:
            client.do_get(ticket)
        assert type(from_flight(raised.value)) is WorkerBusy

        gate.let_through(gate.rows)
        assert first.read_all().num_rows == gate.rows
        wait_until(lambda: streams_of(worker) == 0, "the stream's place to be free")
        gate.let_through(gate.rows)
        assert client.do_get(ticket).read_all().num_rows == gate.rows


def test_a_file_that_is_gone_is_named_in_the_middle_of_the_stream(
    serve: Serve, table: TableWriter, plan: ReadPlan
) -> None:
    gone = plan.tasks[1].data_file.location
    Path(gone.removeprefix("file://")).unlink()
    worker = serve()
    with fl.connect(worker.location) as client:
        reader = client.do_get(fl.Ticket(ticket_of(plan)))
        assert reader.read_chunk().data.num_rows == 100
        with pytest.raises(fl.FlightError) as raised:
            reader.read_chunk()

    error = from_flight(raised.value)
    assert isinstance(error, MissingFile)
    assert gone in str(error)
    assert "Traceback" not in str(raised.value)
    wait_until(lambda: streams_of(worker) == 0, "the failed stream to be given back")


def test_a_fault_of_the_worker_shows_nothing_of_its_inside(
    serve: Serve, plan: ReadPlan, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(plan: ReadPlan, storage: Storage, *, resume: ResumePlace) -> Iterator[Placed]:
        raise KeyError("a secret detail")
        yield

    with fl.connect(serve(fails).location) as client, pytest.raises(fl.FlightError) as raised:
        client.do_get(fl.Ticket(ticket_of(plan))).read_all()

    assert type(from_flight(raised.value)) is InternalError
    assert "secret" not in str(raised.value)
    assert "secret" in caplog.text


# --- clients that go -----------------------------------------------------------------------------


def test_a_cancelled_stream_ends_reading_and_gives_back_its_place(
    serve: Serve, plan: ReadPlan
) -> None:
    gate = Gate()
    worker = serve(gate)
    with fl.connect(worker.location) as client:
        reader = client.do_get(fl.Ticket(ticket_of(plan)))
        gate.let_through(1)
        reader.read_chunk()

        reader.cancel()

        wait_until(gate.closes_at_a_batch, "reading to end")
        wait_until(lambda: streams_of(worker) == 0, "the place to be given back")


def test_reading_stops_for_a_client_that_is_gone_though_no_batch_comes(
    serve: Serve, plan: ReadPlan
) -> None:
    asked = threading.Event()
    ended = threading.Event()

    def finds_nothing(plan: ReadPlan, storage: Storage, *, resume: ResumePlace) -> Iterator[Placed]:
        try:
            while True:
                asked.set()
                storage.is_directory("/")
        finally:
            ended.set()
        yield

    worker = serve(finds_nothing)
    with fl.connect(worker.location) as client:
        reader = client.do_get(fl.Ticket(ticket_of(plan)))
        assert asked.wait(20)
        reader.cancel()
        assert ended.wait(20)


def test_streams_that_are_cancelled_at_once_hold_no_place(serve: Serve, plan: ReadPlan) -> None:
    worker = serve(max_streams=1000)
    ticket = fl.Ticket(ticket_of(plan))
    with fl.connect(worker.location) as client:
        for _ in range(50):
            client.do_get(ticket).cancel()
        wait_until(lambda: streams_of(worker) == 0, "all places to be given back")


# --- stopping ------------------------------------------------------------------------------------


def test_a_draining_worker_finishes_its_streams_and_refuses_new_ones(
    serve: Serve, plan: ReadPlan
) -> None:
    gate = Gate()
    worker = serve(gate, drain_seconds=60)
    ticket = fl.Ticket(ticket_of(plan))
    with fl.connect(worker.location) as client:
        running = client.do_get(ticket)
        stopping = threading.Thread(target=worker.stop, args=(NO_HURRY,))
        stopping.start()
        wait_until(lambda: worker.status()["state"] == "draining", "draining to begin")

        with pytest.raises(fl.FlightUnavailableError) as raised:
            client.do_get(ticket)
        assert type(from_flight(raised.value)) is ServerUnavailable
        ready = httpx.get(f"{worker.addresses()['http']}/readyz")
        assert ready.status_code == 503

        gate.let_through(gate.rows)
        assert running.read_all().num_rows == gate.rows
        stopping.join(20)
        assert not stopping.is_alive()


def test_streams_beyond_the_deadline_end_with_an_error_to_resume_after(
    serve: Serve, plan: ReadPlan
) -> None:
    gate = Gate()
    worker = serve(gate, drain_seconds=0)
    with fl.connect(worker.location) as client:
        running = client.do_get(fl.Ticket(ticket_of(plan)))
        gate.let_through(1)
        running.read_chunk()
        stopping = threading.Thread(target=worker.stop, args=(NO_HURRY,))
        stopping.start()

        wait_until(gate.closes_at_a_batch, "the stream to be cut")
        with pytest.raises(fl.FlightUnavailableError, match=r"\[SERVER_UNAVAILABLE\]"):
            running.read_all()
        stopping.join(20)


# --- what can be seen ----------------------------------------------------------------------------


def test_each_storage_request_is_logged_with_its_location_and_bytes(
    serve: Serve, plan: ReadPlan, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "floeberg.process.storage")
    with fl.connect(serve().location) as client:
        client.do_get(fl.Ticket(ticket_of(plan))).read_all()

    asked = {r.__dict__["location"] for r in caplog.records if r.getMessage() == "storage request"}
    assert asked == {task.data_file.location for task in plan.tasks}


def test_the_worker_counts_what_it_sent(serve: Serve, plan: ReadPlan) -> None:
    worker = serve()
    with fl.connect(worker.location) as client:
        client.do_get(fl.Ticket(ticket_of(plan))).read_all()
        with pytest.raises(pa.ArrowInvalid):
            client.do_get(fl.Ticket(b"nonsense"))
    wait_until(lambda: streams_of(worker) == 0, "the stream to be counted")

    text = httpx.get(f"{worker.addresses()['http']}/metrics").text
    assert 'floeberg_worker_streams_total{outcome="done"} 1.0' in text
    assert 'floeberg_worker_streams_total{outcome="refused"} 1.0' in text
    assert "floeberg_worker_rows_total 300.0" in text


def test_a_worker_tells_its_status_and_knows_no_other_action(serve: Serve) -> None:
    worker = serve(max_streams=7)
    with fl.connect(worker.location) as client:
        (result,) = client.do_action(fl.Action("floeberg.worker-status", b""))
        names = [a.type for a in client.list_actions()]
        with pytest.raises(pa.ArrowInvalid, match=r"\[BAD_COMMAND\].*floeberg.worker-status"):
            list(client.do_action(fl.Action("floeberg.tables", b"")))

    status = json.loads(result.body.to_pybytes())
    assert (status["location"], status["max_streams"]) == (worker.location, 7)
    assert names == ["floeberg.worker-status", "floeberg.ask-worker"]


def test_an_address_in_use_is_a_mistake_in_the_configuration(serve: Serve) -> None:
    port = int(serve().location.rpartition(":")[2])

    with pytest.raises(BadConfig, match=f"cannot listen on .*:{port}"):
        serve(port=port)


def test_the_advertised_address_is_told_instead_of_the_bound_one(serve: Serve) -> None:
    worker = serve(advertise="worker-7.lake")

    assert worker.location.startswith("grpc+tcp://worker-7.lake:")
    assert not worker.location.endswith(":0")


def test_who_calls_sees_its_own_streams_alone():
    def stream(principal: str | None) -> StreamEntry:
        return StreamEntry.model_construct(table="db.orders", principal=principal)

    streams = (stream("ann"), stream("bob"), stream(None))
    status = WorkerStatus.model_construct(running=streams, recent=streams, streams=3)

    seen = without_others(status, Principal("ann", "token"))

    assert seen.running == seen.recent == streams[:1]
    assert seen.streams == 3
