"""No late query is hidden, and none is late for a machine that stood still."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.chaos.lake import COLUMNS, Question, rows_of
from tests.chaos.stillness import STILL_SECONDS, watching
from tests.chaos.summary import summary
from tests.chaos.tally import LONGEST_QUERY_SECONDS, Kind, Tally
from tests.support.clock import Clock

LONG = LONGEST_QUERY_SECONDS + 1
IDS = np.arange(3, dtype=np.int64)
QUESTION = Question("plain()", "db.plain", {}, rows_of(IDS).select(COLUMNS))


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def tally(clock: Clock) -> Tally:
    return Tally(print, clock)


def test_a_query_that_runs_too_long_is_told_once(clock: Clock, tally: Tally) -> None:
    with tally.query(Kind.FLOEBERG, QUESTION):
        clock.seconds += LONG
        tally.watch()
        tally.watch()
    tally.watch()

    assert len(tally.violations) == 1
    assert tally.late[Kind.FLOEBERG] == 1


def test_a_query_that_ended_too_late_unseen_is_told(clock: Clock, tally: Tally) -> None:
    with tally.query(Kind.FLOEBERG, QUESTION):
        clock.seconds += LONG

    tally.watch()

    assert tally.late[Kind.FLOEBERG] == 1


def test_a_stock_client_may_take_its_time(clock: Clock, tally: Tally) -> None:
    with tally.query(Kind.ADBC, QUESTION):
        clock.seconds += LONG
    tally.watch()

    assert tally.violations == []
    assert tally.late[Kind.ADBC] == 1


@pytest.mark.parametrize(
    ("before", "still", "after", "is_late"),
    [(20, 100, 20, False), (40, 100, 40, True), (70, 100, 0, True), (0, 100, 70, True)],
)
def test_the_time_of_standing_still_is_not_counted_and_no_more_than_that(
    clock: Clock, tally: Tally, before: float, still: float, after: float, is_late: bool
) -> None:
    with tally.query(Kind.FLOEBERG, QUESTION):
        clock.seconds += before
        since = clock.seconds
        clock.seconds += still
        tally.forgive(since, clock.seconds)
        clock.seconds += after
    tally.watch()

    assert bool(tally.violations) is is_late
    assert tally.seconds(Kind.FLOEBERG, 1) == before + after


def test_a_query_that_began_later_gains_nothing(clock: Clock, tally: Tally) -> None:
    since = clock.seconds
    clock.seconds += 100
    with tally.query(Kind.FLOEBERG, QUESTION):
        tally.forgive(since, clock.seconds)
        clock.seconds += LONG
        tally.watch()

    assert len(tally.violations) == 1


def test_only_a_moment_that_lasts_is_a_machine_that_stands_still() -> None:
    readings = [0.0, 0.2, 0.2, STILL_SECONDS, 50.0, 50.0 + STILL_SECONDS + 1]
    times = iter(readings)
    told: list[tuple[float, float]] = []
    looks: list[int] = []
    enough = threading.Event()

    def look() -> None:
        looks.append(len(told))
        if len(looks) >= 3:
            enough.set()

    with watching(lambda a, b: told.append((a, b)), look, lambda: next(times, 70.0)):
        assert enough.wait(20)

    assert told == [(50.0, 50.0 + STILL_SECONDS + 1)]
    assert looks[:3] == [0, 0, 1]


def test_the_summary_is_markdown_that_says_what_was_forgiven(clock: Clock, tally: Tally) -> None:
    with tally.query(Kind.FLOEBERG, QUESTION):
        clock.seconds += 1
    tally.answered(Kind.FLOEBERG, QUESTION, QUESTION.expected, resumed=2)
    tally.failed(Kind.PYARROW, QUESTION, OSError("reset"), retryable=True)
    tally.forgive(clock.seconds, clock.seconds + 30)

    lines = summary("1 minute", tally, {"workers killed": 4}, {"passed": 1000, "503": 5})

    assert "| clients | floeberg | pyarrow.flight |" in lines
    assert "| right | 100.0% | 0.0% |" in lines
    assert "| streams cut after delivered batches, and resumed | 2 |" in lines
    assert "| workers killed | 4 |" in lines
    assert "| of these: 503 | 5 |" in lines
    assert "| time forgiven for that | 30 s |" in lines
    assert lines[-1] == "No violation."
