"""How statements on real workers end otherwise than with their last row."""

from __future__ import annotations

import os
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.process.auth import Principal
from floeberg.protocol.errors import (
    BadSql,
    BadTicket,
    Cancelled,
    ExpiredTicket,
    FloebergError,
    InternalError,
    LimitExceeded,
    MissingFile,
    NotPermitted,
    QueryTooLarge,
    ServerUnavailable,
    SqlFailed,
    Unauthenticated,
    UnsupportedSql,
)
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.sql_tickets import InputEndpoint, SqlInput
from floeberg.protocol.tickets import StreamLimits
from tests.support.callers import ANN, BOB, bearing, token_file
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.gate import NO_HURRY, Gate, now_ms
from tests.support.lake import TableWriter, schema
from tests.support.sql import (
    input_of,
    planned,
    redeemed,
    sealed_sql,
    slow_client,
)
from tests.support.waiting import wait_until

COUNT = pa.schema([("n", pa.int64())])
FOREVER = (
    "SELECT count(*) AS n FROM range(1000000) a, range(1000000) b WHERE a.range * b.range = -1"
)


def failure(location: str, raw: bytes) -> FloebergError:
    with pytest.raises((fl.FlightError, pa.ArrowException)) as raised:
        redeemed(location, raw)
    return from_flight(raised.value)


@pytest.mark.parametrize(
    ("sql", "expected", "told"),
    [
        ("SELEC 1", BadSql, 'syntax error at or near "SELEC"'),
        ("SELECT nope FROM i0", BadSql, '"nope" not found'),
        ("SELECT nofunction(id) FROM i0", BadSql, "nofunction does not exist"),
        ("SELECT * FROM i1", BadSql, "no table 'i1'"),
        ("SELECT note::INT FROM i0", SqlFailed, "Could not convert string"),
        ("SELECT 1; SELECT 2", UnsupportedSql, "one statement"),
        ("COPY i0 TO '/tmp/x'", UnsupportedSql, "only SELECT"),
        ("SELECT * FROM read_csv('/etc/passwd')", UnsupportedSql, "read_csv"),
        ("SELECT current_setting('temp_directory')", UnsupportedSql, "current_setting"),
        ("SELECT sum(id) * 9223372036854775807 AS n FROM i0", SqlFailed, "column 'n'"),
        ("SELECT id, who FROM i0", InternalError, "2 columns, and 1 were told"),
    ],
)
def test_a_statement_that_fails_says_what_to_change(
    fleet: LocalFleet, sql: str, expected: type[FloebergError], told: str
) -> None:
    info = planned(fleet.location, "db.orders")
    raw = sealed_sql(fleet.keys, sql, COUNT, input_of(info))

    error = failure(fleet.workers[0].location, raw)

    assert type(error) is expected
    assert told in str(error)
    for inside in ("duckdb", "LINE 1", "/site-packages", "Traceback", "spill-", " Error:"):
        assert inside not in str(error)


def test_what_is_wrong_with_an_input_is_told_as_a_scan_would(
    fleet: LocalFleet, tmp_path: Path
) -> None:
    table = TableWriter.create(tmp_path / "db" / "t", schema({"n": "long"}))
    (file,) = table.append([{"n": 1}])
    with local_fleet(tmp_path, workers=1) as other:
        info = planned(other.location, "db.t")
        os.unlink(table.local(file.location))
        at = other.workers[0].location
        raw = sealed_sql(other.keys, "SELECT n FROM i0", COUNT, input_of(info))
        assert type(failure(at, raw)) is MissingFile
        for ticket, expected in {
            b"no ticket": BadTicket,
            b"flq": BadTicket,
            sealed_sql(other.keys, "SELECT 1", COUNT, expires_at_ms=now_ms() - 5): ExpiredTicket,
        }.items():
            broken = SqlInput("i0", info.schema, (InputEndpoint(ticket, (at,)),))
            raw = sealed_sql(other.keys, "SELECT n FROM i0", COUNT, broken)
            assert type(failure(at, raw)) is expected
    assert type(failure(fleet.workers[0].location, raw)) is BadTicket


