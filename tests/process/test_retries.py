"""Retries: as often as may help, and never many at once."""

from __future__ import annotations

import pytest

from floeberg.process.retries import Attempts, RetryBudget, RetryPolicy, scan_budget
from floeberg.protocol.errors import (
    NoWorkers,
    PlanTimeout,
    ServerUnavailable,
    StorageUnavailable,
    TimedOut,
    Unavailable,
)
from tests.support.clock import Clock


def seen(error: Unavailable) -> Unavailable:
    """Return the error as one that a server has told."""
    error.request_id = "r"
    return error


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


def attempts(clock: Clock, policy: RetryPolicy) -> Attempts:
    return Attempts(policy, RetryBudget(1000, 1000, clock=clock), clock)


def tries(made: Attempts, error: Unavailable, servers: int, *, was_served: bool) -> int:
    """Return how many failures it takes until the error is told, up to a hundred."""
    for number in range(1, 100):
        if made.pause_after(error, servers, was_served=was_served) is None:
            return number
    return 100


def test_pauses_grow_with_each_round_up_to_a_bound():
    policy = RetryPolicy(base_seconds=0.5, most_seconds=3, random=lambda: 1.0)

    assert [policy.pause_seconds(n) for n in (1, 2, 3, 9)] == [1, 2, 3, 3]
    assert RetryPolicy(random=lambda: 0.0).pause_seconds(5) == 0


def test_there_is_a_pause_only_when_every_server_has_failed(clock: Clock):
    made = attempts(clock, RetryPolicy(base_seconds=1, random=lambda: 1.0))
    error = seen(StorageUnavailable("s3 is down"))

    pauses = [made.pause_after(error, 3, was_served=False) for _ in range(6)]

    assert pauses == [0, 0, 2, 0, 0, 4]


def test_an_error_is_told_after_so_many_rounds(clock: Clock):
    error = seen(StorageUnavailable("s3 is down"))

    assert tries(attempts(clock, RetryPolicy(rounds=3)), error, 2, was_served=False) == 6


def test_a_connection_that_was_served_waits_longer(clock: Clock):
    made = attempts(clock, RetryPolicy(rounds=1, patience_seconds=30))
    error = ServerUnavailable("gone")

    assert tries(made, error, 2, was_served=True) == 100
    clock.seconds += 31
    assert made.pause_after(error, 2, was_served=True) is None


def test_what_succeeds_begins_anew(clock: Clock):
    made = attempts(clock, RetryPolicy(rounds=1, patience_seconds=30))
    error = ServerUnavailable("gone")
    made.pause_after(error, 2, was_served=True)
    clock.seconds += 31

    made.succeeded()

    assert made.failures == 0
    assert made.pause_after(error, 2, was_served=True) is not None


@pytest.mark.parametrize("error", [ServerUnavailable("nobody listens"), seen(NoWorkers())])
def test_nobody_waits_long_to_hear_that_nobody_is_there(clock: Clock, error: Unavailable):
    assert tries(attempts(clock, RetryPolicy()), error, 2, was_served=False) == 2


@pytest.mark.parametrize(
    ("servers", "was_served", "expected"),
    [(1, False, 1), (1, True, 2), (3, False, 3), (3, True, 3)],
)
def test_servers_that_stand_still_are_asked_once_each(
    clock: Clock, servers: int, was_served: bool, expected: int
):
    error = TimedOut("nothing")
    error.is_silent = True

    found = tries(attempts(clock, RetryPolicy()), error, servers, was_served=was_served)

    assert found == expected


@pytest.mark.parametrize("error", [TimedOut("late"), PlanTimeout("late")])
def test_what_another_try_would_only_repeat_is_told_at_once(clock: Clock, error: Unavailable):
    assert tries(attempts(clock, RetryPolicy()), seen(error), 1, was_served=True) == 1


def test_a_budget_lets_a_burst_through_and_then_a_rate(clock: Clock):
    budget = RetryBudget(3, 2, clock=clock)

    assert [budget.take() for _ in range(6)] == [0, 0, 0, 0.5, 1, 1.5]
    clock.seconds += 2  # four more, of which three were due
    assert [budget.take() for _ in range(2)] == [0, 0.5]
    clock.seconds += 1000
    assert [budget.take() for _ in range(4)] == [0, 0, 0, 0.5]


def test_a_scan_takes_of_its_connections_budget_as_well(clock: Clock):
    connection = RetryBudget(2, 1, clock=clock)
    scans = [RetryBudget(24, 5, connection, clock=clock) for _ in range(2)]

    assert [scan.take() for scan in scans for _ in range(2)] == [0, 0, 1, 2]
    assert scan_budget(connection).take() == 3


def test_pauses_wait_for_the_budget(clock: Clock):
    made = Attempts(RetryPolicy(base_seconds=0), RetryBudget(1, 0.5, clock=clock), clock)
    error = seen(StorageUnavailable("s3 is down"))

    assert [made.pause_after(error, 9, was_served=True) for _ in range(3)] == [0, 2, 4]
