from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError

import pytest

from floeberg.server.planning.fair_pool import FairPool, Job


class Made:
    """Keeps the order in which calls were made; the first one waits until it may go on."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def blocking(self) -> None:
        self.begun.set()
        assert self.go_on.wait(20)

    def call(self, name: str) -> Callable[[], None]:
        return lambda: self.names.append(name)


@pytest.fixture
def made() -> Made:
    return Made()


def blocked_pool(made: Made, max_weight: int = 0) -> tuple[FairPool, Job[None]]:
    pool, first = FairPool(1, "test", max_weight), Job(made.blocking)
    pool.submit("first", first)
    assert made.begun.wait(20)
    return pool, first


def test_lanes_take_turns(made):
    pool, first = blocked_pool(made)
    jobs = {name: Job(made.call(name)) for name in ("a1", "a2", "a3", "b1", "c1", "c2")}
    for name, job in jobs.items():
        pool.submit(name[0], job)

    settled = threading.Semaphore(0)
    for job in jobs.values():
        job.then(settled.release)
    made.go_on.set()

    assert all(settled.acquire(timeout=20) for _ in jobs)
    assert made.names == ["a1", "b1", "c1", "a2", "c2", "a3"]
    first.result()


def test_who_waits_for_a_job_that_nobody_has_begun_does_it(made):
    pool, _ = blocked_pool(made)
    job = Job(threading.get_ident)
    pool.submit("lane", job)

    assert job.result() == threading.get_ident()

    made.go_on.set()


def test_a_job_is_done_once_whoever_asks(made):
    job = Job(made.call("only"))
    threads = [threading.Thread(target=job.result) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    job.run()
    job.cancel()

    assert made.names == ["only"]
    assert job.succeeds()


def test_an_error_goes_to_whoever_asks():
    def fail() -> None:
        raise ValueError("so it is")

    job = Job(fail)
    job.run()

    assert not job.succeeds()
    with pytest.raises(ValueError, match="so it is"):
        job.result()


def test_what_was_given_up_is_never_done(made):
    pool, first = blocked_pool(made)
    given_up, later = Job(made.call("given up")), Job(made.call("later"))
    told = threading.Event()
    given_up.then(told.set)
    pool.submit("lane", given_up)
    pool.submit("lane", later)

    given_up.cancel()
    made.go_on.set()

    assert told.is_set()
    assert not given_up.succeeds()
    with pytest.raises(CancelledError):
        given_up.result()
    later.result()
    first.result()
    assert made.names == ["later"]


def test_weights_are_held_until_another_job_is_settled():
    pool = FairPool(4, "test", max_weight=10)
    begun: list[int] = []
    all_begun = threading.Semaphore(0)

    def call(number: int) -> Callable[[], None]:
        def begin() -> None:
            begun.append(number)
            all_begun.release()

        return begin

    endings = [Job(lambda: None) for _ in range(4)]
    weights = [6, 4, 1, 100]
    for number, (weight, ending) in enumerate(zip(weights, endings, strict=True)):
        pool.submit(number, Job(call(number)), weight, until=ending)

    assert all_begun.acquire(timeout=20)
    assert all_begun.acquire(timeout=20)
    assert sorted(begun) == [0, 1]  # and no more have room
    endings[1].cancel()
    assert all_begun.acquire(timeout=20)
    assert begun[2:] == [2]
    endings[0].run()
    endings[2].run()
    assert all_begun.acquire(timeout=20)
    assert begun[3:] == [3]  # more than all there is: alone
    endings[3].run()


def test_who_is_patient_makes_a_call_only_after_asking_whether_to_go_on() -> None:
    asked: list[bool] = []
    job = Job(lambda: "made")

    assert job.result(lambda: asked.append(job.is_waiting), patience=2) == "made"
    assert asked == [True, True]


def test_who_is_patient_takes_what_another_thread_makes() -> None:
    made_by: list[str] = []
    job = Job(lambda: made_by.append(threading.current_thread().name))
    pool = FairPool(1, "others")
    pool.submit(None, job)

    job.result(patience=200)

    assert made_by[0].startswith("others")
