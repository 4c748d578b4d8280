"""A principal has so many queries at once, as far as a coordinator can know."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow.flight as fl
import pytest

from floeberg.client import connect
from floeberg.protocol.errors import Cancelled, TooManyQueries
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.registration import StreamReport
from floeberg.server.flight.at_once import QueriesAtOnce
from floeberg.server.flight.reads import Reads
from floeberg.server.planning import PlanRun
from tests.support.callers import ANN, BOB, bearing, token_file
from tests.support.clock import Clock
from tests.support.fleet import local_fleet
from tests.support.gate import Gate
from tests.support.lake import TableWriter
from tests.support.waiting import wait_until

PATIENCE = 10.0
ORDERS = fl.FlightDescriptor.for_path("db", "orders")


class Bench:
    """Queries of ann, of whom two may go on at once, at a clock that is set by hand."""

    def __init__(self, wait_seconds: float = 0.0) -> None:
        self.clock = Clock()
        self.answer: Callable[[], None] = lambda: None
        self.reads = Reads(self.clock, silent_seconds=PATIENCE)
        self.queries = QueriesAtOnce(
            self.reads,
            patience_seconds=PATIENCE,
            ask_workers=lambda: self.answer(),
            wait_seconds=wait_seconds,
            clock=self.clock,
        )

    def plan(self, tasks: int = 4, principal: str = "ann") -> str:
        """Plan a query, and return its id."""
        run = PlanRun()
        with self.queries.planning(run, principal, 2) as planned:
            planned.tasks = tasks
        return run.query_id

    def hear(self, query: str, tasks: int, outcome: str | None = None, by: str = "s") -> None:
        report = StreamReport.model_validate(
            {
                "query_id": query,
                "stream_id": by,
                "tasks": tasks,
                "rows": 1,
                "bytes": 1,
                "outcome": outcome,
                "principal": "ann",
            }
        )
        self.reads.hear([report])

    def goes_on(self, query: str) -> bool:
        return query in self.queries.going_on("ann")


def test_no_more_are_planned_at_once_than_may_be() -> None:
    bench = Bench()
    with ExitStack() as plans:
        for _ in range(2):
            plans.enter_context(bench.queries.planning(PlanRun(), "ann", 2))

        with pytest.raises(TooManyQueries, match="2 queries of yours go on"):
            bench.plan()
        bench.plan(principal="bob")

    bench.plan()


def test_a_plan_that_fails_or_that_nobody_reads_here_counts_no_more() -> None:
    bench = Bench()
    with pytest.raises(ZeroDivisionError), bench.queries.planning(PlanRun(), "ann", 2):
        raise ZeroDivisionError
    with bench.queries.planning(PlanRun(), "ann", 2):
        pass

    assert bench.queries.going_on("ann") == frozenset()


def test_a_planned_query_counts_until_it_is_read_to_its_end() -> None:
    bench = Bench()
    query = bench.plan(tasks=4)
    bench.hear(query, 1, by="a")
    bench.hear(query, 2, "done", by="b")
    assert bench.goes_on(query)

    bench.hear(query, 2, "done", by="a")

    assert not bench.goes_on(query)


def test_a_query_that_nobody_reads_on_counts_for_a_while() -> None:
    bench = Bench()
    unread, half_read = bench.plan(), bench.plan(tasks=4)
    bench.clock.seconds = 5.0
    bench.hear(half_read, 2, "done")
    bench.clock.seconds = 9.0
    bench.hear(half_read, 2, "done")  # said again, which is nothing new

    counted = []
    for bench.clock.seconds in (9.9, 10.1, 14.9, 15.1):
        counted.append((bench.goes_on(unread), bench.goes_on(half_read)))

    assert counted == [(True, True), (False, True), (False, True), (False, False)]


@pytest.mark.parametrize("outcome", ["cancelled", "failed"])
def test_a_query_that_was_left_counts_no_more_unless_it_is_read_on(outcome: str) -> None:
    bench = Bench()
    query = bench.plan()
    bench.hear(query, 1, outcome, by="a")
    assert not bench.goes_on(query)

    bench.hear(query, 0, by="resumed elsewhere")

    assert bench.goes_on(query)


def test_a_stream_that_went_with_its_worker_counts_no_more() -> None:
    bench = Bench()
    query = bench.plan()
    bench.hear(query, 1)

    bench.clock.seconds = 2 * PATIENCE + 1

    assert not bench.goes_on(query)


def test_queries_that_another_coordinator_has_planned_count_while_they_are_read() -> None:
    bench = Bench()
    bench.hear("other", 1, by="a")
    bench.hear("another", 1, by="b")
    with pytest.raises(TooManyQueries):
        bench.plan()

    bench.hear("other", 9, "done", by="a")

    bench.plan()


def test_a_query_waits_a_moment_for_the_end_of_another_one() -> None:
    bench = Bench(wait_seconds=60.0)
    bench.hear("other", 1)
    bench.hear("another", 1, by="b")
    bench.answer = lambda: bench.hear("other", 2, "done")

    query = bench.plan()

    assert bench.queries.going_on("ann") == {"another", query}


def test_who_leaves_while_a_query_waits_is_not_waited_for() -> None:
    reads = Reads()
    queries = QueriesAtOnce(reads, patience_seconds=PATIENCE, wait_seconds=60.0)
    with (
        queries.planning(PlanRun(), "ann", 1),
        pytest.raises(Cancelled),
        queries.planning(PlanRun(is_cancelled=lambda: True), "ann", 1),
    ):
        pass


def test_principals_that_do_not_come_again_are_forgotten() -> None:
    bench = Bench()
    for i in range(100):
        bench.plan(principal=f"once-{i}")
    assert bench.queries.principals == 100

    bench.clock.seconds = 2 * PATIENCE
    bench.plan()

    assert bench.queries.principals == 1


def planned_as(client: fl.FlightClient, token: str) -> Callable[[], fl.FlightInfo]:
    return lambda: client.get_flight_info(ORDERS, bearing(token))


def test_a_query_too_many_is_refused_until_another_one_has_ended(
    warehouse: Path, orders: TableWriter, tmp_path: Path
) -> None:
    gate = Gate(rows=1000)
    flags = {"auth_tokens": token_file(tmp_path), "max_queries_at_once": 1}
    with local_fleet(warehouse, workers=0, **flags) as fleet, fl.connect(fleet.location) as client:
        worker = fleet.add_worker(gate)
        ann, bob = planned_as(client, ANN), planned_as(client, BOB)
        info = ann()
        with fl.connect(worker.location) as reading:
            stream = reading.do_get(info.endpoints[0].ticket)
            gate.let_through(1)
            stream.read_chunk()

            with pytest.raises(fl.FlightUnavailableError) as refused:
                ann()
            bob()
            stream.cancel()
            gate.let_through(1000)

        error = from_flight(refused.value)
        assert type(error) is TooManyQueries
        assert "a query of yours goes on" in str(error)
        assert wait_until(lambda: answered(ann), "the end to be told").schema == info.schema


def answered(ask: Callable[[], fl.FlightInfo]) -> fl.FlightInfo | None:
    try:
        return ask()
    except fl.FlightUnavailableError:
        return None


@pytest.mark.parametrize("found", [False, True], ids=["that registers", "that is looked for"])
def test_one_query_after_the_other_is_answered(
    warehouse: Path, orders: TableWriter, found: bool
) -> None:
    with local_fleet(warehouse, workers=1, max_queries_at_once=1) as fleet:
        if found:
            worker = fleet.workers[0].location
            fleet.flags["worker"] = [worker]
            fleet.restart_coordinator()
            wait_until(lambda: fleet.coordinator.members.ready(), "the worker to be found")
        with connect(fleet.location) as lake:
            rows = [lake.table("db.orders").scan().to_arrow().num_rows for _ in range(4)]

    assert rows == [800] * 4


def test_floeberg_s_client_comes_again_until_there_is_room(
    warehouse: Path, orders: TableWriter
) -> None:
    command = json.dumps({"table": "db.orders"}).encode()
    flags = {"max_queries_at_once": 1, "lease_seconds": 3.0}
    with (
        local_fleet(warehouse, workers=1, **flags) as fleet,
        fl.connect(fleet.location) as client,
        connect(fleet.location) as lake,
    ):
        client.get_flight_info(fl.FlightDescriptor.for_command(command))  # is never read

        assert lake.table("db.orders").scan().to_arrow().num_rows == 800
