"""How much memory and disk each of the queries that run at once may take."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from floeberg.protocol.errors import WorkerBusy

LEAST_BYTES = 64 << 20
_PART = 4
_THREAD_BYTES = 32 << 20
PARTS_BYTES = 2 * LEAST_BYTES
"""What parts of queries have to take from beside the memory that is for all."""
WAIT_SECONDS = 30.0
"""So long a query waits: many clients of SQL do not try again what a busy worker has refused."""
PART_WAIT_SECONDS = 60.0
MOST_WAITING = 256
"""Each that waits holds a thread."""
_LOOKS_EVERY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Share:
    """What one query may take. `release` it; doing so twice is harmless."""

    memory_bytes: int
    spill_bytes: int
    release: Callable[[], None]

    @property
    def threads(self) -> int:
        """How many threads have enough of the memory: with less for each, a sort that spills may
        fail for want of it (measured with 16 MiB, of 3 million rows)."""
        return max(1, self.memory_bytes // _THREAD_BYTES)


class Shares:
    """Lends memory of a total, and disk in proportion. Safe to use from several threads.

    Each query gets a quarter of what is left, and at least 64 MiB: one that comes alone has room to
    be fast, and several can run at once, and spill. It is a power of two, so that there are few
    sizes of databases, and those that are kept fit. Where so little isn't left, a query waits for
    another one's end, and its turn.

    A part of a query has `PARTS_BYTES` more to take from, and its turn comes before that of whole
    queries. What merges parts holds its own share while it waits for them; but no part waits for
    anything but files, so that each comes to its end, and its turn comes to the next.
    """

    def __init__(
        self,
        memory_bytes: int,
        spill_bytes: int,
        *,
        wait_seconds: float = WAIT_SECONDS,
        part_wait_seconds: float = PART_WAIT_SECONDS,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._memory_bytes = max(memory_bytes, LEAST_BYTES)
        self._spill_bytes = spill_bytes
        self._wait_seconds = wait_seconds
        self._part_wait_seconds = part_wait_seconds
        self._most_waiting = most_waiting
        self._freed = threading.Condition()
        self._left = self._memory_bytes
        self._left_for_parts = PARTS_BYTES
        self._whole_in_turn: deque[object] = deque()
        self._parts_in_turn: deque[object] = deque()

    @property
    def waiting(self) -> int:
        """How many queries and parts wait for their turn."""
        with self._freed:
            return len(self._whole_in_turn) + len(self._parts_in_turn)

    def lend(self, *, is_part: bool = False, check: Callable[[], None] = lambda: None) -> Share:
        """Return a query's share. Raises `WorkerBusy` when its turn does not come in time, or too
        many wait for theirs, and what `check` raises meanwhile."""
        in_turn = self._parts_in_turn if is_part else self._whole_in_turn
        seconds = self._part_wait_seconds if is_part else self._wait_seconds
        turn = object()
        with self._freed:
            if len(in_turn) >= self._most_waiting:
                raise _busy()
            in_turn.append(turn)
        try:
            until = time.monotonic() + seconds
            while (taken := self._taken(is_part, turn, until)) is None:
                check()
        finally:
            with self._freed:
                in_turn.remove(turn)
                self._freed.notify_all()
        of_parts, memory = taken
        released = False

        def release() -> None:
            nonlocal released
            with self._freed:
                if not released:
                    self._left += 0 if of_parts else memory
                    self._left_for_parts += memory if of_parts else 0
                    self._freed.notify_all()
                released = True

        return Share(memory, self._spill_bytes * memory // self._memory_bytes, release)

    def _taken(self, is_part: bool, turn: object, until: float) -> tuple[bool, int] | None:
        """Take what there is, and return whether it is kept for parts and how much; None after a
        moment in which there was nothing, or others were to have it first."""
        with self._freed:
            in_turn = self._parts_in_turn or self._whole_in_turn
            if in_turn[0] is turn:
                if self._left >= LEAST_BYTES:
                    memory = max(LEAST_BYTES, _power_of_two(self._left // _PART))
                    self._left -= memory
                    return False, memory
                if is_part and self._left_for_parts >= LEAST_BYTES:
                    self._left_for_parts -= LEAST_BYTES
                    return True, LEAST_BYTES
            if time.monotonic() >= until:
                raise _busy()
            self._freed.wait(_LOOKS_EVERY_SECONDS)
            return None


def _power_of_two(number: int) -> int:
    """Return the greatest that `number` holds; 0 of less than 1."""
    return 1 << number.bit_length() >> 1


def _busy() -> WorkerBusy:
    return WorkerBusy(
        "the worker runs as many SQL queries as its memory for them allows; try the endpoint's next"
        " location, or again"
    )


def usable_cpus() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # not on Linux
