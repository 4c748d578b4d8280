"""A short form of `make chaos`: the same parts, and some seconds of them."""

from __future__ import annotations

import pytest

from tests.chaos.fleet import Havoc
from tests.chaos.lake import SMALL
from tests.chaos.run import Plan, run
from tests.chaos.tally import Kind
from tests.support.services import Seaweed

# seconds, where nothing else runs; processes take their time to start where much does
pytestmark = pytest.mark.timeout(300)

SHORT = Plan(
    seconds=4,
    seed=20261130,
    clients=3,
    workers=2,
    coordinators=1,
    size=SMALL,
    paces_seconds=(0.0, 0.002),
    havoc=Havoc(
        seconds_between_kills=1.5,
        seconds_between_coordinator_kills=2,
        longest_absence_seconds=0.2,
        all_but_one=0,
        moves=0,
    ),
    storage={"s3.request-timeout": "1"},
    lease_seconds=3,
    # a process may take half a minute to start beside other tests, and that is no fault of a client
    patience_seconds=100,
    longest_query_seconds=120,
)


def test_a_fleet_that_is_killed_and_restarted_on_a_store_that_fails_gives_no_wrong_answer(
    seaweed: Seaweed,
) -> None:
    """One test for both, since what takes the time is to start processes."""
    report = run(SHORT, print, seaweed)

    assert report.violations == []
    assert report.done_to_fleet["workers killed"] >= 1
    assert report.done_to_fleet["coordinators killed"] >= 1
    assert report.done_to_fleet["restarted in turn"] == 3
    assert report.tally.right(Kind.FLOEBERG) >= 4
