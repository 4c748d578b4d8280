"""Read several sources at once, in their order or as they come, holding a bounded amount.

A source is anything that yields batches: a task of a plan, a stream from a worker. A reading thread
waits while its buffer is full, so what is held is bounded by the number of sources in flight and
not by the size of the table. Sources start in order, so the one that a caller waits for is always
being read, and threads never wait for each other in a circle.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa

Source = TypeVar("Source")
Read = Callable[[Source], Iterator[pa.RecordBatch]]

_BUFFERED_BATCHES = 4


class _Buffer:
    """Batches of one or more sources on their way from reading threads to the caller."""

    def __init__(self, sources: int, capacity: int) -> None:
        self._changed = threading.Condition()
        self._batches: deque[pa.RecordBatch] = deque()
        self._capacity = capacity
        self._unfinished = sources
        self._failure: BaseException | None = None
        self._abandoned = False

    def fill(self, read: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        """Take every batch that `read()` yields, waiting while the buffer is full; stop when
        abandoned."""
        failure: BaseException | None = None
        try:
            for batch in read():
                if not self._put(batch):
                    return
        except BaseException as exc:  # raised in the caller's thread
            failure = exc
        finally:
            with self._changed:
                self._failure = self._failure or failure
                self._unfinished -= 1
                self._changed.notify_all()

    def _put(self, batch: pa.RecordBatch) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._abandoned or len(self._batches) < self._capacity)
            if self._abandoned:
                return False
            self._batches.append(batch)
            self._changed.notify_all()
            return True

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yield batches until every source has ended; raise what reading raised, after the batches
        before it."""
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._batches or self._failure or not self._unfinished
                )
                if not self._batches:
                    if self._failure is not None:
                        raise self._failure
                    return
                batch = self._batches.popleft()
                self._changed.notify_all()
            yield batch

    def abandon(self) -> None:
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()


def read_in_order(
    sources: Sequence[Source], read: Read[Source], *, in_flight: int
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the batches of every source, in the order of `sources`, reading `in_flight` of them at
    once.

    Closing the generator stops the reading threads at their next batch and waits for them.
    """
    waiting = deque(sources)
    buffers: deque[_Buffer] = deque()
    with ThreadPoolExecutor(in_flight, thread_name_prefix="floeberg-read") as pool:

        def start_more() -> None:
            while waiting and len(buffers) < in_flight:
                buffer = _Buffer(1, _BUFFERED_BATCHES)
                buffers.append(buffer)
                pool.submit(_fill, buffer, read, waiting.popleft())

        try:
            start_more()
            while buffers:
                yield from buffers[0].drain()
                buffers.popleft()
                start_more()
        finally:
            for buffer in buffers:
                buffer.abandon()
            pool.shutdown(wait=True, cancel_futures=True)


def read_as_they_come(
    sources: Sequence[Source], read: Read[Source], *, in_flight: int
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the batches of every source as they arrive, reading `in_flight` of them at once.

    The batches of one source keep their order; those of several interleave. The first failure is
    raised once the batches before it are delivered, and ends the others.
    """
    buffer = _Buffer(len(sources), _BUFFERED_BATCHES * in_flight)
    with ThreadPoolExecutor(in_flight, thread_name_prefix="floeberg-read") as pool:
        try:
            for source in sources:
                pool.submit(_fill, buffer, read, source)
            yield from buffer.drain()
        finally:
            buffer.abandon()
            pool.shutdown(wait=True, cancel_futures=True)


def _fill(buffer: _Buffer, read: Read[Source], source: Source) -> None:
    buffer.fill(lambda: read(source))
