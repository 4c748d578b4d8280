"""How much memory and disk each of the queries that run at once may take."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from floeberg.protocol.errors import WorkerBusy

LEAST_BYTES = 64 << 20
_PART = 4
_THREAD_BYTES = 32 << 20


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
    be fast, and several can run at once, and spill. Where so little isn't left, a query is refused.
    """

    def __init__(self, memory_bytes: int, spill_bytes: int) -> None:
        self._memory_bytes = max(memory_bytes, LEAST_BYTES)
        self._spill_bytes = spill_bytes
        self._lock = threading.Lock()
        self._left = self._memory_bytes

    def lend(self) -> Share:
        """Return a query's share. Raises `WorkerBusy`."""
        with self._lock:
            if self._left < LEAST_BYTES:
                raise WorkerBusy(
                    "the worker runs as many SQL queries as its memory for them allows; try the"
                    " endpoint's next location, or again"
                )
            memory = max(LEAST_BYTES, self._left // _PART)
            self._left -= memory
        released = False

        def release() -> None:
            nonlocal released
            with self._lock:
                self._left += 0 if released else memory
                released = True

        return Share(memory, self._spill_bytes * memory // self._memory_bytes, release)


def usable_cpus() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # not on Linux
