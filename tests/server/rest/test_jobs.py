from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from floeberg.protocol.errors import ServerUnavailable
from floeberg.server.rest.errors import NoSuchPlan, TooManyPlans
from floeberg.server.rest.jobs import Jobs

TABLE = ("lake", "db", "t")


@pytest.fixture
def jobs() -> Iterator[Jobs[int]]:
    made: Jobs[int] = Jobs()
    yield made
    made.close()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds work up until it is set, at the end of the test at the latest."""
    event = threading.Event()
    yield event
    event.set()


def test_a_job_is_found_by_its_id_for_its_own_table(jobs: Jobs[int]):
    job = jobs.start(TABLE, lambda cancelled: 7)

    assert job.future.result(10) == 7
    assert jobs.get(job.plan_id, TABLE) is job
    for plan_id, table in ((job.plan_id, ("lake", "db", "u")), ("x", TABLE)):
        with pytest.raises(NoSuchPlan):
            jobs.get(plan_id, table)


def test_a_job_is_forgotten_after_an_hour():
    now = [0.0]
    jobs: Jobs[int] = Jobs(lambda: now[0])
    job = jobs.start(TABLE, lambda cancelled: 7)
    now[0] = 3599.0
    assert jobs.get(job.plan_id, TABLE) is job

    now[0] = 3601.0
    with pytest.raises(NoSuchPlan):
        jobs.get(job.plan_id, TABLE)
    jobs.close()


def test_cancelling_tells_the_work_under_way_and_keeps_what_waits_from_beginning(
    jobs: Jobs[int], gate: threading.Event
):
    begun = threading.Semaphore(0)

    def work(cancelled: threading.Event) -> int:
        begun.release()
        gate.wait()
        return int(cancelled.is_set())

    running = [jobs.start(TABLE, work) for _ in range(4)]
    for _ in running:
        begun.acquire()
    waiting = jobs.start(TABLE, work)
    jobs.cancel(running[0].plan_id, TABLE)
    jobs.cancel(waiting.plan_id, TABLE)
    gate.set()

    assert [job.future.result(10) for job in running] == [1, 0, 0, 0]
    with pytest.raises(CancelledError):
        waiting.future.result(10)


def test_more_than_can_be_planned_is_refused_and_room_comes_back(
    jobs: Jobs[int], gate: threading.Event
):
    started = [jobs.start(TABLE, lambda cancelled: int(gate.wait())) for _ in range(64)]

    with pytest.raises(TooManyPlans, match="64 requests"):
        jobs.start(TABLE, lambda cancelled: 1)
    gate.set()
    for job in started:
        job.future.result(10)
    assert jobs.run(lambda: 5).result(10) == 5


def test_nothing_is_started_once_it_is_closed(gate: threading.Event):
    jobs: Jobs[int] = Jobs()
    job = jobs.start(TABLE, lambda cancelled: int(cancelled.wait(10)))

    jobs.close()

    assert job.future.result(10) == 1
    with pytest.raises(ServerUnavailable):
        jobs.run(lambda: 5)
