"""When a call or a stream that failed is tried again, and when its error is told instead.

Everything that a client asks is a reading, so trying again is always safe; what has to be bounded
is how often. Three things do: pauses that grow and differ from client to client, a time after
which an error is told, and budgets, which let the retries of a scan and of a connection through
only at a certain rate, however many streams break at once.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from floeberg.protocol.errors import (
    FloebergError,
    NoWorkers,
    PlanTimeout,
    TimedOut,
    Unavailable,
)

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to keep trying what cannot be had, a stream that breaks among it.

    The error is told after `rounds` passes over all servers that could have helped without one
    batch, but to a connection that has been served before not until `patience_seconds` have passed
    as well: fleets are restarted. (One that never was is more likely to have a wrong address.)
    Between passes the client waits a random time, up to `base_seconds` doubled a pass and
    `most_seconds` at most, so that clients of one dead worker do not return in step.
    """

    rounds: int = 4
    base_seconds: float = 0.2
    most_seconds: float = 5.0
    patience_seconds: float = 30.0
    random: Callable[[], float] = random.random

    def pause_seconds(self, failed_rounds: int) -> float:
        return self.random() * min(self.most_seconds, self.base_seconds * 2.0**failed_rounds)


class RetryBudget:
    """Lets retries through at a rate, after a burst. Safe to share between threads.

    What does not fit waits for its turn: it is late, and not lost. A budget `within` another takes
    of both.
    """

    def __init__(
        self,
        burst: float,
        per_second: float,
        within: RetryBudget | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._burst = burst
        self._per_second = per_second
        self._within = within
        self._clock = clock
        self._lock = threading.Lock()
        self._left = burst
        self._since = clock()

    def take(self) -> float:
        """Take one retry, and return how many seconds to wait before it."""
        with self._lock:
            now = self._clock()
            refilled = self._left + (now - self._since) * self._per_second
            self._left = min(self._burst, refilled) - 1
            self._since = now
            wait = max(0.0, -self._left / self._per_second)
        return wait if self._within is None else max(wait, self._within.take())


def connection_budget() -> RetryBudget:
    """Return what all scans of a connection may retry: a hundred at once, and ten a second."""
    return RetryBudget(100, 10)


def scan_budget(connection: RetryBudget) -> RetryBudget:
    """Return what one scan may retry: eight streams that move over two dead workers at once, and
    five a second."""
    return RetryBudget(24, 5, connection)


class Attempts:
    """The tries at one thing that has to succeed once: an answer, or the next batch of a stream."""

    def __init__(
        self, policy: RetryPolicy, budget: RetryBudget, clock: Clock = time.monotonic
    ) -> None:
        self._policy = policy
        self._budget = budget
        self._clock = clock
        self._began = clock()
        self.failures = 0

    def succeeded(self) -> None:
        self.failures = 0

    def pause_after(self, error: Unavailable, servers: int, *, was_served: bool) -> float | None:
        """Count a failure, and return how long to wait before the next try; None to give up.

        `servers` is how many there are to try in turn, and `was_served` says whether the
        connection has got the like before.
        """
        now = self._clock()
        if self.failures == 0:
            self._began = now
        self.failures += 1
        if not may_pass(error):
            return None
        passes, rest = divmod(self.failures, servers)
        is_patient = was_served and now - self._began < self._policy.patience_seconds
        rounds = self._rounds(error, was_served)
        if isinstance(error, TimedOut):
            # each try takes all of its time: every server is asked once, and one that has no
            # other beside it twice, as another may be behind its address
            is_patient, rounds = False, 2 if servers == 1 and was_served else 1
        if passes >= rounds and not is_patient:
            return None
        pause = 0.0 if rest else self._policy.pause_seconds(passes)
        return max(pause, self._budget.take())

    def _rounds(self, error: Unavailable, was_served: bool) -> int:
        if was_served or (is_seen(error) and not isinstance(error, NoWorkers)):
            return self._policy.rounds
        return 1  # a person waits for the answer that nobody is there


def may_pass(error: FloebergError) -> bool:
    """Say whether trying again may help. A deadline that has passed would pass again, unless the
    server is one that stands still; a call that was cancelled, and not from here, met a server that
    was just stopping."""
    if isinstance(error, TimedOut):
        return error.is_silent
    return isinstance(error, Unavailable) and not isinstance(error, PlanTimeout)


def is_seen(error: FloebergError) -> bool:
    """Say whether a server has seen the request that failed so."""
    return error.request_id is not None
