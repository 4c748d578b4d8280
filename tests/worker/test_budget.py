from __future__ import annotations

import pytest

from floeberg.protocol.errors import WorkerBusy
from floeberg.worker.budget import Budget


def test_streams_beyond_the_limit_are_refused_until_one_ends() -> None:
    budget = Budget(max_streams=2, max_bytes=100)
    first, _ = budget.admit(), budget.admit()

    with pytest.raises(WorkerBusy, match="serves 2 streams"):
        budget.admit()
    first.release()
    budget.admit()

    assert budget.streams == 2


def test_bytes_that_wait_for_clients_count_until_they_are_taken() -> None:
    budget = Budget(max_streams=10, max_bytes=100)
    slow, other = budget.admit(), budget.admit()
    slow.hold(80)
    other.hold(30)

    with pytest.raises(WorkerBusy, match="110 bytes wait"):
        budget.admit()
    slow.hold(10)
    budget.admit()

    assert budget.bytes_in_flight == 40


def test_it_is_told_when_there_is_no_more_room_and_when_there_is_again() -> None:
    turns: list[int] = []
    budget = Budget(2, 100, lambda: turns.append(budget.streams))

    first, second = budget.admit(), budget.admit()
    first.hold(200)
    second.release()
    first.hold(3)
    first.release()

    assert turns == [2, 1]


def test_releasing_gives_back_everything_once() -> None:
    budget = Budget(max_streams=1, max_bytes=100)
    admission = budget.admit()
    admission.hold(50)

    admission.release()
    admission.release()
    admission.hold(7)

    assert (budget.streams, budget.bytes_in_flight) == (0, 0)
