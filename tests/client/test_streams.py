"""Streams that break: on real workers, whose reading or whose network fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.client import Progress, RemoteScan, RetryPolicy, connect
from floeberg.client.connection import Connection
from floeberg.client.scan import PlannedScan
from floeberg.protocol.commands import ScanCommand
from floeberg.protocol.errors import (
    CorruptDataFile,
    InternalError,
    ServerUnavailable,
    StorageUnavailable,
    WorkerBusy,
)
from floeberg.protocol.plans import START
from tests.support.breaking import BreakingRead, CuttingProxy
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.gate import NO_HURRY, Gate
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.waiting import wait_until

ROWS = list(range(300))
AT_ONCE = RetryPolicy(rounds=3, base_seconds=0, patience_seconds=0)

Fleet = Callable[..., LocalFleet]


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with `db.numbers`: three files of a hundred numbers, counted from 0."""
    directory = tmp_path_factory.mktemp("numbers")
    table = TableWriter.create(
        directory / "db" / "numbers", schema({"n": required("long"), "text": "string"})
    )
    for first in range(0, 300, 100):
        rows = [{"n": n, "text": f"{n:0100}"} for n in range(first, first + 100)]
        table.append(rows, layout=FileLayout(codec="none"))
    return directory


@pytest.fixture
def empty_fleet(numbers: Path) -> Iterator[LocalFleet]:
    with local_fleet(numbers, workers=0, batch_bytes=1024) as fleet:
        yield fleet


def scan_of(fleet: LocalFleet, **options) -> RemoteScan:
    """Return a scan of numbers, about nine of which make a batch."""
    lake = connect(fleet.location)
    return replace(lake.table("db.numbers").scan(**options), policy=AT_ONCE)


def values(scan: RemoteScan) -> list[int]:
    return scan.to_arrow()["n"].to_pylist()


def gone() -> Exception:
    return ServerUnavailable("the worker went away")


# --- resuming -------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 4, 8])
def test_a_stream_that_breaks_goes_on_elsewhere_and_no_row_comes_twice(
    empty_fleet: LocalFleet, after: int
):
    breaking = BreakingRead(after, gone)
    empty_fleet.add_worker(breaking)
    whole = BreakingRead(1000, gone)
    empty_fleet.add_worker(whole)
    scan = scan_of(empty_fleet, ordered=True)

    # newest files are planned first
    assert values(scan) == ROWS[200:] + ROWS[100:200] + ROWS[:100]
    assert breaking.resumed
    if after:
        assert any(place != START for place in whole.resumed)


def test_workers_that_all_break_again_and_again_still_give_every_row_once(empty_fleet: LocalFleet):
    workers = [BreakingRead(2, gone) for _ in range(3)]
    for read in workers:
        empty_fleet.add_worker(read)

    assert sorted(values(scan_of(empty_fleet))) == ROWS
    # each stream moves on by two batches at a time
    assert sum(len(read.resumed) for read in workers) >= 15


@pytest.mark.parametrize("limit", [1, 17, 20, 23, 120])
def test_a_limit_is_kept_when_a_stream_is_resumed(empty_fleet: LocalFleet, limit: int):
    for _ in range(2):
        empty_fleet.add_worker(BreakingRead(2, gone))

    assert values(scan_of(empty_fleet, limit=limit)) == (ROWS[200:] + ROWS[100:200])[:limit]


def test_a_network_that_drops_connections_loses_no_row(numbers: Path):
    with (
        local_fleet(numbers, workers=0, batch_bytes=1024) as fleet,
        CuttingProxy(limit=5_000) as proxy,
    ):
        worker = fleet.add_worker(advertise=f"127.0.0.1:{proxy.port}")
        assert worker.location.endswith(str(proxy.port))
        proxy.target_port = worker._server.port

        assert sorted(values(scan_of(fleet))) == ROWS

    assert proxy.connections > 3


def test_a_worker_that_is_busy_is_passed_over(empty_fleet: LocalFleet):
    gate = Gate(rows=1)
    busy = empty_fleet.add_worker(gate, max_streams=1)
    held = fl.connect(busy.location)
    info = scan_of(empty_fleet).planned().info
    stream = held.do_get(info.endpoints[0].ticket)  # the one that it has room for
    empty_fleet.add_worker()

    assert sorted(values(scan_of(empty_fleet))) == ROWS

    stream.cancel()
    held.close()
    wait_until(gate.closes_at_a_batch, "the worker to notice")


# --- giving up ------------------------------------------------------------------------------------


def test_an_error_that_another_worker_would_repeat_is_raised_at_once(empty_fleet: LocalFleet):
    reads = [BreakingRead(1, lambda: CorruptDataFile("a.parquet is cut")) for _ in range(2)]
    for read in reads:
        empty_fleet.add_worker(read)

    with pytest.raises(CorruptDataFile, match=r"^a\.parquet is cut$"):
        values(scan_of(empty_fleet, limit=100))

    assert sum(len(read.resumed) for read in reads) == 1


def test_the_last_error_is_raised_after_so_many_rounds_over_the_locations(empty_fleet: LocalFleet):
    reads = [BreakingRead(0, lambda: StorageUnavailable("s3 is down")) for _ in range(2)]
    for read in reads:
        empty_fleet.add_worker(read)

    with pytest.raises(StorageUnavailable, match="s3 is down"):
        values(scan_of(empty_fleet, limit=100))

    assert [len(read.resumed) for read in reads] == [AT_ONCE.rounds] * 2


def test_rows_that_came_before_an_error_are_delivered_before_it(empty_fleet: LocalFleet):
    empty_fleet.add_worker(BreakingRead(3, lambda: CorruptDataFile("cut")))
    batches = scan_of(empty_fleet, limit=100).to_batches()

    before = [n for _ in range(3) for n in next(batches)["n"].to_pylist()]
    with pytest.raises(CorruptDataFile):
        next(batches)

    assert before == ROWS[200 : 200 + len(before)]


