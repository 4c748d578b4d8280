"""Windows are fetched in order, ahead of need, within bounds, and dropped once they are read."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from floeberg.process.background import Background
from floeberg.protocol.errors import AccessDenied
from floeberg.worker.files.windows import Ahead, Room, Windows
from tests.support.waiting import wait_until

CONTENT = bytes(i % 251 for i in range(600_000))
Range = tuple[int, int]


class Rounds:
    """An object; each call of `fetch` is kept, and waits while `held`."""

    def __init__(self) -> None:
        self.asked: list[list[Range]] = []
        self.threads: list[str] = []
        self.released = threading.Event()
        self.released.set()
        self.error: Exception | None = None

    def fetch(self, ranges: Sequence[Range]) -> list[bytes]:
        self.asked.append(list(ranges))
        self.threads.append(threading.current_thread().name)
        self.released.wait()
        if self.error is not None:
            raise self.error
        return [CONTENT[start : start + length] for start, length in ranges]


def windows_of(*starts: int, length: int = 1000) -> list[list[Range]]:
    return [[(start, length)] for start in starts]


@pytest.fixture
def rounds() -> Rounds:
    return Rounds()


@pytest.fixture
def ahead() -> Ahead:
    return Ahead(Background(2, "test-fetch"))


def take(windows: Windows, start: int, length: int) -> None:
    data = windows.take(start, length)
    assert data is not None
    assert data.to_pybytes() == CONTENT[start : start + length]


def test_without_leave_a_window_is_fetched_when_it_is_read(rounds: Rounds) -> None:
    windows = Windows(rounds.fetch, None, Room())
    windows.expect(windows_of(0, 50_000))
    assert rounds.asked == []

    take(windows, 0, 500)
    take(windows, 500, 500)
    assert rounds.asked == [[(0, 1000)]]
    take(windows, 50_000, 1000)

    assert rounds.asked == [[(0, 1000)], [(50_000, 1000)]]
    assert set(rounds.threads) == {threading.current_thread().name}


def test_windows_are_fetched_ahead_as_far_as_there_is_room(rounds: Rounds, ahead: Ahead) -> None:
    windows = Windows(rounds.fetch, ahead, Room(2500))
    windows.expect(windows_of(*range(0, 10_000, 2000)))
    wait_until(lambda: len(rounds.asked) == 1, "the first window to be fetched")

    take(windows, 0, 999)
    wait_until(lambda: len(rounds.asked) == 2, "a second window to be fetched")
    assert windows.unread_bytes == 5000
    take(windows, 999, 1)
    wait_until(lambda: len(rounds.asked) == 3, "the next window to be fetched")

    assert sorted(rounds.asked) == windows_of(0, 2000, 4000)
    assert set(rounds.threads) == {"test-fetch"}


def test_a_window_larger_than_the_room_is_fetched_alone(rounds: Rounds, ahead: Ahead) -> None:
    windows = Windows(rounds.fetch, ahead, Room(10))
    windows.expect(windows_of(0, 2000))

    take(windows, 0, 1000)
    take(windows, 2000, 1000)

    assert rounds.asked == windows_of(0, 2000)


def test_a_column_that_runs_ahead_takes_only_its_own(rounds: Rounds) -> None:
    windows = Windows(rounds.fetch, None, Room(2000))
    first, second = [(0, 1000), (500_000, 1000)], [(1000, 1000), (501_000, 1000)]
    windows.expect([first, second])

    take(windows, 0, 1000)
    take(windows, 1000, 1000)
    take(windows, 500_000, 1000)
    take(windows, 501_000, 1000)

    assert rounds.asked == [[(0, 1000), (500_000, 1000)], [(1000, 1000)], [(501_000, 1000)]]


def test_neighbours_are_one_request_and_parts_of_it_are_read_apart(rounds: Rounds) -> None:
    windows = Windows(rounds.fetch, None, Room())
    windows.expect([[(2000, 1000), (0, 1000), (1000, 500)]])

    take(windows, 1000, 500)
    take(windows, 0, 1000)
    take(windows, 2000, 1000)

    assert rounds.asked == [[(0, 3000)]]


def test_an_error_of_the_background_is_raised_by_the_read_that_needs_it(
    rounds: Rounds, ahead: Ahead
) -> None:
    windows = Windows(rounds.fetch, ahead, Room(1000))
    windows.expect(windows_of(0, 2000))
    wait_until(lambda: len(rounds.asked) == 1, "the first window to be fetched")
    rounds.error = AccessDenied("no")
    take(windows, 0, 1000)
    wait_until(lambda: len(rounds.asked) == 2, "the second window to be fetched")

    for _ in range(2):
        with pytest.raises(AccessDenied):
            windows.take(2000, 10)


def test_what_is_given_up_is_not_fetched(rounds: Rounds, ahead: Ahead) -> None:
    windows = Windows(rounds.fetch, ahead, Room(100_000))
    windows.expect(windows_of(*range(0, 20_000, 2000)))
    take(windows, 0, 0)
    wait_until(lambda: len(rounds.asked) == 10, "all windows to be fetched")
    rounds.asked.clear()
    rounds.released.clear()
    windows.expect(windows_of(*range(0, 20_000, 2000)))
    wait_until(lambda: len(rounds.asked) == 2, "the threads to begin")

    windows.forget()
    rounds.released.set()
    probe = Windows(rounds.fetch, ahead, Room())
    probe.expect(windows_of(90_000))
    take(probe, 90_000, 1000)

    assert len(rounds.asked) == 3
    assert windows.take(0, 10) is None


def test_an_object_that_is_shorter_than_was_said_gives_what_there_is(rounds: Rounds) -> None:
    windows = Windows(rounds.fetch, None, Room())
    windows.expect([[(599_000, 900), (599_950, 900)]])

    take(windows, 599_000, 900)
    found = windows.take(599_950, 900)

    assert found is not None
    assert found.to_pybytes() == CONTENT[599_950:]
