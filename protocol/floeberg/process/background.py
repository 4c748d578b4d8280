"""Jobs that threads do before their results are asked for.

A job that no thread has come to when its result is needed is done by whoever needs it: a pool that
is busy, or gone, makes nothing wait for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_IDLE_SECONDS = 5.0
# how soon a caller that waits notices that nobody waits for it
_CHECK_SECONDS = 0.05


class Job(Generic[T]):
    """Work that is done once, by whichever thread comes first. Safe to use from several.

    It is done in the context of who made the job: what is logged names the same request.
    """

    __slots__ = ("_claim", "_done", "_work")

    def __init__(self, work: Callable[[], T]) -> None:
        # given up once it is done: what has a job is often what the work is a method of, and the
        # two would keep each other until Python looks for such cycles
        self._work: Callable[[], T] | None = partial(copy_context().run, work)
        self._claim = threading.Lock()
        self._done: Future[T] = Future()

    def run(self) -> None:
        """Do the work, unless it has been begun or dropped; what it raises comes from `result`."""
        if not self._claim.acquire(blocking=False):
            return
        work, self._work = self._work, None
        assert work is not None, "it is done once"
        try:
            self._done.set_result(work())
        except BaseException as exc:
            self._done.set_exception(exc)
            if not isinstance(exc, Exception):
                raise  # an interrupt is for the thread that it came to

    def result(self) -> T:
        """Return what the work returned, or raise what it raised; waits for it, or does it here."""
        self.run()
        return self._done.result()

    def wait(self, seconds: float) -> bool:
        """Say whether the work is done within `seconds`; it is not begun here."""
        try:
            self._done.exception(seconds)
        except TimeoutError:
            return False
        return True

    @property
    def is_done(self) -> bool:
        return self._done.done()

    def drop(self) -> None:
        """Never begin the work, if it is not begun; nobody may ask for the result any more."""
        if self._claim.acquire(blocking=False):
            self._work = None
            self._done.cancel()


class Background:
    """At most `threads` threads that do jobs in the order they come.

    They are daemons, start when there is work and end when there has been none for a while.
    """

    def __init__(self, threads: int, name: str, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._limit = threads
        self._name = name
        self._idle_seconds = idle_seconds
        self._changed = threading.Condition()
        self._jobs: deque[Job[Any]] = deque()
        self._threads = self._idle = 0

    def submit(self, job: Job[Any]) -> None:
        with self._changed:
            self._jobs.append(job)
            self._changed.notify()
            is_short = len(self._jobs) > self._idle and self._threads < self._limit
            self._threads += is_short
        if is_short:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def ask(self, work: Callable[[], T], check: Callable[[], None]) -> T:
        """Return what `work`, done by one of the threads, returns, or raise what it raises.

        `check` is called before and, several times a second, meanwhile. What it raises comes out of
        here at once: work that has not begun is dropped, and other work goes on to its own end, its
        result unheard.
        """
        check()
        job = Job(work)
        self.submit(job)
        try:
            while not job.wait(_CHECK_SECONDS):
                check()
        except BaseException:
            job.drop()
            raise
        return job.result()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            job.run()
            del job  # and with it its result, while this thread waits

    def _next(self) -> Job[Any] | None:
        """Return a job, or None when the thread is to end."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._jobs, self._idle_seconds)
            self._idle -= 1
            if self._jobs:
                return self._jobs.popleft()
            self._threads -= 1
            return None
