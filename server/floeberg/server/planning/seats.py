"""Let only so many plans work at once, in the order in which they come.

All of a process's Python takes turns at one lock, the GIL. Where dozens of threads want it, each
step that gives it up, as decoding does at every block, gets it back behind all the others, and all
of them wake up some hundred times a second to ask for it. Who waits for a seat sleeps.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

SEATS = 2
"""One plan works, and another is ready to when that waits for the GIL. More make no plan faster: in
Python there is one at a time."""

_PAUSE_SECONDS = 0.25


class Seats:
    """So many seats, each one thread's at a time. Safe to use from several threads."""

    def __init__(self, limit: int = SEATS) -> None:
        self._lock = threading.Lock()
        self._free = limit
        # who waits holds its lock, which is released when the seat is theirs
        self._returning: deque[threading.Lock] = deque()
        self._coming: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many threads wait for a seat."""
        return len(self._returning) + len(self._coming)

    def take(self, check: Callable[[], None], *, returning: bool = False) -> None:
        """Wait for a seat and take it; `check` is called meanwhile, and what it raises is raised.

        Who is `returning` to work that it has begun comes before all those who have not.
        """
        turn = threading.Lock()
        turn.acquire()
        queue = self._returning if returning else self._coming
        with self._lock:
            if self._free:
                self._free -= 1
                return
            queue.append(turn)
        try:
            while not turn.acquire(timeout=_PAUSE_SECONDS):
                check()
        except BaseException:
            with self._lock:
                is_given = turn not in queue
                if not is_given:
                    queue.remove(turn)
            if is_given:
                self.give_back()
            raise

    def give_back(self) -> None:
        """Leave a seat to who waits the longest for one."""
        with self._lock:
            queue = self._returning or self._coming
            if not queue:
                self._free += 1
                return
            turn = queue.popleft()
        turn.release()
