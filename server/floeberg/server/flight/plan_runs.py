"""The plans that a coordinator is making: what bounds them, and how far they have come. And what
became of the last ones.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Gauge

from floeberg.process.background import Background
from floeberg.protocol.errors import Cancelled, FloebergError, InternalError
from floeberg.protocol.requests import current_request
from floeberg.protocol.status import PlanFacts, QueryEntry, QueryKind, RunningPlan
from floeberg.server.planning import PlanProgress, PlanRun, Seats, Turns

logger = logging.getLogger(__name__)

# Many may wait in vain for a store that hangs, and nobody else may wait for a thread because of it.
_REQUESTS_AT_ONCE = 512
_REMEMBERED = 100


class PlanRuns:
    """The plans that a process is making. Safe to use from several threads."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        plan_seconds: float | None = None,
        max_large_plans: int = 2,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`plan_seconds` is how long each may take; None is for ever."""
        self._plan_seconds = plan_seconds
        self._now_ms = now_ms
        self._turns = Turns(max_large_plans)
        self._seats = Seats()
        self._background = Background(_REQUESTS_AT_ONCE, "floeberg-plan-request")
        self._lock = threading.Lock()
        self._running: dict[int, tuple[QueryKind, str | None, PlanRun]] = {}
        self._recent: deque[QueryEntry] = deque(maxlen=_REMEMBERED)
        gauge = Gauge("floeberg_plans_running", "Plans in the making.", registry=registry)
        gauge.set_function(lambda: len(self._running))
        waiting = Gauge(
            "floeberg_plans_waiting", "Plans that wait for others to pause.", registry=registry
        )
        waiting.set_function(lambda: self._seats.waiting)

    @contextmanager
    def run(
        self,
        table: str,
        principal: str | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
        kind: QueryKind = "scan",
        limit_seconds: float | None = None,
    ) -> Iterator[PlanRun]:
        """Give the run of a plan that is made within the block; what becomes of it is remembered.

        The run of a `schema`, which is no query, is not. `limit_seconds` is what a query of the
        principal may take.
        """
        run = PlanRun(
            table,
            principal,
            is_cancelled=is_cancelled,
            seconds=self._plan_seconds,
            limit_seconds=limit_seconds,
            turns=self._turns,
            seats=self._seats,
            background=self._background,
        )
        request = current_request()
        request_id = None if request is None else request.request_id
        began_ms = self._now_ms()
        error: BaseException | None = None
        with self._lock:
            self._running[id(run)] = kind, request_id, run
        try:
            run.begin()
            yield run
        except BaseException as exc:
            error = exc
            raise
        finally:
            run.end()
            entry = _entry(kind, request_id, run, began_ms, error)
            with self._lock:
                del self._running[id(run)]
                if kind != "schema":
                    self._recent.appendleft(entry)
            if entry.code is not None:
                _tell(entry)

    def running(self) -> tuple[RunningPlan, ...]:
        """Return how far each plan has come, the oldest first."""
        with self._lock:
            runs = tuple(self._running.values())
        return tuple(_running(kind, request_id, run.progress) for kind, request_id, run in runs)

    def recent(self) -> tuple[QueryEntry, ...]:
        """Return what became of the last plans, the newest first."""
        with self._lock:
            return tuple(self._recent)


def _tell(failed: QueryEntry) -> None:
    """Log what did not come to a plan; not the error's message, which may repeat a literal."""
    logger.info(
        "query failed",
        extra={
            "kind": failed.kind,
            "table": failed.table,
            "principal": failed.principal,
            "code": failed.code,
            "seconds": round(failed.seconds, 3),
        },
    )


def _running(kind: QueryKind, request_id: str | None, progress: PlanProgress) -> RunningPlan:
    return RunningPlan(
        request_id=request_id,
        kind=kind,
        table=progress.table,
        principal=progress.principal,
        phase=progress.phase,
        manifests=progress.manifests,
        manifests_read=progress.manifests_read,
        seconds=progress.seconds,
    )


def _entry(
    kind: QueryKind,
    request_id: str | None,
    run: PlanRun,
    began_ms: int,
    error: BaseException | None,
) -> QueryEntry:
    progress, plan = run.progress, run.plan
    code = None
    if error is not None:
        code = error.code if isinstance(error, FloebergError) else InternalError.code
    return QueryEntry(
        query_id=run.query_id,
        request_id=request_id,
        kind=kind,
        table=progress.table,
        principal=progress.principal,
        outcome=(
            "planned" if error is None else "cancelled" if code == Cancelled.code else "failed"
        ),
        code=code,
        began_ms=began_ms,
        seconds=progress.seconds,
        plan=None
        if plan is None
        else PlanFacts(
            tasks=len(plan.tasks),
            bytes=plan.total_bytes,
            endpoints=run.endpoints,
            counters=plan.counters.summary(),
        ),
    )
