from __future__ import annotations

import threading
import weakref

import pytest

from floeberg.process.background import Background, Job
from tests.support.waiting import wait_until


def threads_of(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


def test_a_job_is_done_in_the_background() -> None:
    background = Background(2, "bg-once")
    job = Job(threading.current_thread)

    background.submit(job)
    wait_until(lambda: job.is_done, "the job to be done")

    assert job.result().name == "bg-once"


def test_what_no_thread_has_begun_is_done_by_whoever_needs_it() -> None:
    background, hold = Background(1, "bg-busy"), threading.Event()
    began = threading.Event()
    busy = Job(lambda: began.set() or hold.wait())
    background.submit(busy)
    began.wait()
    job = Job(threading.current_thread)

    background.submit(job)

    assert job.result() is threading.current_thread()
    hold.set()
    busy.result()


def test_a_job_is_done_once_however_many_ask() -> None:
    calls: list[int] = []
    background = Background(4, "bg-many")
    jobs = [Job(lambda n=n: calls.append(n)) for n in range(200)]

    for job in jobs:
        background.submit(job)
    for job in jobs:
        job.result()

    assert sorted(calls) == list(range(200))
    assert len(threads_of("bg-many")) <= 4


def test_what_a_job_raises_is_raised_where_its_result_is_asked_for() -> None:
    background = Background(1, "bg-fails")
    job: Job[int] = Job(lambda: 1 // 0)
    background.submit(job)

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            job.result()


def test_a_dropped_job_is_not_begun() -> None:
    background, calls = Background(1, "bg-drops"), list[int]()
    dropped, last = Job(lambda: calls.append(1)), Job(lambda: calls.append(2))

    dropped.drop()
    background.submit(dropped)
    background.submit(last)
    wait_until(lambda: last.is_done, "the last job to be done")

    assert calls == [2]


def test_threads_without_work_end() -> None:
    background = Background(3, "bg-idle", idle_seconds=0.01)
    jobs = [Job(int) for _ in range(9)]
    for job in jobs:
        background.submit(job)

    wait_until(lambda: not threads_of("bg-idle"), "the threads to end")

    background.submit(again := Job(int))
    wait_until(lambda: again.is_done, "a new thread to come")


def test_who_has_a_job_of_a_method_of_its_own_is_gone_with_its_last_user() -> None:
    class Owner:
        def __init__(self) -> None:
            self.job = Job(self.work)

        def work(self) -> int:
            return 7

    done, dropped = Owner(), Owner()
    done.job.run()
    dropped.job.drop()
    gone = [weakref.ref(done), weakref.ref(dropped)]

    assert done.job.result() == 7
    del done, dropped
    assert [ref() for ref in gone] == [None, None]
