"""Let only so many at once do what takes much memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from floeberg.protocol.errors import ServerBusy

_WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 0.05


class Turns:
    """How many large plans are made at once. Safe to use from several threads."""

    def __init__(
        self,
        limit: int,
        *,
        wait_seconds: float = _WAIT_SECONDS,
        now_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._wait_seconds = wait_seconds
        self._now_seconds = now_seconds
        self._free = threading.Semaphore(limit)

    def take(self, check: Callable[[], None]) -> None:
        """Wait for a turn, for half a minute at most, and take it.

        `check` is called meanwhile. Raises what it raises, and `ServerBusy`.
        """
        until = self._now_seconds() + self._wait_seconds
        while not self._free.acquire(timeout=_PAUSE_SECONDS):
            check()
            if self._now_seconds() >= until:
                raise ServerBusy(
                    f"{self._limit} plans of many manifests are being made; ask again in a while,"
                    " or narrow the filter to fewer partitions"
                )

    def give_back(self) -> None:
        self._free.release()
