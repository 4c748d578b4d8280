"""Statements that are ended from outside, on an engine without a worker around it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.process.calling import ClientPool
from floeberg.protocol.errors import (
    Cancelled,
    ExpiredTicket,
    FloebergError,
    InternalError,
    QueryTooLarge,
    UnsupportedSql,
)
from floeberg.protocol.plans import ResumePlace
from floeberg.protocol.requests import new_request
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.sql_tickets import InputEndpoint, SqlInput, SqlSettings, SqlTicket
from floeberg.protocol.tickets import OpenTicket, seal_ticket
from floeberg.worker.placed import Placed
from floeberg.worker.reading import PlacedBatch
from floeberg.worker.sql.engine import SqlCall, SqlEngine
from floeberg.worker.sql.inputs import Peers, ReadHere
from floeberg.worker.sql.shares import Shares
from floeberg.worker.sql.spilling import SpillDirectory
from tests.support.gate import now_ms
from tests.support.lake import TableWriter, schema
from tests.support.reads import plan_of
from tests.support.waiting import wait_until

KEYS = Keyring.generate()
END = ResumePlace(1, 0)
COUNT = pa.schema([("n", pa.int64())])
FOREVER = (
    "SELECT count(*) AS n FROM range(1000000) a, range(1000000) b WHERE a.range * b.range = -1"
)


class Query:
    """Runs a statement in a thread of its own, until `leave`."""

    def __init__(
        self,
        engine: SqlEngine,
        ticket: SqlTicket,
        read: ReadHere | None = None,
        began_ms: int | None = None,
    ) -> None:
        self._left = threading.Event()
        self.rows: list[int] = []
        self.error: FloebergError | None = None
        began_ms = began_ms or now_ms()
        call = SqlCall(None, new_request(), began_ms, self._check, read or no_scan, lambda: None)
        self._batches = engine.run(ticket, engine.admit(ticket), call)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _check(self) -> None:
        if self._left.is_set():
            raise Cancelled("nobody waits")

    def _run(self) -> None:
        try:
            for batch in self._batches:
                self.rows += batch["n"].to_pylist()
        except FloebergError as error:
            self.error = error

    @property
    def goes_on(self) -> bool:
        return self._thread.is_alive()

    def leave(self) -> None:
        self._left.set()

    def end(self) -> FloebergError | None:
        self._thread.join(20)
        assert not self.goes_on
        return self.error


def one_row(ticket: OpenTicket, place: ResumePlace, check: object) -> Iterator[Placed]:
    yield PlacedBatch(pa.record_batch([[7]], schema=COUNT), END)


def no_scan(ticket: OpenTicket, place: ResumePlace, check: object) -> Iterator[Placed]:
    raise ValueError("a fault of our own, with a /path")


def engine_of(
    shares: Shares, is_short: threading.Event, spill: SpillDirectory | None = None
) -> SqlEngine:
    peers = Peers(ClientPool(), lambda caller: fl.FlightCallOptions(), lambda: "grpc://here:1")
    return SqlEngine(KEYS, peers, shares, spill, threads=2, is_short=is_short.is_set)


def statement(sql: str, *inputs: SqlInput) -> SqlTicket:
    return SqlTicket(sql, COUNT, inputs, None, now_ms() + 60_000)


def test_a_process_that_has_too_little_memory_ends_its_youngest_statement() -> None:
    is_short = threading.Event()
    engine = engine_of(Shares(1 << 30, 0), is_short)
    old = Query(engine, statement(FOREVER))
    wait_until(lambda: len(engine._running) == 1, "the first to run")
    young = Query(engine, statement(FOREVER))
    wait_until(lambda: len(engine._running) == 2, "the second to run")

    is_short.set()
    wait_until(lambda: not young.goes_on, "the second to be ended")
    is_short.clear()

    assert type(young.end()) is QueryTooLarge
    assert type(old.error) in (type(None), QueryTooLarge)
    old.leave()
    assert isinstance(old.end(), Cancelled | QueryTooLarge)


def test_a_statement_that_is_left_gives_all_back(tmp_path: Path) -> None:
    spill = SpillDirectory(tmp_path)
    shares = Shares(1 << 30, 1 << 30)
    engine = engine_of(shares, threading.Event(), spill)
    for _ in range(3):
        query = Query(engine, statement(FOREVER))
        wait_until(lambda: engine._running, "it to run")
        query.leave()
        assert isinstance(query.end(), Cancelled)

    assert shares.lend().memory_bytes == 256 << 20
    assert engine._running == []
    spill.close()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_statement_for_which_there_is_no_thread_is_not_taken_for_one_that_runs() -> None:
    shares = Shares(1 << 30, 0)
    engine = engine_of(shares, threading.Event())
    call = SqlCall(None, new_request(), now_ms(), lambda: None, no_scan, lambda: None)
    ticket = statement("SELECT 1 AS n")
    batches = engine.run(ticket, engine.admit(ticket), call)
    before = threading.stack_size(1 << 46)  # more than a process may have
    try:
        with pytest.raises(RuntimeError, match="new thread"):
            next(batches)
    finally:
        threading.stack_size(before)

    assert engine._running == []
    assert shares.lend().memory_bytes == 256 << 20
    assert Query(engine, ticket).end() is None


def test_a_fault_of_our_own_in_an_input_shows_nothing_of_itself(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", schema({"n": "long"}))
    table.append([{"n": 1}])
    scan = seal_ticket(plan_of(table), KEYS, principal=None, expires_at_ms=now_ms() + 60_000)
    engine = engine_of(Shares(1 << 30, 0), threading.Event())
    one = SqlInput("i0", COUNT, (InputEndpoint(scan),))

    error = Query(engine, statement("SELECT n FROM i0", one)).end()

    assert type(error) is InternalError
    assert "path" not in str(error)


def test_a_ticket_that_held_when_the_statement_began_is_read_here_once_it_has_expired(
    tmp_path: Path,
) -> None:
    table = TableWriter.create(tmp_path / "t", schema({"n": "long"}))
    expired = now_ms() - 60_000
    scan = seal_ticket(plan_of(table), KEYS, principal=None, expires_at_ms=expired)
    engine = engine_of(Shares(1 << 30, 0), threading.Event())
    one = SqlInput("i0", COUNT, (InputEndpoint(scan, ("grpc://nobody-is-asked:1",)),))
    ticket = statement("SELECT n FROM i0", one)

    in_time = Query(engine, ticket, one_row, began_ms=expired - 1)
    late = Query(engine, ticket, one_row)

    assert in_time.end() is None
    assert in_time.rows == [7]
    assert type(late.end()) is ExpiredTicket


def test_an_input_without_endpoints_has_no_rows() -> None:
    engine = engine_of(Shares(1 << 30, 0), threading.Event())

    query = Query(engine, statement("SELECT count(*) AS n FROM i0", SqlInput("i0", COUNT)))

    assert query.end() is None
    assert query.rows == [0]


def test_a_timezone_that_there_is_not_is_told() -> None:
    engine = engine_of(Shares(1 << 30, 0), threading.Event())
    ticket = statement("SELECT 1 AS n")
    elsewhere = replace(ticket, settings=SqlSettings(timezone="Nowhere/At_All"))

    error = Query(engine, elsewhere).end()

    assert type(error) is UnsupportedSql
    assert "Nowhere/At_All" in str(error)
