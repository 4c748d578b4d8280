from __future__ import annotations

import pyarrow.flight as fl

from floeberg.protocol.actions import STATUS
from floeberg.protocol.registration import StreamReport
from floeberg.protocol.status import ReadFacts, Status
from floeberg.server.flight.reads import Reads
from tests.support.clock import Clock
from tests.support.fleet import LocalFleet, read_all, read_endpoint
from tests.support.waiting import wait_until


def report(
    stream_id: str, tasks: int, outcome: str | None = None, query: str = "q"
) -> StreamReport:
    return StreamReport.model_validate(
        {
            "query_id": query,
            "stream_id": stream_id,
            "tasks": tasks,
            "rows": tasks * 10,
            "bytes": tasks * 100,
            "outcome": outcome,
        }
    )


def test_queries_that_have_more_rows_than_they_may_are_named_to_who_reports_them() -> None:
    reads = Reads(Clock())

    def limited(stream_id: str, tasks: int, most: int) -> StreamReport:
        return report(stream_id, tasks).model_copy(update={"max_rows": most})

    assert reads.hear([limited("a", 6, 100), report("z", 99, query="other")]) == ()
    assert reads.hear([limited("b", 4, 100)]) == ()
    assert reads.hear([limited("b", 5, 100)]) == ("q",)
    assert reads.hear([report("z", 100, query="other")]) == ()


def test_the_last_word_of_each_stream_counts() -> None:
    reads = Reads(Clock())

    reads.hear([report("a", 1), report("b", 0)])
    reads.hear([report("a", 4, "done"), report("b", 2), report("c", 9, query="other")])

    assert reads.of("q") == ReadFacts(running=1, done=1, tasks=6, rows=60, bytes=600)
    assert reads.of("never read") is None


def test_a_stream_that_went_with_its_worker_runs_no_more() -> None:
    clock = Clock()
    reads = Reads(clock)
    reads.hear([report("a", 1)])

    clock.seconds = 61

    found = reads.of("q")
    assert found is not None
    assert (found.running, found.tasks) == (0, 1)


def test_queries_of_long_ago_are_forgotten() -> None:
    reads = Reads(Clock())
    for number in range(600):
        reads.hear([report("a", 1, query=str(number))])

    assert reads.of("0") is None
    assert reads.of("599") is not None


def status_of(client: fl.FlightClient) -> Status:
    (result,) = client.do_action(fl.Action(STATUS.name, b""))
    return STATUS.parse_reply(result.body.to_pybytes())


def test_a_coordinator_knows_how_far_its_queries_are_read(
    fleet: LocalFleet, client: fl.FlightClient
) -> None:
    orders = fl.FlightDescriptor.for_path("db", "orders")
    whole, part, _ = (client.get_flight_info(orders) for _ in range(3))
    read_all(whole)
    read_endpoint(part.endpoints[0])

    def told() -> list[ReadFacts | None] | None:
        facts = [query.read for query in status_of(client).recent]
        done = [f.done if f else 0 for f in facts]
        return facts if done == [0, 1, len(whole.endpoints)] else None

    unread, begun, complete = wait_until(told, "the workers to tell")
    assert unread is None
    assert begun is not None
    assert complete is not None
    assert (complete.tasks, complete.rows, complete.running) == (8, 800, 0)
    assert begun.tasks < 8
