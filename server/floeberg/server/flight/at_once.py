"""How many queries of a principal go on at once.

No coordinator sees all of a query: one plans it, workers read it, and who reads tells nobody when
they are done. So what counts is what a coordinator knows:

- queries that it plans now;
- those that it has planned, until workers say that they were read to their end or left, or until
  nobody has begun to read, or to read on, for `patience_seconds`;
- those of which workers say that a stream runs now, whichever coordinator has planned them.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from floeberg.protocol.errors import TooManyQueries
from floeberg.server.flight.reads import Reads
from floeberg.server.planning import PlanRun

WAIT_SECONDS = 1.0
"""So long a query waits for another one's end to be told; workers tell within a quarter of it."""

WAITING = "wait for other queries of the principal"

_ASK_SECONDS = 0.25
_CHECK_SECONDS = 0.05


@dataclass(slots=True)
class _Query:
    """A query of this coordinator; `tasks` is None while it is planned."""

    since: float
    tasks: int | None = None


class QueriesAtOnce:
    """The queries of this coordinator and its workers, by principal. Safe to use from several
    threads.

    `ask_workers` has workers tell soon how far they are, those that don't tell by themselves.
    """

    def __init__(
        self,
        reads: Reads,
        *,
        patience_seconds: float,
        ask_workers: Callable[[], None] = lambda: None,
        wait_seconds: float = WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reads = reads
        self._patience_seconds = patience_seconds
        self._ask_workers = ask_workers
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._queries: dict[str | None, dict[str, _Query]] = {}
        self._next_look = clock() + patience_seconds

    @property
    def principals(self) -> int:
        """How many principals have queries that are remembered."""
        with self._lock:
            return len(self._queries)

    @contextmanager
    def planning(
        self,
        run: PlanRun,
        principal: str | None,
        limit: int | None,
    ) -> Iterator[Planned]:
        """Let a query be planned within the block, as soon as fewer than `limit` of its principal
        go on; what to read of it is said to what the block is given.

        Raises `TooManyQueries` when none of them ends within a second, and what `run.check` raises.
        Without a limit nothing is counted.
        """
        planned = Planned()
        if limit is None:
            yield planned
            return
        self._admit(run, principal, limit)
        try:
            yield planned
        finally:
            with self._lock:
                own = self._queries[principal]
                if planned.tasks:
                    own[run.query_id] = _Query(self._clock(), planned.tasks)
                else:
                    del own[run.query_id]

    def _admit(self, run: PlanRun, principal: str | None, limit: int) -> None:
        if self._has_begun(run.query_id, principal, limit):
            return
        run.enter(WAITING)
        with run.waiting():
            began = self._clock()
            asked_at = -math.inf
            while not self._has_begun(run.query_id, principal, limit):
                now = self._clock()
                if now - began >= self._wait_seconds:
                    raise TooManyQueries(limit)
                run.check()
                if now - asked_at >= _ASK_SECONDS:
                    asked_at = now
                    self._ask_workers()
                self._reads.wait_for_news(_CHECK_SECONDS)

    def _has_begun(self, query_id: str, principal: str | None, limit: int) -> bool:
        with self._lock:
            if len(self._going_on(principal)) >= limit:
                return False
            self._forget_ended()
            self._queries.setdefault(principal, {})[query_id] = _Query(self._clock())
            return True

    def _forget_ended(self) -> None:
        """Forget the queries of principals that do not come again, now and then for all."""
        now = self._clock()
        if now < self._next_look:
            return
        self._next_look = now + self._patience_seconds
        for principal in list(self._queries):
            self._going_on(principal)

    def going_on(self, principal: str | None) -> frozenset[str]:
        """Return the ids of the queries of a principal that count now."""
        with self._lock:
            return self._going_on(principal)

    def _going_on(self, principal: str | None) -> frozenset[str]:
        now = self._clock()
        own = self._queries.get(principal, {})
        for query_id in [q for q, query in own.items() if self._is_over(q, query, now)]:
            del own[query_id]
        if not own:
            self._queries.pop(principal, None)
        return self._reads.running(principal).union(own)

    def _is_over(self, query_id: str, query: _Query, now: float) -> bool:
        if query.tasks is None:
            return False
        heard = self._reads.last_news(query_id)
        if heard is None:
            return now - query.since >= self._patience_seconds
        facts, at, is_left = heard
        if facts.running:
            return False
        if is_left or facts.tasks >= query.tasks:
            return True
        return now - at >= self._patience_seconds


@dataclass(slots=True)
class Planned:
    """What became of a plan: how many tasks are to be read, 0 where nobody reads here."""

    tasks: int = 0
