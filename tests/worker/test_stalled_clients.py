"""Clients that open streams and don't read them: what they cost, and how that ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.process.config import load_config
from floeberg.protocol.errors import Unavailable
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.storage import Storage
from floeberg.protocol.tickets import seal_ticket
from floeberg.worker.config import WorkerConfig
from floeberg.worker.process import WorkerService
from floeberg.worker.reading import PlacedBatch
from tests.support.gate import NO_HURRY, now_ms
from tests.support.idle import SMALL_WINDOW
from tests.support.lake import TableWriter, required, schema
from tests.support.plans import plan_of
from tests.support.waiting import wait_until

KEYS = Keyring.generate()
ROWS = 1 << 17


class Flood:
    """Stands in for reading: batches of a MiB without end."""

    def __init__(self) -> None:
        self.batches = 0

    def __call__(
        self, plan: ReadPlan, storage: Storage, *, resume: ResumePlace
    ) -> Iterator[PlacedBatch]:
        ids = pa.array(range(ROWS), pa.int64())
        columns = pa.schema([pa.field("id", pa.int64(), nullable=False)])
        while True:
            self.batches += 1
            yield PlacedBatch(pa.RecordBatch.from_arrays([ids], schema=columns), ResumePlace(0, 0))


@pytest.fixture(autouse=True)
def no_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "tracebacklimit", 0, raising=False)


@pytest.fixture
def ticket(tmp_path: Path) -> fl.Ticket:
    table = TableWriter.create(tmp_path / "t", schema({"id": required("long")}))
    plan = plan_of(table, table.append([{"id": 1}]))
    return fl.Ticket(seal_ticket(plan, KEYS, principal=None, expires_at_ms=now_ms() + 600_000))


@pytest.fixture
def flood() -> Flood:
    return Flood()


def serve(flood: Flood, **flags: object) -> WorkerService:
    values = {"key": KEYS.to_text(), "drain_seconds": 0, **flags}
    worker = WorkerService(load_config(WorkerConfig, flags=values), flood)
    worker.start()
    return worker


def streams_of(worker: WorkerService) -> object:
    return worker.status()["streams"]


def test_a_client_that_takes_nothing_costs_little_and_is_cut_off_after_the_deadline(
    flood: Flood, ticket: fl.Ticket
) -> None:
    worker = serve(flood, stall_seconds=2.0)
    try:
        with fl.connect(worker.location, generic_options=SMALL_WINDOW) as client:
            reader = client.do_get(ticket)

            wait_until(lambda: flood.batches > 0, "it to begin")
            wait_until(lambda: flood.batches and streams_of(worker) == 0, "the stream to be cut")

            assert flood.batches < 40
            with pytest.raises((fl.FlightError, pa.ArrowException, OSError)) as raised:
                reader.read_all()
            assert isinstance(from_flight(raised.value), Unavailable)
            (ended,) = worker.status()["recent"]  # type: ignore[misc]
            assert ended["outcome"] == "cancelled"
    finally:
        worker.stop(NO_HURRY)


def test_a_client_that_reads_one_stream_may_keep_another_waiting(
    flood: Flood, ticket: fl.Ticket
) -> None:
    worker = serve(flood, stall_seconds=1.0)
    try:
        with fl.connect(worker.location, generic_options=SMALL_WINDOW) as client:
            late, early = client.do_get(ticket), client.do_get(ticket)

            def has_waited() -> bool:
                early.read_chunk()
                running = worker.status()["running"]
                return any(s["waits_seconds"] > 3.0 for s in running)  # type: ignore[attr-defined]

            wait_until(has_waited, "the late stream to wait for longer than the deadline")

            assert streams_of(worker) == 2
            assert late.read_chunk().data.num_rows == ROWS
            late.cancel()
            early.cancel()
    finally:
        worker.stop(NO_HURRY)
