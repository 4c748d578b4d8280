"""Threads that all plans of a process share, and none can fill.

A `Job` is a call that is made once, by whoever comes first: a thread of a `FairPool`, or the one
that needs its result. So who waits for a job that nobody has begun does it instead of waiting, and
a plan of one manifest never stands behind those of a large plan. Pools take jobs from their lanes
in turns, a lane a plan.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from enum import Enum
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

R = TypeVar("R")

# how soon whoever waits for another's call notices that nobody waits for them
_CHECK_SECONDS = 0.05


class _State(Enum):
    WAITING = "waiting"
    BEGUN = "begun"
    DONE = "done"
    CANCELLED = "cancelled"


class Job(Generic[R]):
    """A call that is made once. Safe to share between threads.

    It is made in the context of who made the job: what is logged names the same request.
    """

    def __init__(self, call: Callable[[], R]) -> None:
        self._call: Callable[[], R] | None = partial(copy_context().run, call)
        self._changed = threading.Condition()
        self._state = _State.WAITING
        self._result: R | None = None
        self._error: BaseException | None = None
        self._afterwards: list[Callable[[], None]] = []

    @property
    def is_waiting(self) -> bool:
        """Say whether nobody has begun it, or given it up."""
        return self._state is _State.WAITING

    def run(self) -> None:
        """Make the call in this thread, unless it was begun or cancelled."""
        with self._changed:
            if self._state is not _State.WAITING:
                return
            self._state = _State.BEGUN
            call, self._call = self._call, None
        assert call is not None
        try:
            self._result = call()
        except BaseException as exc:  # it travels to whoever asks for the result
            self._error = exc
        self._settle(_State.DONE)

    def cancel(self) -> None:
        """Give the call up, unless it was begun."""
        with self._changed:
            if self._state is not _State.WAITING:
                return
            self._state = _State.BEGUN
            self._call = None
        self._settle(_State.CANCELLED)

    def succeeds(self, check: Callable[[], None] = lambda: None, patience: int = 0) -> bool:
        """Say whether there is a result: makes the call, or waits for who does.

        While it waits it calls `check`, several times a second, and raises what that raises. Only
        after so many times of `patience` does it make a call that nobody has begun.
        """
        while patience > 0 and not self._wait(_CHECK_SECONDS):
            patience -= 1
            check()
        self.run()
        while not self._wait(_CHECK_SECONDS):
            check()
        return self._state is _State.DONE and self._error is None

    def result(self, check: Callable[[], None] = lambda: None, patience: int = 0) -> R:
        """Return what the call returns: makes it, or waits for who does, as `succeeds` does.

        Raises what the call raises, and CancelledError when it was given up.
        """
        self.succeeds(check, patience)
        if self._state is _State.CANCELLED:
            raise CancelledError
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # the call's, which may be None

    def _wait(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(
                lambda: self._state in (_State.DONE, _State.CANCELLED), seconds
            )

    def then(self, afterwards: Callable[[], None]) -> None:
        """Call `afterwards`, which must not raise, when the job is done or cancelled: at once, or
        in the thread that does it, after those that wait have been told."""
        with self._changed:
            if self._state in (_State.WAITING, _State.BEGUN):
                self._afterwards.append(afterwards)
                return
        afterwards()

    def _settle(self, state: _State) -> None:
        with self._changed:
            self._state = state
            self._changed.notify_all()
            afterwards, self._afterwards = self._afterwards, []
        for call in afterwards:
            call()


class _Queued(NamedTuple):
    job: Job[Any]
    weight: int
    until: Job[Any]


class FairPool:
    """Up to `threads` threads that make the calls of jobs, lane by lane in turns.

    A job has a weight, and from its beginning until another one has ended, that much of
    `max_weight` is taken; no other begins in a thread of the pool while there is not enough. What
    is heavier than all of it begins alone.
    """

    def __init__(
        self,
        threads: int,
        name: str,
        max_weight: int = 0,
        begin_thread: Callable[[], None] = lambda: None,
    ) -> None:
        self._threads = threads
        self._max_weight = max_weight
        self._executor = ThreadPoolExecutor(
            threads, thread_name_prefix=name, initializer=begin_thread
        )
        self._lock = threading.Lock()
        self._lanes: OrderedDict[Hashable, deque[_Queued]] = OrderedDict()
        self._weight = 0
        self._postponed = 0

    def submit(
        self,
        lane: Hashable,
        job: Job[Any],
        weight: int = 0,
        until: Job[Any] | None = None,
    ) -> None:
        """Have `job` begun in its turn; its weight is held until `until` is settled, or itself.

        While the interpreter is shutting down nothing is begun any more: that is left to
        `job.result`.
        """
        queued = _Queued(job, weight, job if until is None else until)
        with self._lock:
            self._lanes.setdefault(lane, deque()).append(queued)
        self._call(1)

    def _call(self, times: int) -> None:
        # each call makes room for one job, whichever's turn it then is
        with suppress(RuntimeError):
            for _ in range(times):
                self._executor.submit(self._run_next)

    def _run_next(self) -> None:
        with self._lock:
            queued = self._next()
            if queued is None:
                self._postponed += bool(self._lanes)
                return
        if queued.weight:
            queued.until.then(partial(self._release, queued.weight))
        queued.job.run()

    def _next(self) -> _Queued | None:
        """Take the next job that is light enough, and its weight."""
        for lane, waiting in list(self._lanes.items()):
            while waiting and not waiting[0].job.is_waiting:
                waiting.popleft()
            if not waiting:
                del self._lanes[lane]
                continue
            weight = waiting[0].weight
            if weight and self._weight and self._weight + weight > self._max_weight:
                continue
            queued = waiting.popleft()
            del self._lanes[lane]
            if waiting:
                self._lanes[lane] = waiting  # behind the others
            self._weight += weight
            return queued
        return None

    def _release(self, weight: int) -> None:
        with self._lock:
            self._weight -= weight
            again = min(self._postponed, self._threads)
            self._postponed -= again
        self._call(again)
