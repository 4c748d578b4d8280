"""Statements that wait for their turn at a worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.process.calling import ClientPool
from floeberg.process.http import new_registry
from floeberg.process.storage import open_storage
from floeberg.protocol.errors import (
    Cancelled,
    FloebergError,
    LimitExceeded,
    ServerUnavailable,
    WorkerBusy,
)
from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.sql_tickets import SqlTicket, seal_sql_ticket
from floeberg.protocol.storage import Storage
from floeberg.protocol.ticket_heads import NO_LIMITS, StreamLimits
from floeberg.worker.budget import Budget
from floeberg.worker.metrics import WorkerMetrics
from floeberg.worker.reading import PlacedBatch
from floeberg.worker.sql.engine import SqlEngine
from floeberg.worker.sql.inputs import Peers
from floeberg.worker.sql.shares import LEAST_BYTES, Share, Shares
from floeberg.worker.stream_log import StreamLog
from floeberg.worker.streams import Redeemer
from tests.support.gate import now_ms
from tests.support.waiting import wait_until

KEYS = Keyring.generate()
ONE = pa.schema([("n", pa.int64())])


def no_scan(plan: ReadPlan, storage: Storage, *, resume: ResumePlace) -> Iterator[PlacedBatch]:
    raise AssertionError("there is none")


class Worker:
    """Runs one statement at a time, and serves one stream."""

    def __init__(self) -> None:
        self.shares = Shares(LEAST_BYTES, 0)
        self.budget = Budget(1, 1 << 40)
        self.time_ms = now_ms()
        peers = Peers(ClientPool(), lambda caller: fl.FlightCallOptions(), lambda: "grpc://here:1")
        self.redeemer = Redeemer(
            KEYS,
            self.budget,
            WorkerMetrics(new_registry(), self.budget, {}),
            no_scan,
            open_storage,
            StreamLog(),
            sql=SqlEngine(KEYS, peers, self.shares, None, threads=1, is_short=lambda: False),
            now_ms=lambda: self.time_ms,
        )


class Client:
    """Redeems a statement's ticket in a thread of its own."""

    def __init__(self, worker: Worker, limits: StreamLimits = NO_LIMITS) -> None:
        self.gone = threading.Event()
        self.rows: list[int | None] = []
        self.error: FloebergError | None = None
        self._worker = worker
        expires_at_ms = worker.time_ms + 60_000
        ticket = SqlTicket("SELECT 1::BIGINT AS n", ONE, (), None, expires_at_ms, limits=limits)
        self._ticket = seal_sql_ticket(ticket, KEYS)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            stream = self._worker.redeemer.redeem(self._ticket, self.gone.is_set)
            for batch, _ in stream.batches:
                self.rows += batch["n"].to_pylist()
        except FloebergError as error:
            self.error = error

    def end(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def other(worker: Worker) -> Share:
    """What another statement has, which is all there is."""
    return worker.shares.lend()


def test_a_statement_that_waits_takes_no_stream_s_place(worker: Worker, other: Share) -> None:
    client = Client(worker)
    wait_until(lambda: worker.shares.waiting, "the statement to wait")

    worker.budget.admit().release()
    other.release()
    client.end()

    assert client.rows == [1]
    assert worker.budget.streams == 0


def test_a_statement_whose_client_leaves_waits_no_longer(worker: Worker, other: Share) -> None:
    client = Client(worker)
    wait_until(lambda: worker.shares.waiting, "the statement to wait")

    client.gone.set()
    client.end()

    assert type(client.error) is Cancelled
    assert worker.shares.waiting == 0


def test_a_statement_waits_no_longer_than_its_query_may_take(worker: Worker, other: Share) -> None:
    until_ms = worker.time_ms + 1000
    client = Client(worker, StreamLimits(until_ms=until_ms, seconds=1.0))
    wait_until(lambda: worker.shares.waiting, "the statement to wait")

    worker.time_ms = until_ms
    client.end()

    assert type(client.error) is LimitExceeded


def test_a_worker_that_stops_lets_nobody_wait(worker: Worker, other: Share) -> None:
    client = Client(worker)
    wait_until(lambda: worker.shares.waiting, "the statement to wait")

    worker.redeemer.drain()
    client.end()

    assert type(client.error) is ServerUnavailable


def test_a_statement_without_a_place_gives_its_share_back(worker: Worker) -> None:
    stream = worker.budget.admit()
    client = Client(worker)
    client.end()
    stream.release()

    assert type(client.error) is WorkerBusy
    assert worker.shares.lend().memory_bytes == LEAST_BYTES
