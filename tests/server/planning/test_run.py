from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from floeberg.protocol.errors import Cancelled, PlanTimeout, ServerBusy
from floeberg.server.planning import PlanRun, Seats, Turns
from floeberg.server.planning.run import LARGE_PLAN_BYTES, WAITING, WAITING_FOR_SEAT
from tests.support.clock import Clock
from tests.support.waiting import wait_until


def test_a_run_tells_how_far_the_plan_is() -> None:
    clock = Clock()
    run = PlanRun("db.orders", "ada", now_seconds=clock)
    run.enter("read manifests")
    run.reading(7, 100)
    run.read_one()
    clock.seconds = 2.5

    progress = run.progress

    assert (progress.table, progress.principal) == ("db.orders", "ada")
    assert (progress.phase, progress.seconds) == ("read manifests", 2.5)
    assert (progress.manifests, progress.manifests_read) == (7, 1)


def test_a_plan_that_nobody_waits_for_is_stopped_wherever_it_is() -> None:
    gone = threading.Event()
    run = PlanRun(is_cancelled=gone.is_set)
    run.check()
    gone.set()

    for stop in (run.check, run.read_one, lambda: run.enter("x"), lambda: run.reading(1, 1)):
        with pytest.raises(Cancelled):
            stop()
    with pytest.raises(Cancelled):
        run.ask(lambda: 1)


def test_after_the_end_nobody_is_asked_and_all_is_cancelled() -> None:
    def is_cancelled() -> bool:
        raise AssertionError("the call is over, and its context with it")

    run = PlanRun(is_cancelled=is_cancelled)
    run.end()

    with pytest.raises(Cancelled):
        run.check()


def test_a_plan_that_has_had_its_time_says_how_far_it_came_and_what_to_do() -> None:
    clock = Clock()
    run = PlanRun("db.orders", seconds=300, now_seconds=clock)
    run.enter("read manifests")
    run.reading(4000, 100)
    run.read_one()
    clock.seconds = 299.9
    run.check()
    clock.seconds = 300

    with pytest.raises(PlanTimeout) as raised:
        run.check()

    for part in ("db.orders", "300 s", "1 of 4,000 manifests", "narrow", "plan_seconds"):
        assert part in str(raised.value)


def test_a_long_plan_is_told_of_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    run = PlanRun("db.orders", now_seconds=clock)
    told: list[float] = []

    with caplog.at_level(logging.INFO, "floeberg.server.planning.run"):
        for second in range(35):
            clock.seconds = float(second)
            run.check()
            if caplog.records:
                told.append(second)
                caplog.clear()

    assert told == [10, 20, 30]


def test_large_plans_take_turns_and_small_ones_never_wait() -> None:
    turns = Turns(1)
    first, second, small = (PlanRun(turns=turns) for _ in range(3))
    first.reading(10, LARGE_PLAN_BYTES)
    first.reading(10, LARGE_PLAN_BYTES)  # it has its turn

    waiting = threading.Thread(target=lambda: second.reading(10, LARGE_PLAN_BYTES))
    waiting.start()
    wait_until(lambda: second.progress.phase == WAITING, "the second to wait")
    small.reading(10, LARGE_PLAN_BYTES - 1)
    assert waiting.is_alive()
    first.end()
    waiting.join(10)

    assert not waiting.is_alive()
    assert second.progress.phase == "begin"
    second.end()
    small.end()
    third = PlanRun(turns=turns)
    third.reading(10, LARGE_PLAN_BYTES)
    third.end()


def test_a_plan_whose_turn_does_not_come_is_refused() -> None:
    turns = Turns(1, wait_seconds=0)
    holder, other = PlanRun(turns=turns), PlanRun(turns=turns)
    holder.reading(10, LARGE_PLAN_BYTES)

    with pytest.raises(ServerBusy, match="1 plans"):
        other.reading(10, LARGE_PLAN_BYTES)
    other.end()
    with pytest.raises(ServerBusy):
        PlanRun(turns=turns).reading(10, LARGE_PLAN_BYTES)


def test_a_plan_that_waits_for_its_turn_can_be_cancelled() -> None:
    turns, gone = Turns(1), threading.Event()
    holder, other = PlanRun(turns=turns), PlanRun(turns=turns, is_cancelled=gone.is_set)
    holder.reading(10, LARGE_PLAN_BYTES)
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            other.reading(10, LARGE_PLAN_BYTES)
        except Cancelled as error:
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_until(lambda: other.progress.phase == WAITING, "the plan to wait")
    gone.set()
    waiting.join(10)

    assert len(raised) == 1


def test_a_plan_works_in_a_seat_and_leaves_it_while_it_waits() -> None:
    seats = Seats(1)
    first, second = PlanRun(seats=seats), PlanRun(seats=seats)
    first.begin()

    waiting = threading.Thread(target=second.begin)
    waiting.start()
    wait_until(lambda: second.progress.phase == WAITING_FOR_SEAT, "the second to wait")
    with first.waiting(), first.waiting():
        waiting.join(10)
        assert not waiting.is_alive()
        second.end()
    third = PlanRun(seats=seats, seconds=0)
    with pytest.raises(PlanTimeout, match="wait for other plans"):
        third.begin()
    first.end()
    first.end()

    PlanRun(seats=seats, seconds=0.01).begin()


def test_a_thread_that_works_for_a_plan_leaves_no_seat() -> None:
    seats = Seats(1)
    run, other = PlanRun(seats=seats), PlanRun(seats=seats, seconds=0)
    run.begin()

    def help_out() -> None:
        with run.waiting(), pytest.raises(PlanTimeout):
            other.begin()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(help_out).result(10)
