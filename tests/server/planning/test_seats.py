from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from floeberg.protocol.errors import Cancelled
from floeberg.server.planning import Seats
from tests.support.waiting import wait_until


def patient() -> None:
    return None


class Queue:
    """Threads that come for a seat one after the other, and what became of them."""

    def __init__(self, seats: Seats) -> None:
        self._seats = seats
        self.seated: list[str] = []
        self.gone: list[str] = []

    def come(
        self, name: str, check: Callable[[], None] = patient, *, returning: bool = False
    ) -> threading.Thread:
        """Return a thread that waits."""

        def wait() -> None:
            try:
                self._seats.take(check, returning=returning)
            except Cancelled:
                self.gone.append(name)
            else:
                self.seated.append(name)

        waiting = self._seats.waiting
        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(lambda: self._seats.waiting > waiting, f"{name} to wait")
        return thread


def test_seats_go_to_who_returns_and_then_in_the_order_of_coming() -> None:
    seats = Seats(2)
    for _ in range(2):
        seats.take(patient)
    queue = Queue(seats)
    threads = [
        queue.come("first"),
        queue.come("second"),
        queue.come("back", returning=True),
    ]

    for n in range(3):
        seats.give_back()
        wait_until(lambda n=n: len(queue.seated) == n + 1, "a seat to be taken")
    for thread in threads:
        thread.join(10)

    assert queue.seated == ["back", "first", "second"]


def test_who_leaves_the_queue_keeps_no_seat_from_others() -> None:
    seats, over = Seats(1), threading.Event()

    def check() -> None:
        if over.is_set():
            raise Cancelled("over")

    seats.take(patient)
    queue = Queue(seats)
    leaving, staying = queue.come("leaving", check), queue.come("staying")
    over.set()
    leaving.join(10)
    seats.give_back()
    staying.join(10)

    assert (queue.gone, queue.seated) == (["leaving"], ["staying"])


def test_a_seat_that_comes_as_its_taker_leaves_goes_on_to_the_next() -> None:
    seats = Seats(1)
    seats.take(patient)

    def check() -> None:
        seats.give_back()
        raise Cancelled("over")

    with pytest.raises(Cancelled):
        seats.take(check)

    seats.take(lambda: pytest.fail("a seat is free"))