def test_a_location_that_nobody_can_reach_is_named_with_what_may_help(empty_fleet: LocalFleet):
    empty_fleet.add_worker(advertise="127.0.0.1:1")

    with pytest.raises(ServerUnavailable) as raised:
        values(scan_of(empty_fleet))

    assert "the worker grpc+tcp://127.0.0.1:1 cannot be reached" in str(raised.value)
    assert "--advertise" in str(raised.value)


def test_a_stream_goes_on_at_a_worker_that_came_after_the_plan(empty_fleet: LocalFleet):
    old = empty_fleet.add_worker(BreakingRead(2, gone))
    scan = replace(scan_of(empty_fleet, limit=100), policy=RetryPolicy(base_seconds=0.01))
    planned = scan.planned()
    batches = planned.batches()
    before = next(batches).num_rows
    empty_fleet.workers.remove(old)
    old.stop(NO_HURRY)
    late = BreakingRead(1000, gone)
    empty_fleet.add_worker(late)

    assert before + sum(batch.num_rows for batch in batches) == 100

    assert late.resumed
    assert planned.info.endpoints[0].locations[0].uri.decode() == old.location


def test_a_worker_that_was_away_is_tried_last_for_a_while(empty_fleet: LocalFleet):
    now = 0.0
    connection = Connection(empty_fleet.location, clock=lambda: now)
    named = ["grpc://a:1", None, "grpc://b:1"]

    connection.avoid("grpc://a:1")

    assert connection.likely_first(named) == [None, "grpc://b:1", "grpc://a:1"]
    now = 11.0
    assert connection.likely_first(named) == named


def test_streams_that_broke_and_went_on_are_told(empty_fleet: LocalFleet):
    for _ in range(2):
        empty_fleet.add_worker(BreakingRead(4, gone))
    told: list[Progress] = []

    found = values(scan_of(empty_fleet, limit=100, on_progress=told.append))

    # twelve batches, of which the streams bring four at a time
    assert len(found) == 100
    assert sum(p.resumed_streams for p in told) == (len(told) - 2) // 4
    assert sum(p.rows for p in told) == 100


# --- ending ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [False, True])
def test_closing_does_not_wait_for_a_worker_that_sends_nothing(
    empty_fleet: LocalFleet, ordered: bool
):
    gate = Gate()
    empty_fleet.add_worker(gate)
    batches = scan_of(empty_fleet, ordered=ordered, limit=100).to_batches()  # one stream
    gate.let_through(1)
    assert next(batches).num_rows == 1

    batches.close()

    assert not [t for t in threading.enumerate() if t.name.startswith("floeberg-read")]
    wait_until(gate.closes_at_a_batch, "the worker to notice")


def test_closing_does_not_wait_for_the_next_try(empty_fleet: LocalFleet):
    empty_fleet.add_worker(BreakingRead(1, lambda: WorkerBusy("full")))
    scan = replace(
        scan_of(empty_fleet), policy=RetryPolicy(base_seconds=1000, most_seconds=1000, rounds=9)
    )
    batches = scan.to_batches()
    next(batches)

    batches.close()  # the test's own timeout tells


# --- what a server must not do --------------------------------------------------------------------


def planned(location: str, endpoints: list[fl.FlightEndpoint], total: int = -1) -> PlannedScan:
    scan = RemoteScan(Connection(location), ScanCommand(table="db.t"), AT_ONCE)
    rows = pa.schema({"n": pa.int64()})
    info = fl.FlightInfo(rows, fl.FlightDescriptor.for_path("db", "t"), endpoints, total, -1)
    return PlannedScan(scan, info)


class Stock(fl.FlightServerBase):
    """Answers any ticket with two rows of `rows`, and no place."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        super().__init__("grpc://127.0.0.1:0")

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.RecordBatchStream:
        return fl.RecordBatchStream(self._rows)


def test_a_batch_without_its_place_is_refused():
    with Stock(pa.table({"n": [1, 2]})) as server:
        scan = planned(f"grpc://127.0.0.1:{server.port}", [fl.FlightEndpoint(b"t", [])])

        with pytest.raises(InternalError, match="without its place"):
            list(scan.batches())


def test_a_stream_with_another_schema_is_refused():
    with Stock(pa.table({"n": ["1"]})) as server:
        scan = planned(f"grpc://127.0.0.1:{server.port}", [fl.FlightEndpoint(b"t", [])])

        with pytest.raises(InternalError, match="another schema"):
            list(scan.batches())


@pytest.mark.parametrize("off_by", [-1, 1])
def test_another_number_of_rows_than_the_plan_has_is_an_error(empty_fleet: LocalFleet, off_by: int):
    empty_fleet.add_worker()
    scan = scan_of(empty_fleet)
    honest = scan.planned().info
    assert honest.total_records == len(ROWS)
    claimed = fl.FlightInfo(
        honest.schema, honest.descriptor, honest.endpoints, len(ROWS) + off_by, -1
    )

    with pytest.raises(InternalError, match=f"{len(ROWS) + off_by} rows, and {len(ROWS)} came"):
        list(PlannedScan(scan, claimed).batches())


def test_a_plain_text_location_is_not_dialled_from_a_private_connection():
    with CuttingProxy(limit=0) as listener:
        plain = f"grpc+tcp://127.0.0.1:{listener.port}"
        scan = planned("grpc+tls://127.0.0.1:1", [fl.FlightEndpoint(b"t", [plain])])

        with pytest.raises(ServerUnavailable, match="plain text"):
            list(scan.batches())

        assert listener.connections == 0
