from __future__ import annotations

import pytest

from floeberg.protocol.errors import Cancelled, MissingFile
from floeberg.protocol.plans import START, ResumePlace
from floeberg.protocol.tickets import Origin
from floeberg.worker.stream_log import StreamLog, StreamRecord
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


@pytest.fixture
def log(clock: Clock) -> StreamLog:
    return StreamLog(now_seconds=clock, now_ms=lambda: int(clock.seconds * 1000))


def record(
    log: StreamLog, clock: Clock, table: str, principal: str | None = None, tasks: int = 1
) -> StreamRecord:
    return StreamRecord(
        Origin("q1", "r1"), table, principal, tasks, START, int(clock.seconds * 1000), clock
    )


def test_a_stream_tells_how_far_it_is_and_how_long_its_client_makes_it_wait(
    log: StreamLog, clock: Clock
) -> None:
    stream = record(log, clock, "db.orders", "ann", tasks=3)
    with log.follow(stream):
        clock.seconds += 2
        stream.offer(ResumePlace(1, 0), rows=10, size_bytes=800)
        clock.seconds += 3

        (waiting,) = log.running()
        stream.taken()
        (sending,) = log.running()

    assert (waiting.rows, waiting.waits_seconds, waiting.outcome) == (0, 3.0, None)
    assert (waiting.task, waiting.tasks) == (2, 3)
    assert (sending.rows, sending.bytes, sending.waits_seconds) == (10, 800, 0.0)
    assert (sending.rows_per_second, sending.bytes_per_second) == (2.0, 160.0)
    assert (sending.began_ms, sending.principal) == (100_000, "ann")
    assert log.running() == ()


def test_what_became_of_streams_is_remembered_newest_first(log: StreamLog, clock: Clock) -> None:
    def run(table: str, error: BaseException | None = None) -> None:
        stream = record(log, clock, table)
        with log.follow(stream):
            stream.offer(ResumePlace(1, 0), rows=5, size_bytes=40)
            stream.taken()
            if error is not None:
                raise error

    run("a")
    clock.seconds += 1
    for error in (MissingFile("x"), Cancelled("gone"), GeneratorExit(), KeyError("x")):
        with pytest.raises(type(error)):
            run("b", error)
    log.refused()

    assert [(s.table, s.outcome, s.code) for s in log.recent()] == [
        ("b", "failed", "INTERNAL"),
        ("b", "cancelled", "CANCELLED"),
        ("b", "cancelled", "CANCELLED"),
        ("b", "failed", "MISSING_FILE"),
        ("a", "done", None),
    ]
    assert log.ended() == {"done": 1, "failed": 2, "cancelled": 2, "refused": 1}
    assert log.sent() == (25, 200)


def test_only_the_last_streams_are_remembered(log: StreamLog, clock: Clock) -> None:
    for number in range(150):
        with log.follow(record(log, clock, f"t{number}")):
            pass

    assert len(log.recent()) == 100
    assert log.recent()[0].table == "t149"


def test_a_stream_at_its_last_row_is_in_its_last_task(log: StreamLog, clock: Clock) -> None:
    stream = record(log, clock, "t", tasks=2)
    with log.follow(stream):
        stream.offer(ResumePlace(2, 0), rows=1, size_bytes=8)
        (entry,) = log.running()

    assert (entry.task, entry.tasks) == (2, 2)


def test_coordinators_are_told_of_streams_under_way_and_for_a_while_of_those_that_ended(
    log: StreamLog, clock: Clock
) -> None:
    resumed = StreamRecord(Origin("q1"), "t", None, 5, ResumePlace(2, 10), 0, clock)
    unnamed = StreamRecord(Origin(), "t", None, 5, START, 0, clock)
    with log.follow(resumed), log.follow(unnamed):
        resumed.offer(ResumePlace(3, 0), rows=7, size_bytes=70)
        resumed.taken()
        (running,) = log.reports()
    (ended,) = log.reports()
    clock.seconds += 61

    assert (running.query_id, running.tasks, running.outcome) == ("q1", 1, None)
    assert (ended.stream_id, ended.tasks, ended.outcome) == (running.stream_id, 3, "done")
    assert (ended.rows, ended.bytes) == (7, 70)
    assert log.reports() == ()