def test_tickets_that_are_bound_are_their_principals_alone(fleet: LocalFleet) -> None:
    redeemer = fleet.workers[0]._redeemer
    mine = partial(sealed_sql, fleet.keys, "SELECT n FROM i0", COUNT, principal="ann")
    inner = sealed_sql(fleet.keys, "SELECT 1 AS n", COUNT, principal="bob", is_bound=True)
    of_bob = SqlInput("i0", COUNT, (InputEndpoint(inner, (fleet.workers[1].location,)),))
    ann = Principal("ann", "token")

    with pytest.raises(Unauthenticated):
        redeemer.redeem(mine(is_bound=True), lambda: False)
    with pytest.raises(NotPermitted):
        redeemer.redeem(mine(is_bound=True), lambda: False, Principal("bob", "token"))
    stream = redeemer.redeem(mine(of_bob, is_bound=True), lambda: False, ann)
    with closing(stream.batches) as batches, pytest.raises(NotPermitted):
        next(batches)
    stream = redeemer.redeem(mine(of_bob), lambda: False, Principal("bob", "token"))
    assert [batch.to_pylist() for batch, _ in stream.batches] == [[{"n": 1}]]


def test_workers_that_ask_who_calls_are_told_whose_statement_it_is(
    lake: Path, tmp_path: Path
) -> None:
    tokens = token_file(tmp_path)
    flags = {"auth_tokens": tokens, "bind_tickets": True}
    with local_fleet(lake, workers=0, **flags) as fleet:
        here, other = (fleet.add_worker(auth_tokens=tokens) for _ in range(2))
        with fl.connect(fleet.location) as client:
            descriptor = fl.FlightDescriptor.for_path("db", "people")
            info = client.get_flight_info(descriptor, bearing(ANN))
        raw = sealed_sql(
            fleet.keys,
            "SELECT count(*) AS n FROM i0",
            COUNT,
            input_of(info, "i0", [other.location]),
            principal="ann",
            is_bound=True,
        )
        with fl.connect(here.location) as client:
            found = client.do_get(fl.Ticket(raw), bearing(ANN)).read_all()
            with pytest.raises(fl.FlightUnauthorizedError, match="bound to somebody else"):
                client.do_get(fl.Ticket(raw), bearing(BOB)).read_all()
        with fl.connect(fleet.location) as client:
            relayed = client.do_get(fl.Ticket(raw), bearing(ANN)).read_all()

        assert found["n"].to_pylist() == relayed["n"].to_pylist() == [8]
        assert other.status()["recent"][0]["principal"] == "ann"  # type: ignore[index]


def test_a_client_that_leaves_ends_the_statement(fleet: LocalFleet) -> None:
    worker = fleet.workers[0]
    raw = sealed_sql(fleet.keys, FOREVER, COUNT)
    with fl.connect(worker.location) as client:
        # one that cancels looks the same to a server; to this process, it would be Ctrl-C
        patience = fl.FlightCallOptions(timeout=1)
        with pytest.raises(fl.FlightTimedOutError):
            client.do_get(fl.Ticket(raw), patience).read_all()

    wait_until(lambda: not worker.status()["streams"], "the statement to end")
    assert worker.status()["recent"][0]["outcome"] == "cancelled"  # type: ignore[index]


def test_a_statement_ends_with_its_client_while_it_waits_for_an_input(lake: Path) -> None:
    gate = Gate()
    with local_fleet(lake, workers=0) as fleet:
        slow, here = fleet.add_worker(gate), fleet.add_worker()
        info = planned(fleet.location, "db.people")
        raw = sealed_sql(
            fleet.keys,
            "SELECT count(*) AS n FROM i0",
            COUNT,
            input_of(info, "i0", [slow.location]),
        )
        left = threading.Event()
        stream = here._redeemer.redeem(raw, left.is_set)
        outcomes: list[BaseException] = []

        def read() -> None:
            try:
                list(stream.batches)
            except FloebergError as error:
                outcomes.append(error)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        wait_until(lambda: slow.status()["streams"], "the input to be asked for")

        left.set()
        thread.join(20)

        assert [type(outcome) for outcome in outcomes] == [Cancelled]
        gate.let_through(100)


