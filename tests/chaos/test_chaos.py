"""A short form of `make chaos`: the same parts, and some seconds of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.faults import CALM
from tests.chaos.fleet import Havoc
from tests.chaos.lake import SMALL
from tests.chaos.run import Plan, run
from tests.chaos.tally import Kind
from tests.support.services import Seaweed

# processes take their time to start on a machine that is busy with other tests
pytestmark = pytest.mark.timeout(300)

SHORT = Plan(
    seconds=0,
    seed=20261130,
    clients=4,
    workers=2,
    coordinators=1,
    size=SMALL,
    paces_seconds=(0.0, 0.002),
    storage={"s3.request-timeout": "1"},
)


def test_a_fleet_that_is_killed_and_a_store_that_fails_give_no_wrong_answer(
    seaweed: Seaweed,
) -> None:
    havoc = Havoc(
        seconds_between_kills=1,
        seconds_between_coordinator_kills=3,
        longest_absence_seconds=0.2,
        all_but_one=0,
        moves=0,
    )
    plan = replace(SHORT, seconds=6, workers=3, havoc=havoc, rolls=False)

    report = run(plan, print, seaweed)

    assert report.violations == []
    assert report.done_to_fleet["workers killed"] >= 1
    assert report.tally.right(Kind.FLOEBERG) >= 4


def test_a_rolling_restart_fails_no_query(seaweed: Seaweed) -> None:
    report = run(replace(SHORT, odds=CALM), print, seaweed)

    assert report.violations == []
    assert report.done_to_fleet["restarted in turn"] == 3
    assert report.tally.right(Kind.FLOEBERG) >= 4
