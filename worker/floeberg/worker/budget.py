"""How much a worker takes on at once: streams, and bytes of batches that wait for their clients.

What does not fit is refused, never queued. A client that opens all endpoints of a scan and reads
them in order holds the late ones open, their buffers full, while it waits for an early one: if
that one queued behind them, it would wait forever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from floeberg.protocol.errors import WorkerBusy


class Budget:
    """Counts what is taken on. Safe to use from several threads.

    `on_turn` is called when there is no more room for a stream, and when there is again.
    """

    def __init__(
        self, max_streams: int, max_bytes: int, on_turn: Callable[[], None] = lambda: None
    ) -> None:
        self._max_streams = max_streams
        self._max_bytes = max_bytes
        self._on_turn = on_turn
        self._lock = threading.Lock()
        self._streams = 0
        self._bytes = 0

    @property
    def streams(self) -> int:
        return self._streams

    @property
    def bytes_in_flight(self) -> int:
        return self._bytes

    def admit(self) -> Admission:
        """Return the right to run one stream; its holder releases it. Raises `WorkerBusy`."""
        with self._lock:
            if self._streams >= self._max_streams:
                raise WorkerBusy(
                    f"the worker serves {self._streams} streams, as many as it may; try the"
                    " endpoint's next location, or again"
                )
            if self._bytes >= self._max_bytes:
                raise WorkerBusy(
                    f"{self._bytes} bytes wait for this worker's clients, of {self._max_bytes} that"
                    " may; try the endpoint's next location, or again"
                )
            self._streams += 1
            has_turned = self._is_full
        if has_turned:
            self._on_turn()
        return Admission(self)

    @property
    def _is_full(self) -> bool:
        return self._streams >= self._max_streams or self._bytes >= self._max_bytes

    def _change(self, *, streams: int = 0, held: int = 0) -> None:
        with self._lock:
            was_full = self._is_full
            self._streams += streams
            self._bytes += held
            has_turned = self._is_full != was_full
        if has_turned:
            self._on_turn()


class Admission:
    """One stream's share. Used by one thread at a time; releasing it twice is harmless."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._held = 0
        self._released = False

    def hold(self, held: int) -> None:
        """Say that `held` bytes wait for the client now, instead of what waited before."""
        if not self._released:
            self._budget._change(held=held - self._held)
            self._held = held

    def release(self) -> None:
        if not self._released:
            self._released = True
            self._budget._change(streams=-1, held=-self._held)
