"""Planning in the background: a few threads, a bounded line before them, and plan ids to ask by."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from floeberg.protocol.errors import ServerUnavailable
from floeberg.server.rest.errors import NoSuchPlan, TooManyPlans

T = TypeVar("T")
R = TypeVar("R")

# Decoding holds the interpreter's lock: more threads would only wait for each other.
_THREADS = 4
_MAX_WAITING = 64
_MAX_JOBS = 1000
_JOB_SECONDS = 3600.0


@dataclass(frozen=True)
class Job(Generic[T]):
    """One plan in the making, or made. `table` is what it is a plan of: whoever asks names it."""

    plan_id: str
    table: tuple[str, ...]
    future: Future[T]
    cancelled: threading.Event
    began: float = field(compare=False)


class Jobs(Generic[T]):
    """Runs plans, and remembers them by id for an hour, the last 1000 at most.

    Safe to use from several threads. `close` it.
    """

    def __init__(self, now_seconds: Callable[[], float] = time.monotonic) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="rest-plans")
        self._now_seconds = now_seconds
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job[T]] = OrderedDict()
        self._unfinished = 0

    def start(self, table: tuple[str, ...], work: Callable[[threading.Event], T]) -> Job[T]:
        """Return a job that runs `work` in a thread; its event is set when it is cancelled.

        Raises `TooManyPlans` when too many are unfinished.
        """
        cancelled = threading.Event()
        future = self.run(lambda: work(cancelled))
        now = self._now_seconds()
        # nobody guesses an id: it lets its holder cancel the plan
        job = Job(secrets.token_urlsafe(18), table, future, cancelled, now)
        with self._lock:
            self._jobs[job.plan_id] = job
            while len(self._jobs) > _MAX_JOBS or self._oldest_began() < now - _JOB_SECONDS:
                self._jobs.popitem(last=False)
        return job

    def run(self, work: Callable[[], R]) -> Future[R]:
        """Run `work` in a thread, in the same line as the plans and for the same request as here.

        Raises as `start` does, and `ServerUnavailable` once this is closed.
        """
        with self._lock:
            if self._unfinished >= _MAX_WAITING:
                raise TooManyPlans(_MAX_WAITING)
            self._unfinished += 1
        try:
            future = self._pool.submit(copy_context().run, work)
        except RuntimeError:  # the pool was closed meanwhile
            self._finished()
            raise ServerUnavailable("the coordinator is stopping; try again") from None
        future.add_done_callback(lambda _: self._finished())
        return future

    def get(self, plan_id: str, table: tuple[str, ...]) -> Job[T]:
        """Return a job by its id. Raises `NoSuchPlan`, also for another table's."""
        with self._lock:
            job = self._jobs.get(plan_id)
        if job is None or job.table != table or job.began < self._now_seconds() - _JOB_SECONDS:
            raise NoSuchPlan()
        return job

    def cancel(self, plan_id: str, table: tuple[str, ...]) -> None:
        """Stop a job before it begins, or soon after; one that has ended counts as cancelled
        too. Raises as `get` does.
        """
        job = self.get(plan_id, table)
        job.cancelled.set()
        job.future.cancel()

    def close(self) -> None:
        """Cancel everything; a plan under way ends soon."""
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.cancelled.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _finished(self) -> None:
        with self._lock:
            self._unfinished -= 1

    def _oldest_began(self) -> float:
        return next(iter(self._jobs.values())).began if self._jobs else float("inf")
