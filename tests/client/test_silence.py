"""A coordinator that stands still, and one that takes long: a deadline passes either way."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from floeberg.client import connect
from floeberg.protocol.errors import TimedOut
from floeberg.protocol.status import Status
from tests.support.callers import password_file
from tests.support.fleet import local_fleet
from tests.support.held import Holdup
from tests.support.orders import live_ids
from tests.support.processes import Processes, ServiceProcess, processes
from tests.support.waiting import wait_until

DEADLINE = 4.0
"""Of a call, which a server that is up answers in time also on a busy machine."""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as started:
        yield started


@pytest.fixture
def two(warehouse: Path, started: Processes) -> list[ServiceProcess]:
    """Two coordinators of one worker."""
    coordinators = [started.coordinator(warehouse) for _ in range(2)]
    flags = [f for c in coordinators for f in ("--coordinator", c.addresses["coordinator"])]
    worker = started.start("floeberg.worker", *flags)
    wait_until(lambda: worker.status()["coordinators"] == 2, "both to have the worker")
    return coordinators


def test_another_coordinator_is_asked_when_one_stands_still(two: list[ServiceProcess]) -> None:
    locations = [c.addresses["coordinator"] for c in two]
    with connect(locations, timeout_seconds=DEADLINE) as lake:
        scan = lake.table("db.orders").scan()
        assert scan.to_arrow().num_rows == len(live_ids())
        two[0].signal(signal.SIGSTOP)
        try:
            assert scan.to_arrow().num_rows == len(live_ids())
        finally:
            two[0].signal(signal.SIGCONT)

        assert repr(lake) == f"<Lake at {locations[1]}>", "the next call goes there at once"


def test_a_login_that_is_not_answered_is_tried_elsewhere_too(
    warehouse: Path, started: Processes, tmp_path: Path
) -> None:
    passwords = password_file(tmp_path, ann="secret")
    pair = [started.coordinator(warehouse, "--auth-passwords", passwords) for _ in range(2)]
    locations = [c.addresses["coordinator"] for c in pair]
    pair[0].signal(signal.SIGSTOP)
    try:
        with connect(
            locations, username="ann", password="secret", timeout_seconds=DEADLINE
        ) as lake:
            assert lake.tables()
    finally:
        pair[0].signal(signal.SIGCONT)


def test_a_plan_that_takes_long_is_not_asked_for_again(warehouse: Path) -> None:
    holdup = Holdup("-m0.avro")
    try:
        with (
            local_fleet(warehouse, workers=1, open_storage=holdup.storage) as fleet,
            connect([fleet.location, fleet.location], timeout_seconds=2.0) as lake,
        ):
            with pytest.raises(TimedOut, match=r"took longer than 2\.0 s, and is busy with it"):
                lake.table("db.orders").scan().planned()

            wait_until(lambda: asked(lake.status()), "the plan to end")
            assert asked(lake.status()) == 1
    finally:
        holdup.release()


def asked(status: Status) -> int:
    return sum(status.queries.values())
