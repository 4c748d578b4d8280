"""Streams that are late are read elsewhere too, and no row comes twice or is missing."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from floeberg.client import Hedging, Progress, connect
from floeberg.client.hedging import Attempt, HedgedStream, Hedges
from floeberg.protocol.errors import (
    BadRequest,
    CorruptDataFile,
    ServerUnavailable,
    WorkerBusy,
)
from tests.support.breaking import StallingRead
from tests.support.clock import Clock
from tests.support.fleet import local_fleet
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.processes import Processes, processes
from tests.support.waiting import wait_until

ROWS = list(range(300))
AT_ONCE = Hedging(after_seconds=0.0, share=1.0)


# --- when a stream is late ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hedging", "others", "expected"),
    [
        (Hedging(after_seconds=3), [], 3),
        (Hedging(after_seconds=3), [100.0] * 9, 3),
        (Hedging(after_seconds=3, times_median=5), [0.1] * 7, math.inf),
        (Hedging(after_seconds=3, times_median=5), [0.1] * 8, 3),
        (Hedging(after_seconds=3, times_median=5), [1.0] * 5 + [9.0] * 4, 5),
    ],
)
def test_late_is_what_takes_longer_than_others(
    hedging: Hedging, others: list[float], expected: float
) -> None:
    hedges = Hedges(hedging, streams=4)
    for seconds in others:
        hedges.took("another", seconds)
        hedges.took("it", 1000.0)  # its own waits say nothing

    assert hedges.late_after("it") == expected


@pytest.mark.parametrize(("streams", "at_once"), [(1, 1), (7, 1), (8, 2), (16, 4)])
def test_a_part_of_the_streams_is_read_twice_at_a_time(streams: int, at_once: int) -> None:
    hedges = Hedges(Hedging(share=0.25), streams)

    begun = [hedges.begin() for _ in range(streams + 1)]

    assert sum(begun) == at_once
    hedges.end()
    assert [hedges.begin(), hedges.begin()] == [True, False]


@pytest.mark.parametrize(
    "wrong", [{"after_seconds": -1}, {"times_median": 0.5}, {"share": 0}, {"share": 1.5}]
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadRequest):
        Hedging(**wrong)


# --- who goes on ----------------------------------------------------------------------------------


class Track:
    """Numbers from several locations, each of which gives what a test lets it."""

    def __init__(self, *locations: str, hedging: Hedging = AT_ONCE) -> None:
        self.clock = Clock()
        self.hedges = Hedges(hedging, streams=1)
        self.begun: list[tuple[str, int]] = []
        """Where reading began, and from which number on."""
        self.moves: list[tuple[str | None, str | None]] = []
        self.dropped: list[str] = []
        self._delivered = 0
        self._says = {at: SimpleQueue[int | Exception | None]() for at in locations}
        self.stream = HedgedStream(
            self.hedges,
            self._begin,
            locations[0],
            locations,
            lambda slow, fast: self.moves.append((slow, fast)),
            self.clock,
        )

    def _begin(self, location: str | None, changed: threading.Condition) -> Attempt[int]:
        assert location is not None
        self.begun.append((location, self._delivered))

        def drop() -> None:
            self.dropped.append(location)
            self._says[location].put(ServerUnavailable("cancelled"))

        return Attempt(location, self._numbers(location, self._delivered), drop, changed)

    def _numbers(self, location: str, first: int) -> Generator[int, None, None]:
        while (said := self._says[location].get()) is not None:
            if isinstance(said, Exception):
                raise said
            yield from range(first, first + said)
            first += said

    def let(self, location: str, said: int | Exception | None) -> None:
        """Let a location give so many numbers, fail, or come to its end."""
        self._says[location].put(said)

    def __iter__(self) -> Iterator[int]:
        for number in self.stream:
            self._delivered = number + 1
            yield number

    def collect(self) -> list[int]:
        found = list(self)
        self.stream.close()
        return found


def test_a_stream_that_is_in_time_is_read_once() -> None:
    track = Track("a", "b", hedging=Hedging(after_seconds=1000))
    track.let("a", 5)
    track.let("a", None)

    assert track.collect() == [0, 1, 2, 3, 4]
    assert track.begun == [("a", 0)]


def test_a_late_stream_goes_on_elsewhere_from_where_it_was() -> None:
    track = Track("a", "b", hedging=Hedging(after_seconds=10))
    numbers = iter(track)
    track.let("a", 2)
    assert [next(numbers), next(numbers)] == [0, 1]
    track.let("b", 3)
    track.let("b", None)

    track.clock.seconds = 10.0 - 1e-9
    rest: list[int] = []
    reading = threading.Thread(target=lambda: rest.extend(numbers))
    reading.start()
    track.clock.seconds = 21.0
    reading.join(20)

    assert rest == [2, 3, 4]
    assert track.begun == [("a", 0), ("b", 2)]
    assert track.moves == [("a", "b")]
    assert track.dropped == ["a"]
    assert track.hedges.begin(), "the slot is free again"


def test_the_first_stream_goes_on_when_it_is_faster_after_all() -> None:
    track = Track("a", "b")
    found: list[int] = []
    reading = threading.Thread(target=lambda: found.extend(track.collect()))
    reading.start()
    wait_until(lambda: len(track.begun) == 2, "the second stream to begin")
    track.let("a", 1)
    track.let("a", None)
    reading.join(20)

    assert found == [0]
    assert track.moves == []
    assert "b" in track.dropped


def test_a_second_stream_that_fails_changes_nothing_and_the_next_location_is_tried() -> None:
    track = Track("a", "b", "c")
    track.let("b", WorkerBusy("full"))
    track.let("c", 2)
    track.let("c", None)

    assert track.collect() == [0, 1]
    assert [at for at, _ in track.begun[:3]] == ["a", "b", "c"]


def test_the_second_stream_goes_on_when_the_first_one_breaks() -> None:
    track = Track("a", "b")
    found: list[int] = []
    reading = threading.Thread(target=lambda: found.extend(track.collect()))
    reading.start()
    wait_until(lambda: len(track.begun) == 2, "the second stream to begin")
    track.let("a", ServerUnavailable("gone"))
    track.let("b", 2)
    track.let("b", None)
    reading.join(20)

    assert found == [0, 1]


@pytest.mark.parametrize("who", ["a", "b"])
def test_what_another_worker_would_repeat_is_raised_whoever_says_it(who: str) -> None:
    track = Track("a", "b")
    track.let(who, CorruptDataFile("cut"))

    with pytest.raises(CorruptDataFile):
        track.collect()


def test_when_all_break_the_error_is_told() -> None:
    track = Track("a", "b", hedging=Hedging(after_seconds=1000))
    track.let("a", ServerUnavailable("gone"))

    with pytest.raises(ServerUnavailable, match="gone"):
        track.collect()


def test_where_there_is_no_other_location_nothing_is_read_twice() -> None:
    track = Track("a")
    threading.Timer(0.2, lambda: (track.let("a", 1), track.let("a", None))).start()

    assert track.collect() == [0]
    assert track.begun == [("a", 0)]


# --- on real workers ------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with `db.numbers`: three files of a hundred numbers, counted from 0."""
    directory = tmp_path_factory.mktemp("hedged-numbers")
    table = TableWriter.create(
        directory / "db" / "numbers", schema({"n": required("long"), "text": "string"})
    )
    for first in range(0, 300, 100):
        rows = [{"n": n, "text": f"{n:0100}"} for n in range(first, first + 100)]
        table.append(rows, layout=FileLayout(codec="none"))
    return directory


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as started:
        yield started


