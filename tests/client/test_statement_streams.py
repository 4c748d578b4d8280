"""What a statement gives, from workers that break off: it has no places to go on at."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.client import Progress, RetryPolicy
from floeberg.client.connection import Connection
from floeberg.client.planned import Reading, read_planned
from floeberg.client.streams import HELD_BYTES
from floeberg.protocol.errors import ServerUnavailable, SqlFailed
from floeberg.protocol.flight_errors import as_flight_errors
from floeberg.protocol.requests import new_request
from tests.support.fleet import LocalFleet
from tests.support.orders import live_ids
from tests.support.sql import input_of, planned, sealed_sql

AT_ONCE = RetryPolicy(rounds=3, base_seconds=0, patience_seconds=0)
ROWS = pa.schema([("n", pa.int64())])
SMALL = [pa.record_batch({"n": [n, n + 1]}) for n in (0, 2, 4)]
LARGE = [pa.record_batch({"n": pa.array(range(HELD_BYTES // 8 + 1))})] * 3


class Worker(fl.FlightServerBase):
    """Answers any ticket with `batches`, and raises `error` after so many of them."""

    def __init__(
        self, batches: list[pa.RecordBatch], fails_after: int | None, error: Exception | None = None
    ) -> None:
        self._batches = batches
        self._fails_after = fails_after
        self._error = error or ServerUnavailable("the worker went away")
        self.runs = 0
        self.ended = threading.Event()
        super().__init__("grpc://127.0.0.1:0")

    @property
    def location(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.GeneratorStream:
        self.runs += 1
        return fl.GeneratorStream(ROWS, self._stream())

    def _stream(self) -> Iterator[pa.RecordBatch]:
        try:
            for number, batch in enumerate(self._batches):
                if number == self._fails_after:
                    with as_flight_errors():
                        raise self._error
                yield batch
        finally:
            self.ended.set()


def read(*workers: Worker, told: list[Progress] | None = None) -> Iterator[pa.RecordBatch]:
    """Return the stream of a statement that the workers run, the first one first."""
    endpoint = fl.FlightEndpoint(b"flq of a test", [worker.location for worker in workers])
    info = fl.FlightInfo(ROWS, fl.FlightDescriptor.for_command(b""), [endpoint], -1, -1)
    # a coordinator that isn't there: it is asked which workers there are, and nobody answers
    reading = Reading(
        Connection("grpc://127.0.0.1:1"),
        AT_ONCE,
        on_progress=[].append if told is None else told.append,
    )
    return read_planned(info, reading, new_request(), ordered=True, limit=None)


def numbers(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [n for batch in batches for n in batch["n"].to_pylist()]


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_small_answer_survives_the_loss_of_its_worker_whole(after: int):
    told: list[Progress] = []
    with Worker(SMALL, after) as one, Worker(SMALL, None) as other:
        assert numbers(read(one, other, told=told)) == [0, 1, 2, 3, 4, 5]

        assert (one.runs, other.runs) == (1, 1)
    # what is dropped was never told
    assert sum(progress.rows for progress in told) == 6
    assert sum(progress.finished_endpoints for progress in told) == 1


def test_a_large_answer_that_breaks_off_says_to_run_the_query_again():
    with Worker(LARGE, 2) as one, Worker(LARGE, None) as other:
        batches = read(one, other)

        assert [next(batches).num_rows for _ in range(2)] == [LARGE[0].num_rows] * 2
        with pytest.raises(ServerUnavailable, match="run it again"):
            next(batches)
        assert other.runs == 0


def test_a_statement_that_workers_die_of_is_not_run_on_all_of_them():
    workers = [Worker(SMALL, 1) for _ in range(6)]
    try:
        with pytest.raises(ServerUnavailable, match="the worker went away"):
            list(read(*workers))

        assert sum(worker.runs for worker in workers) == 4
    finally:
        for worker in workers:
            worker.shutdown()


def test_what_another_worker_would_say_as_well_is_raised_at_once():
    with Worker(SMALL, 1, SqlFailed("'x' is no number")) as one, Worker(SMALL, None) as other:
        with pytest.raises(SqlFailed, match="'x' is no number"):
            list(read(one, other))

        assert (one.runs, other.runs) == (1, 0)


def test_closing_ends_the_statement_at_its_worker():
    with Worker(LARGE * 40, None) as worker:
        batches = read(worker)
        next(batches)

        batches.close()  # type: ignore[attr-defined]

        assert worker.ended.wait(10)


def test_a_statement_whose_worker_is_gone_runs_at_one_that_the_coordinator_names(
    fleet: LocalFleet,
):
    orders = planned(fleet.location, "db.orders", select=["id"])
    schema = pa.schema([("rows", pa.int64())])
    raw = sealed_sql(fleet.keys, "SELECT count(*) AS rows FROM i0", schema, input_of(orders))
    endpoint = fl.FlightEndpoint(raw, ["grpc://127.0.0.1:1"])
    info = fl.FlightInfo(schema, fl.FlightDescriptor.for_command(b""), [endpoint], 1, -1)

    connection = Connection(fleet.location)
    connection.has_met_worker = True  # the first answer of a fleet that isn't there is the last
    reading = Reading(connection, RetryPolicy(base_seconds=0))
    batches = read_planned(info, reading, new_request(), ordered=False, limit=None)

    assert pa.Table.from_batches(batches)["rows"].to_pylist() == [len(live_ids())]
