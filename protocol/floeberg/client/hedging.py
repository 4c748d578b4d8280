"""Read a stream that is late a second time, from another worker, and take whichever comes first.

A worker that stands still breaks no stream: its client would wait until a ping of the connection
fails, for minutes. And one slow worker makes a whole scan slow. So when the next batch of a stream
takes long, the same ticket is redeemed elsewhere, from the last place that was delivered on. Both
streams now stand at the same place; the one that has a batch first goes on, and the other one is
cancelled. No row comes twice, and none is missing, as whichever goes on does so from that place.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, TypeVar

from floeberg.protocol.errors import BadRequest, Unavailable

Item = TypeVar("Item")

_WAITS_KEPT = 32
_FEWEST_WAITS = 8
_LOOK_AGAIN_SECONDS = 0.1
"""How soon a stream that waits sees that others have become faster, or that there is room."""


@dataclass(frozen=True, slots=True)
class Hedging:
    """When a stream is late, and how many are read twice at a time.

    It is when its next batch takes longer than `after_seconds` and, if that is given, than
    `times_median` times the median of what batches of the scan's other streams took; as long as
    those are too few to tell, none is. Of a scan's streams no more than the part `share` are read
    twice at a time, and one at least.
    """

    after_seconds: float = 2.0
    times_median: float | None = None
    share: float = 0.25

    def __post_init__(self) -> None:
        if self.after_seconds < 0 or (self.times_median is not None and self.times_median < 1):
            raise BadRequest(
                f"hedging begins after some time (after_seconds={self.after_seconds}) or several"
                f" medians (times_median={self.times_median})"
            )
        if not 0 < self.share <= 1:
            raise BadRequest(f"share={self.share} of the streams: more than 0, and 1 at most")

    def late_after(self, others: Sequence[float]) -> float:
        """Return from how many seconds on a stream is late; `others` are waits for batches of
        other streams.

        >>> hedging = Hedging(after_seconds=0.5, times_median=4)
        >>> hedging.late_after([0.1] * 8), hedging.late_after([2.0] * 8), hedging.late_after([])
        (0.5, 8.0, inf)
        """
        if self.times_median is None:
            return self.after_seconds
        if len(others) < _FEWEST_WAITS:
            return math.inf
        return max(self.after_seconds, self.times_median * statistics.median(others))


class Hedges:
    """What a scan of so many `streams` may read twice, and how long its batches take. Safe to use
    from several threads.
    """

    def __init__(self, hedging: Hedging, streams: int) -> None:
        self._hedging = hedging
        self._most = max(1, math.floor(hedging.share * streams))
        self._lock = threading.Lock()
        self._running = 0
        self._waits: dict[object, deque[float]] = {}

    def took(self, stream: object, seconds: float) -> None:
        """A batch of a stream took so long."""
        with self._lock:
            self._waits.setdefault(stream, deque(maxlen=_WAITS_KEPT)).append(seconds)

    def late_after(self, stream: object) -> float:
        """Return from how many seconds on a stream is late now."""
        with self._lock:
            others = [w for name, waits in self._waits.items() if name != stream for w in waits]
        return self._hedging.late_after(others)

    def begin(self) -> bool:
        """Say whether one more stream may be read twice now; then `end` it."""
        with self._lock:
            may = self._running < self._most
            self._running += may
            return may

    def end(self) -> None:
        with self._lock:
            self._running -= 1


class Attempt(Generic[Item]):
    """A stream from one location, read a batch ahead by a thread of its own.

    `items` is used by that thread alone; `cancel` interrupts it. The rest is for who holds the lock
    of `changed`, which is told of news.
    """

    def __init__(
        self,
        location: str | None,
        items: Generator[Item, None, None],
        cancel: Callable[[], None],
        changed: threading.Condition,
    ) -> None:
        self.location = location
        self._items = items
        self._cancel = cancel
        self._changed = changed
        self._ready: list[Item] = []
        self._error: BaseException | None = None
        self._has_ended = self._is_dropped = False
        threading.Thread(target=self._run, name="floeberg-hedged", daemon=True).start()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            with closing(self._items):
                for item in self._items:
                    if not self._put(item):
                        break
        except BaseException as exc:  # raised by whoever waits for it
            error = exc
        with self._changed:
            self._error, self._has_ended = error, True
            self._changed.notify_all()

    def _put(self, item: Item) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._is_dropped or not self._ready)
            if not self._is_dropped:
                self._ready.append(item)
                self._changed.notify_all()
            return not self._is_dropped

    @property
    def has_news(self) -> bool:
        """Whether there is a batch, or the end."""
        return bool(self._ready) or self._has_ended

    @property
    def has_failed(self) -> bool:
        """Whether it has ended in a way that another location may not."""
        return not self._ready and isinstance(self._error, Unavailable)

    def take(self) -> Item | None:
        """Return the batch that is there, None at the end, or raise what the stream has raised."""
        if self._ready:
            self._changed.notify_all()
            return self._ready.pop()
        if self._error is not None:
            raise self._error
        return None

    def drop(self) -> None:
        """Read it no more."""
        self._is_dropped = True
        self._changed.notify_all()
        self._cancel()


Begin = Callable[[str | None, threading.Condition], Attempt[Item]]
"""Begins to read a stream at a location, from the last place on that was delivered."""


class HedgedStream(Generic[Item]):
    """The batches of one stream, from whichever of its locations is fast. `close` it.

    It is read at `location` first; `locations` are all there are. `on_moved` is called when another
    one was faster, with both.
    """

    def __init__(
        self,
        hedges: Hedges,
        begin: Begin[Item],
        location: str | None,
        locations: Sequence[str | None],
        on_moved: Callable[[str | None, str | None], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hedges = hedges
        self._begin = begin
        self._locations = deque(dict.fromkeys(locations))
        self._on_moved = on_moved
        self._clock = clock
        self._changed = threading.Condition()
        self._first = begin(location, self._changed)
        self._second: Attempt[Item] | None = None

    def __iter__(self) -> Iterator[Item]:
        """Yield the batches; raises what the stream raises that was read last."""
        while True:
            asked_at = self._clock()
            with self._changed:
                since = asked_at
                while not self._is_decided():
                    since = self._wait(since)
                item = self._first.take()
            if item is None:
                return
            self._hedges.took(self, self._clock() - asked_at)
            yield item

    def close(self) -> None:
        with self._changed:
            self._settle(self._first)
            self._first.drop()

    def _is_decided(self) -> bool:
        """Say whether the first stream has news; when the second one has them, it becomes that."""
        first, second = self._first, self._second
        if second is not None:
            for stream, other in ((first, second), (second, first)):
                if stream.has_news:
                    self._settle(other if stream.has_failed else stream)
                    break
        return self._first.has_news

    def _settle(self, winner: Attempt[Item]) -> None:
        """Go on with one of the two streams, where there are two."""
        first, second = self._first, self._second
        if second is None:
            return
        self._first, self._second = winner, None
        self._hedges.end()
        loser = second if winner is first else first
        loser.drop()
        if loser is first:
            self._on_moved(loser.location, winner.location)

    def _wait(self, since: float) -> float:
        """Wait for news, or begin a second stream; return since when the stream counts as waited
        for, which is anew with each second one, as that may fail."""
        if self._second is not None or len(self._locations) < 2:
            self._changed.wait()
            return since
        left = self._hedges.late_after(self) - (self._clock() - since)
        if left > 0 or not self._hedges.begin():
            self._changed.wait(min(left, _LOOK_AGAIN_SECONDS) if left > 0 else _LOOK_AGAIN_SECONDS)
            return since
        self._second = self._begin(self._next_location(), self._changed)
        return self._clock()

    def _next_location(self) -> str | None:
        self._locations.rotate(-1)
        while self._locations[0] == self._first.location:
            self._locations.rotate(-1)
        return self._locations[0]
