"""Notice clients that take nothing, and close their connections after a while.

A stream whose client doesn't read holds its place, a thread and some memory for as long as the
client likes. But one stream that waits is no sign of that: a client may open all streams of a query
and read them one after the other. So a connection is closed when nothing was taken from any stream
on it for so long, and none of them waits for us instead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from typing import TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

_CHECKS = 10
_LONGEST_PAUSE_SECONDS = 5.0


class StalledClients:
    """Follows the streams of a server. Safe to use from several threads; `close` it.

    `close_connection` is given a peer, and says whether there was a connection. With `seconds` of 0
    nobody is ever disturbed.
    """

    def __init__(
        self,
        seconds: float,
        close_connection: Callable[[str], bool],
        *,
        now_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._close_connection = close_connection
        self._now_seconds = now_seconds
        self._lock = threading.Lock()
        self._waiting: dict[str, dict[int, float | None]] = {}
        """For each peer, by stream, since when it waits for its client; None while it doesn't."""
        self._next = 0
        self._closed = threading.Event()
        self._watching: threading.Thread | None = None

    def follow(self, peer: str, items: Generator[T, None, None]) -> Generator[T, None, None]:
        """Yield a stream's items to `peer`, and close them."""
        stream = self._begin(peer)
        try:
            for item in items:
                self._waits(peer, stream, self._now_seconds())
                yield item
                self._waits(peer, stream, None)
        finally:
            self._end(peer, stream)
            items.close()

    def close_stalled(self) -> list[str]:
        """Close the connections that have stalled for too long, and return their peers."""
        horizon = self._now_seconds() - self._seconds
        with self._lock:
            stalled = [
                peer
                for peer, streams in self._waiting.items()
                if all(since is not None and since <= horizon for since in streams.values())
            ]
        return [peer for peer in stalled if self._close_connection(peer)]

    def close(self) -> None:
        self._closed.set()

    def _begin(self, peer: str) -> int:
        with self._lock:
            self._next += 1
            self._waiting.setdefault(peer, {})[self._next] = None
            if self._watching is None and self._seconds:
                self._watching = threading.Thread(
                    target=self._watch, name="floeberg-stalls", daemon=True
                )
                self._watching.start()
            return self._next

    def _waits(self, peer: str, stream: int, since: float | None) -> None:
        with self._lock:
            self._waiting[peer][stream] = since

    def _end(self, peer: str, stream: int) -> None:
        with self._lock:
            streams = self._waiting[peer]
            del streams[stream]
            if not streams:
                del self._waiting[peer]

    def _watch(self) -> None:
        while not self._closed.wait(min(self._seconds / _CHECKS, _LONGEST_PAUSE_SECONDS)):
            for peer in self.close_stalled():
                logger.warning(
                    "client stalled", extra={"client": peer, "stalled_seconds": self._seconds}
                )
