"""Read several sources at once, in their order or as they come, holding a bounded amount.

A source is anything that yields batches: a task of a plan, a stream from a worker. A reading thread
waits while its lane is full, so what is held is bounded by the number of sources in flight and not
by the size of the table. Sources start in order, so the one that a caller waits for is always being
read, and threads never wait for each other in a circle.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from queue import SimpleQueue
from typing import TypeVar
from weakref import WeakSet

import pyarrow as pa

Source = TypeVar("Source")
Read = Callable[[Source], Iterator[pa.RecordBatch]]

_BUFFERED_BATCHES = 4
_EXIT_SECONDS = 5.0


def read_in_order(
    sources: Sequence[Source],
    read: Read[Source],
    *,
    in_flight: int,
    on_stop: Callable[[], None] = lambda: None,
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the batches of every source, in the order of `sources`, reading `in_flight` of them at
    once.

    What reading raises is raised after the batches before it. Closing the generator calls `on_stop`
    (which may interrupt `read`), stops the reading threads at their next batch, and waits for them.
    """
    waiting = deque(sources)
    lanes: deque[_Lane] = deque()
    threads = _Threads(min(in_flight, len(waiting)), on_stop)
    try:
        while waiting or lanes:
            # one more than there are threads, for the first that is done
            while waiting and len(lanes) <= in_flight:
                lanes.append(_Lane(threads, 1, _BUFFERED_BATCHES))
                lanes[-1].start(read, waiting.popleft())
            yield from lanes[0].drain()
            lanes.popleft()
    finally:
        threads.stop()


def read_as_they_come(
    sources: Sequence[Source],
    read: Read[Source],
    *,
    in_flight: int,
    on_stop: Callable[[], None] = lambda: None,
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the batches of every source as they arrive, reading `in_flight` of them at once.

    The batches of one source keep their order; those of several interleave. The first failure is
    raised once the batches before it are delivered, and ends the others. Closing is as for
    `read_in_order`.
    """
    threads = _Threads(min(in_flight, len(sources)), on_stop)
    try:
        lane = _Lane(threads, len(sources), _BUFFERED_BATCHES * in_flight)
        for source in sources:
            lane.start(read, source)
        yield from lane.drain()
    finally:
        threads.stop()


class _Threads:
    """Threads that read until they are stopped.

    They are daemons: whoever drops a stream halfway, or leaves it open, must not find the
    interpreter waiting at its end for threads that wait for somebody to read on. They are stopped
    there instead.
    """

    def __init__(self, count: int, on_stop: Callable[[], None]) -> None:
        self.lock = threading.Lock()
        self.stopped = False
        self._room: WeakSet[threading.Condition] = WeakSet()
        self._on_stop = on_stop
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"floeberg-read-{n}", daemon=True)
            for n in range(count)
        ]
        for thread in self._threads:
            thread.start()
        _running.add(self)

    def condition(self) -> threading.Condition:
        """Return what a reading thread may wait for; it is told when all are to stop."""
        condition = threading.Condition(self.lock)
        self._room.add(condition)
        return condition

    def submit(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def stop(self, seconds: float | None = None) -> None:
        with self.lock:
            self.stopped = True
            for condition in list(self._room):
                condition.notify_all()
        self._on_stop()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            # an abandoned generator may be collected in any thread, one of these included
            if thread is not threading.current_thread():
                thread.join(seconds)


_running: WeakSet[_Threads] = WeakSet()


@atexit.register
def _stop_all() -> None:
    for threads in list(_running):
        threads.stop(_EXIT_SECONDS)


class _Lane:
    """Batches of one or more sources on their way from reading threads to the caller.

    Who waits is woken when there is something for it and not otherwise: a thread that wakes in vain
    takes the interpreter from one that decodes. So each lane tells its own caller, and its readers
    once half of it is empty.
    """

    def __init__(self, threads: _Threads, sources: int, capacity: int) -> None:
        self._threads = threads
        self._has_batch = threading.Condition(threads.lock)
        self._has_room = threads.condition()
        self._batches: deque[pa.RecordBatch] = deque()
        self._capacity = capacity
        self._unfinished = sources
        self._failure: BaseException | None = None

    def start(self, read: Read[Source], source: Source) -> None:
        self._threads.submit(lambda: self._fill(read, source))

    def _fill(self, read: Read[Source], source: Source) -> None:
        """Take every batch of `source`, waiting while the lane is full, until stopped."""
        failure: BaseException | None = None
        try:
            if not self._threads.stopped:
                for batch in read(source):
                    if not self._put(batch):
                        break
        except BaseException as exc:  # raised in the caller's thread
            failure = exc
        with self._threads.lock:
            self._failure = self._failure or failure
            self._unfinished -= 1
            self._has_batch.notify()

    def _put(self, batch: pa.RecordBatch) -> bool:
        with self._threads.lock:
            while not self._threads.stopped and len(self._batches) >= self._capacity:
                self._has_room.wait()
            if self._threads.stopped:
                return False
            self._batches.append(batch)
            self._has_batch.notify()
            return True

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yield batches until every source has ended; raise what reading raised, after the batches
        before it."""
        while True:
            with self._threads.lock:
                while not (self._batches or self._failure or not self._unfinished):
                    self._has_batch.wait()
                if not self._batches:
                    if self._failure is not None:
                        raise self._failure
                    return
                batch = self._batches.popleft()
                if len(self._batches) <= self._capacity // 2:
                    self._has_room.notify_all()
            yield batch
