"""What became of every query, and whether that may be."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum

import pyarrow as pa

from tests.chaos.lake import Question

LONGEST_QUERY_SECONDS = 60.0
_VIOLATIONS_SHOWN = 40


class Kind(StrEnum):
    """Whose client it is."""

    FLOEBERG = "floeberg"
    PYARROW = "pyarrow.flight"
    ADBC = "ADBC"


class Outcome(StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    RETRYABLE = "retryable error"
    FAILED = "other error"


@dataclass(frozen=True, slots=True)
class Running:
    """A query that has begun."""

    kind: Kind
    question: Question
    began: float


class Tally:
    """Collects outcomes from several threads, and what must not be as `violations`."""

    def __init__(
        self, say: Callable[[str], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self.outcomes: Counter[tuple[Kind, Outcome]] = Counter()
        self.errors: Counter[str] = Counter()
        self.violations: list[str] = []
        self.resumed = 0
        self.rows = 0
        self._seconds: dict[Kind, list[float]] = {kind: [] for kind in Kind}
        self._orders: dict[str, list[int | None]] = {}
        self._running: dict[int, Running] = {}
        self._late: set[int] = set()
        self._lock = threading.Lock()
        self._now = now

    @contextmanager
    def query(self, kind: Kind, question: Question) -> Iterator[None]:
        """Watch one query of this thread."""
        me = threading.get_ident()
        with self._lock:
            self._running[me] = Running(kind, question, self._now())
            self._late.discard(me)
        try:
            yield
        finally:
            with self._lock:
                running = self._running.pop(me)
                seconds = self._now() - running.began
                self._seconds[kind].append(seconds)
            if kind is Kind.FLOEBERG and seconds > LONGEST_QUERY_SECONDS and me not in self._late:
                self.violate(f"{question.name} took {seconds:.0f} s")

    def answered(self, kind: Kind, question: Question, found: pa.Table, resumed: int = 0) -> None:
        """Judge an answer, of which so many streams were `resumed`."""
        fault = question.fault_in(found) or self._out_of_order(question, found)
        with self._lock:
            self.outcomes[kind, Outcome.WRONG if fault else Outcome.RIGHT] += 1
            self.rows += found.num_rows
            if not fault:
                self.resumed += resumed
        if fault:
            self.violate(f"{kind}: {question.name}: {fault}")

    def failed(self, kind: Kind, question: Question, error: Exception, *, retryable: bool) -> None:
        """Note a query without an answer, which no client of floeberg's may have."""
        outcome = Outcome.RETRYABLE if retryable else Outcome.FAILED
        told = f"{kind}: {type(error).__name__}: {error}"
        with self._lock:
            self.outcomes[kind, outcome] += 1
            self.errors[told[:160]] += 1
        if kind is Kind.FLOEBERG:
            self.violate(f"{question.name} failed: {told}")

    def violate(self, what: str) -> None:
        with self._lock:
            self.violations.append(what)
            count = len(self.violations)
        if count <= _VIOLATIONS_SHOWN:
            self._say(f"VIOLATION: {what}")

    def forgive(self, seconds: float) -> None:
        """Let the queries that run take so much longer."""
        with self._lock:
            for me, running in self._running.items():
                self._running[me] = replace(running, began=running.began + seconds)

    def watch(self) -> None:
        """Note the queries of floeberg's clients that have not ended in time; call it often."""
        now = self._now()
        with self._lock:
            late = {
                thread: running
                for thread, running in self._running.items()
                if running.kind is Kind.FLOEBERG
                and now - running.began > LONGEST_QUERY_SECONDS
                and thread not in self._late
            }
            self._late |= late.keys()
        for running in late.values():
            self.violate(f"{running.question.name} has run for {now - running.began:.0f} s")

    def asked(self, kind: Kind) -> int:
        return sum(count for (who, _), count in self.outcomes.items() if who is kind)

    def right(self, kind: Kind) -> int:
        return self.outcomes[kind, Outcome.RIGHT]

    def seconds(self, kind: Kind, share: float) -> float:
        """Return how long all but the slowest queries took at most: `share` of them."""
        with self._lock:
            taken = sorted(self._seconds[kind])
        return taken[min(int(share * len(taken)), len(taken) - 1)] if taken else 0.0

    def _out_of_order(self, question: Question, found: pa.Table) -> str | None:
        """Hold each answer that has an order to the order of the first one."""
        if not question.arguments.get("ordered"):
            return None
        ids: list[int | None] = found["id"].to_pylist()
        with self._lock:
            first = self._orders.setdefault(question.name, ids)
        return None if ids == first else "the rows came in another order than before"