def test_a_stream_that_is_dropped_gives_its_share_back(lake: Path) -> None:
    with local_fleet(lake, workers=0) as fleet:
        worker = fleet.add_worker(sql_memory_bytes=128 << 20)
        redeemer = worker._redeemer
        raw = sealed_sql(fleet.keys, "SELECT range AS n FROM range(1000000)", COUNT)
        for _ in range(10):
            stream = redeemer.redeem(raw, lambda: False)
            del stream
        for _ in range(10):
            stream = redeemer.redeem(raw, lambda: False)
            next(stream.batches)
            stream.batches.close()
        held = [redeemer.redeem(raw, lambda: False) for _ in range(2)]

        with pytest.raises(Cancelled):  # a third one would wait
            redeemer.redeem(raw, lambda: True)

        assert len(held) == 2
        assert worker.status()["streams"] == 2


def test_a_statement_is_held_to_its_rows_and_its_time(fleet: LocalFleet) -> None:
    at = fleet.workers[0].location
    many = "SELECT range AS n FROM range(1000000)"
    rows = failure(at, sealed_sql(fleet.keys, many, COUNT, limits=StreamLimits(rows=1000)))
    until = StreamLimits(seconds=0.5, until_ms=now_ms() + 500)
    seconds = failure(at, sealed_sql(fleet.keys, FOREVER, COUNT, limits=until))

    assert type(rows) is type(seconds) is LimitExceeded
    assert "1,000 rows" in str(rows)
    assert "0.5 seconds" in str(seconds)


def test_a_worker_that_stops_cuts_its_statements(lake: Path) -> None:
    with local_fleet(lake, workers=1) as fleet:
        worker = fleet.workers[0]
        errors: list[FloebergError] = []
        thread = threading.Thread(
            target=lambda: errors.append(
                failure(worker.location, sealed_sql(fleet.keys, FOREVER, COUNT))
            )
        )
        thread.start()
        wait_until(lambda: worker.status()["streams"], "the statement to begin")

        assert worker.stop(NO_HURRY)
        thread.join(20)

        assert [type(error) for error in errors] == [ServerUnavailable]


LARGE = (
    "SELECT range AS n, md5(range::VARCHAR) || md5((range + 1)::VARCHAR) AS t FROM range(600000)"
    " ORDER BY t"
)
LARGE_TOLD = pa.schema([("n", pa.int64()), ("t", pa.string())])


def test_what_does_not_fit_into_memory_is_spilt_and_nothing_is_left(
    lake: Path, tmp_path: Path
) -> None:
    with local_fleet(lake, workers=0) as fleet:
        worker = fleet.add_worker(sql_memory_bytes=64 << 20, sql_spill_dir=str(tmp_path))
        raw = sealed_sql(fleet.keys, LARGE, LARGE_TOLD)
        with slow_client(worker.location) as client:
            reader = client.do_get(fl.Ticket(raw))
            rows = reader.read_chunk().data.num_rows
            spilt = [path for path in tmp_path.rglob("*.tmp") if path.is_file()]
            rows += sum(chunk.data.num_rows for chunk in reader)

        assert rows == 600_000
        assert spilt
        wait_until(lambda: not list(tmp_path.rglob("*.tmp")), "the files to go")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_without_a_disk_such_a_statement_is_refused_by_name(lake: Path) -> None:
    with local_fleet(lake, workers=0) as fleet:
        worker = fleet.add_worker(sql_memory_bytes=64 << 20, sql_spill_bytes=0)

        error = failure(worker.location, sealed_sql(fleet.keys, LARGE, LARGE_TOLD))

        assert type(error) is QueryTooLarge
        assert "64 MiB of memory and the 0 MiB of disk" in str(error)
        again = sealed_sql(fleet.keys, "SELECT 1 AS n", COUNT)
        assert redeemed(worker.location, again)["n"].to_pylist() == [1]
