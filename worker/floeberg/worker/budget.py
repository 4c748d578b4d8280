"""How much a worker takes on at once: streams, and the memory that they take.

What does not fit is refused, never queued. A client that opens all endpoints of a scan and reads
them in order holds the late ones open, their buffers full, while it waits for an early one: if
that one queued behind them, it would wait forever.

Memory is that of the process as the system counts it, beyond what it had before the first stream.
A stream counts for `STREAM_BYTES` at least: one whose client takes nothing for a while may hold
less, and takes it again when it goes on. Until its first batch it counts for `NEW_STREAM_BYTES` on
top of what is measured, as it may take that at any moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from floeberg.protocol.errors import WorkerBusy
from floeberg.worker.memory import FreedMemory, resident_bytes

STREAM_BYTES = 16 << 20
NEW_STREAM_BYTES = 64 << 20
"""What a stream of 16 columns takes: a window of 16 MiB, and for each column its dictionary and its
page, as they are stored and as they are decoded."""

_GROWTH_SHARE = 8
"""The part of the memory, as a divisor, that is kept for what streams take after their first batch:
other columns' pages, another window."""


class Budget:
    """Counts what is taken on, and takes a stream only while the process is so far below
    `memory_bytes` that it stays there. Safe to use from several threads.

    A worker without a stream takes one, whatever it holds. `on_turn` is called when there is no
    more room for a stream, and when there is again. `measure` gives the process's memory, and
    `give_back` makes that follow what is used.
    """

    def __init__(
        self,
        max_streams: int,
        memory_bytes: int,
        on_turn: Callable[[], None] = lambda: None,
        *,
        measure: Callable[[], int] = resident_bytes,
        give_back: Callable[[], None] | None = None,
    ) -> None:
        self._max_streams = max_streams
        self._on_turn = on_turn
        self._measure = measure
        self._give_back = give_back or FreedMemory().give_back
        self._memory_bytes = memory_bytes
        self._own_bytes = measure()
        usable = memory_bytes - memory_bytes // _GROWTH_SHARE
        self.max_bytes = max(1, usable - self._own_bytes - NEW_STREAM_BYTES)
        """From so many bytes in flight on, no new stream is taken."""
        self._lock = threading.Lock()
        self._streams = 0
        self._new_streams = 0
        self._was_full = False

    @property
    def streams(self) -> int:
        return self._streams

    @property
    def bytes_in_flight(self) -> int:
        """The memory that streams count for: what they take, or may at any moment."""
        with self._lock:
            return self._bytes()

    def has_spare(self) -> bool:
        """Say whether streams may take more than they need: while half of the room is free, as
        many may find that at once.
        """
        half = self.max_bytes // 2
        if self._count() < half:
            return True
        with self._lock:
            return self._bytes(half) < half

    def is_exceeded(self) -> bool:
        """Say whether streams take more than the process may have: what has gone beyond all that
        was foreseen."""
        return self._measure() - self._own_bytes > self._memory_bytes

    def admit(self) -> Admission:
        """Return the right to run one stream; its holder releases it. Raises `WorkerBusy`."""
        with self._lock:
            if self._streams >= self._max_streams:
                raise WorkerBusy(
                    f"the worker serves {self._streams} streams, as many as it may; try the"
                    " endpoint's next location, or again"
                )
            held = self._bytes()
            if held >= self.max_bytes:
                raise WorkerBusy(
                    f"this worker's {self._streams} streams take {held} bytes of memory, and there"
                    f" is room for another one below {self.max_bytes}; try the endpoint's next"
                    " location, or again"
                )
            has_turned = self._change(streams=1, new_streams=1)
        if has_turned:
            self._on_turn()
        return Admission(self)

    def _bytes(self, enough: int | None = None) -> int:
        """Count, and from `enough` on, by default all of the room, give back what is not needed."""
        held = self._count()
        if held >= (self.max_bytes if enough is None else enough):
            self._give_back()
            held = self._count()
        return held

    def _count(self) -> int:
        if not self._streams:
            return 0
        measured = max(0, self._measure() - self._own_bytes)
        return max(measured + self._new_streams * NEW_STREAM_BYTES, self._streams * STREAM_BYTES)

    def _change(self, *, streams: int = 0, new_streams: int = 0) -> bool:
        """Count, and say whether there is room now and was none, or the other way round."""
        self._streams += streams
        self._new_streams += new_streams
        is_full = self._streams >= self._max_streams or self._bytes() >= self.max_bytes
        has_turned = is_full != self._was_full
        self._was_full = is_full
        return has_turned

    def _tell_change(self, *, streams: int = 0, new_streams: int = 0) -> None:
        with self._lock:
            has_turned = self._change(streams=streams, new_streams=new_streams)
        if has_turned:
            self._on_turn()


class Admission:
    """One stream's share. Used by one thread at a time; releasing it twice is harmless."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._is_new = True
        self._released = False

    def has_begun(self) -> None:
        """Say that there is a batch: what the stream takes can be measured."""
        if self._is_new and not self._released:
            self._is_new = False
            self._budget._tell_change(new_streams=-1)

    def release(self) -> None:
        if not self._released:
            self._released = True
            self._budget._tell_change(streams=-1, new_streams=-1 if self._is_new else 0)
