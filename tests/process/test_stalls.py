from __future__ import annotations

from collections.abc import Generator

from floeberg.process.stalls import StalledClients
from tests.support.clock import Clock


def items() -> Generator[int, None, None]:
    yield from range(100)


def stalled(clock: Clock, *, is_there: bool = True) -> StalledClients:
    # a watch of an hour: the test looks by itself
    return StalledClients(3600, lambda peer: is_there, now_seconds=clock)


def test_a_client_that_takes_nothing_for_too_long_is_cut_off() -> None:
    clock = Clock()
    clients = stalled(clock)
    stream = clients.follow("a", items())
    next(stream)

    clock.seconds = 3599
    assert clients.close_stalled() == []
    clock.seconds = 3600
    assert clients.close_stalled() == ["a"]


def test_taking_from_any_stream_shows_that_the_client_is_there() -> None:
    clock = Clock()
    clients = stalled(clock)
    late, early, other = (clients.follow(peer, items()) for peer in ("a", "a", "b"))
    for stream in (late, early, other):
        next(stream)

    clock.seconds = 3000
    next(early)
    clock.seconds = 4000

    assert clients.close_stalled() == ["b"]


def test_a_client_that_waits_for_us_is_not_cut_off() -> None:
    clock = Clock()
    clients = stalled(clock)

    def slow() -> Generator[int, None, None]:
        clock.seconds = 10_000
        assert clients.close_stalled() == []
        yield 1

    waiting = clients.follow("a", items())
    next(waiting)
    assert next(clients.follow("a", slow())) == 1


def test_a_stream_that_has_ended_is_forgotten() -> None:
    clock = Clock()
    clients = stalled(clock)
    whole, dropped = clients.follow("a", items()), clients.follow("b", items())
    assert sum(whole) == sum(range(100))
    next(dropped)
    dropped.close()
    clock.seconds = 10_000

    assert clients.close_stalled() == []


def test_a_connection_that_is_not_found_is_not_told() -> None:
    clock = Clock()
    clients = stalled(clock, is_there=False)
    stream = clients.follow("unix:", items())
    next(stream)
    clock.seconds = 10_000

    assert clients.close_stalled() == []