def test_a_worker_that_stands_still_loses_no_row(numbers: Path, started: Processes) -> None:
    coordinator = started.coordinator(numbers)
    workers = [started.worker(coordinator) for _ in range(2)]
    told: list[Progress] = []
    hedging = Hedging(after_seconds=0.3, share=1.0)
    with connect(coordinator.addresses["coordinator"], hedging=hedging) as lake:
        wait_until(lambda: len(lake.status().workers) == 2, "both workers to join")
        plan = lake.table("db.numbers").scan(ordered=True, on_progress=told.append).planned()
        first = plan.info.endpoints[0].locations[0].uri.decode()
        (still,) = (w for w in workers if w.addresses["location"] == first)
        still.signal(signal.SIGSTOP)
        try:
            found = [n for batch in plan.batches() for n in batch["n"].to_pylist()]
        finally:
            still.signal(signal.SIGCONT)

    assert found == ROWS[200:] + ROWS[100:200] + ROWS[:100]
    assert sum(p.hedged_streams for p in told) > 0


@pytest.mark.parametrize("after", [0, 1, 5])
@pytest.mark.parametrize("ordered", [False, True])
def test_streams_that_stall_in_the_middle_go_on_where_they_were(
    numbers: Path, after: int, ordered: bool
) -> None:
    stalling = StallingRead(after)
    told: list[Progress] = []
    with local_fleet(numbers, workers=0, batch_bytes=1024) as fleet:
        fleet.add_worker(stalling)
        fleet.add_worker()
        hedging = Hedging(after_seconds=0.2, share=0.25)
        try:
            with connect(fleet.location, hedging=hedging) as lake:
                scan = lake.table("db.numbers").scan(ordered=ordered, on_progress=told.append)
                found = scan.to_arrow()["n"].to_pylist()
        finally:
            stalling.release()

    expected = ROWS[200:] + ROWS[100:200] + ROWS[:100]
    assert (found if ordered else sorted(found)) == (expected if ordered else ROWS)
    assert sum(p.hedged_streams for p in told) > 0
    assert sum(p.rows for p in told) == len(ROWS)


def test_nothing_is_hedged_unless_it_is_asked_for(numbers: Path) -> None:
    with local_fleet(numbers, workers=1) as fleet, connect(fleet.location) as lake:
        assert lake.table("db.numbers").scan().hedging is None
