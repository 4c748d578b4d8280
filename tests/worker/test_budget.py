from __future__ import annotations

import pytest

from floeberg.protocol.errors import WorkerBusy
from floeberg.worker.budget import NEW_STREAM_BYTES, STREAM_BYTES, Budget

OWN = 100 << 20
PLENTY = 1 << 40


class Memory:
    """A process's memory: what it uses, and what its allocators keep for later."""

    def __init__(self) -> None:
        self.used = OWN
        self.kept = 0

    def measure(self) -> int:
        return self.used + self.kept

    def give_back(self) -> None:
        self.kept = 0


def budget_of(memory: Memory, room: int, max_streams: int = 100) -> Budget:
    """Return a budget with so much memory beside the process's own."""
    return Budget(
        max_streams, (OWN + room) * 8 // 7, measure=memory.measure, give_back=memory.give_back
    )


def test_streams_beyond_the_limit_are_refused_until_one_ends() -> None:
    budget = Budget(max_streams=2, memory_bytes=PLENTY)
    first, _ = budget.admit(), budget.admit()

    with pytest.raises(WorkerBusy, match="serves 2 streams"):
        budget.admit()
    first.release()
    budget.admit()

    assert budget.streams == 2


def test_a_stream_that_may_not_fit_is_refused_until_others_have_begun_and_taken_less() -> None:
    memory = Memory()
    budget = budget_of(memory, 4 * NEW_STREAM_BYTES)
    first = budget.admit()
    budget.admit()
    budget.admit()

    with pytest.raises(WorkerBusy, match="3 streams take 201326592 bytes"):
        budget.admit()
    first.has_begun()
    memory.used += STREAM_BYTES
    budget.admit()

    assert budget.bytes_in_flight == STREAM_BYTES + 3 * NEW_STREAM_BYTES


def test_streams_that_take_much_leave_room_for_fewer() -> None:
    memory = Memory()
    budget = budget_of(memory, 10 * NEW_STREAM_BYTES)
    budget.admit().has_begun()
    memory.used += 10 * NEW_STREAM_BYTES

    with pytest.raises(WorkerBusy):
        budget.admit()
    assert not budget.has_spare()


def test_streams_that_hold_little_now_still_count_as_they_may_take_it_again() -> None:
    budget = budget_of(Memory(), 4 * STREAM_BYTES + NEW_STREAM_BYTES)
    for _ in range(4):
        budget.admit().has_begun()

    with pytest.raises(WorkerBusy):
        budget.admit()


def test_memory_that_was_freed_is_given_back_before_a_stream_is_refused() -> None:
    memory = Memory()
    budget = budget_of(memory, 4 * NEW_STREAM_BYTES)
    budget.admit().has_begun()
    memory.kept = 4 * NEW_STREAM_BYTES

    budget.admit()

    assert (budget.streams, memory.kept) == (2, 0)


def test_an_idle_worker_takes_a_stream_whatever_it_holds() -> None:
    memory = Memory()
    budget = budget_of(memory, 0)
    memory.used += 1 << 30

    budget.admit()

    with pytest.raises(WorkerBusy):
        budget.admit()


def test_it_is_told_when_there_is_no_more_room_and_when_there_is_again() -> None:
    turns: list[int] = []
    budget = Budget(2, PLENTY, lambda: turns.append(budget.streams))

    first, second = budget.admit(), budget.admit()
    first.has_begun()
    second.release()
    first.release()

    assert turns == [2, 1]


def test_releasing_gives_back_everything_once() -> None:
    budget = Budget(max_streams=1, memory_bytes=PLENTY)
    admission = budget.admit()

    admission.release()
    admission.release()
    admission.has_begun()

    assert (budget.streams, budget.bytes_in_flight) == (0, 0)
    budget.admit()
    assert budget.bytes_in_flight >= NEW_STREAM_BYTES
