"""The plans that a coordinator is making: what bounds them, and how far they have come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Gauge

from floeberg.process.background import Background
from floeberg.server.planning import PlanProgress, PlanRun, Turns

# Many may wait in vain for a store that hangs, and nobody else may wait for a thread because of it.
_REQUESTS_AT_ONCE = 512


class PlanRuns:
    """The plans that a process is making. Safe to use from several threads."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        plan_seconds: float | None = None,
        max_large_plans: int = 2,
    ) -> None:
        """`plan_seconds` is how long each may take; None is for ever."""
        self._plan_seconds = plan_seconds
        self._turns = Turns(max_large_plans)
        self._background = Background(_REQUESTS_AT_ONCE, "floeberg-plan-request")
        self._lock = threading.Lock()
        self._running: dict[int, PlanRun] = {}
        gauge = Gauge("floeberg_plans_running", "Plans in the making.", registry=registry)
        gauge.set_function(lambda: len(self._running))

    @contextmanager
    def run(
        self,
        table: str,
        principal: str | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> Iterator[PlanRun]:
        """Give the run of a plan that is made within the block."""
        run = PlanRun(
            table,
            principal,
            is_cancelled=is_cancelled,
            seconds=self._plan_seconds,
            turns=self._turns,
            background=self._background,
        )
        with self._lock:
            self._running[id(run)] = run
        try:
            yield run
        finally:
            run.end()
            with self._lock:
                del self._running[id(run)]

    def running(self) -> tuple[PlanProgress, ...]:
        """Return how far each plan has come, the oldest first."""
        with self._lock:
            runs = tuple(self._running.values())
        return tuple(run.progress for run in runs)
