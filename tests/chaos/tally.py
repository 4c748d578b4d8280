"""What became of every query, and whether that may be."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(eq=False, slots=True)
class Asked:
    """A query that has begun, and may have ended. The tally's lock guards it."""

    kind: Kind
    question: Question
    began: float
    ended: float | None = None
    is_late: bool = False


class Tally:
    """Collects outcomes from several threads, and what must not be as `violations`."""

    def __init__(
        self,
        say: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        longest_seconds: float = LONGEST_QUERY_SECONDS,
    ) -> None:
        self._say = say
        self.longest_seconds = longest_seconds
        self.outcomes: Counter[tuple[Kind, Outcome]] = Counter()
        self.errors: Counter[str] = Counter()
        self.violations: list[str] = []
        self.resumed = 0
        self.rows = 0
        self.late: Counter[Kind] = Counter()
        self.stood_still: list[tuple[float, float]] = []
        self._ended: list[Asked] = []
        self._judged = 0
        """How many of those have been looked at for their time."""
        self._orders: dict[str, list[int | None]] = {}
        self._running: dict[int, Asked] = {}
        self._lock = threading.Lock()
        self._now = now

    @contextmanager
    def query(self, kind: Kind, question: Question) -> Iterator[None]:
        """Watch one query of this thread."""
        me = threading.get_ident()
        asked = Asked(kind, question, self._now())
        with self._lock:
            self._running[me] = asked
        try:
            yield
        finally:
            with self._lock:
                del self._running[me]
                asked.ended = self._now()
                self._ended.append(asked)

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

    def forgive(self, since: float, until: float) -> None:
        """Do not count this time to the queries that ran then: the machine stood still."""
        with self._lock:
            self.stood_still.append((since, until))
        self._say(f"the machine stood still for {until - since:.0f} s: not counted to any query")

    def watch(self) -> None:
        """Note the queries that have taken too long; call it often, and after `forgive`."""
        now = self._now()
        late: list[tuple[Asked, float]] = []
        with self._lock:
            unjudged = [*self._ended[self._judged :], *self._running.values()]
            self._judged = len(self._ended)
            for asked in unjudged:
                seconds = self._took(asked, now)
                if seconds > self.longest_seconds and not asked.is_late:
                    asked.is_late = True
                    self.late[asked.kind] += 1
                    late.append((asked, seconds))
        for asked, seconds in late:
            if asked.kind is Kind.FLOEBERG:
                self.violate(f"{asked.question.name} has taken {seconds:.0f} s")

    def asked(self, kind: Kind) -> int:
        return sum(count for (who, _), count in self.outcomes.items() if who is kind)

    def right(self, kind: Kind) -> int:
        return self.outcomes[kind, Outcome.RIGHT]

    def seconds(self, kind: Kind, share: float) -> float:
        """Return how long all but the slowest queries took at most: `share` of them."""
        with self._lock:
            taken = sorted(self._took(a, a.began) for a in self._ended if a.kind is kind)
        return taken[min(int(share * len(taken)), len(taken) - 1)] if taken else 0.0

    def _took(self, asked: Asked, now: float) -> float:
        """Return how long a query took, or has taken, without the times of standing still."""
        ended = now if asked.ended is None else asked.ended
        still = (
            max(0.0, min(ended, until) - max(asked.began, since))
            for since, until in self.stood_still
        )
        return ended - asked.began - sum(still)

    def _out_of_order(self, question: Question, found: pa.Table) -> str | None:
        """Hold each answer that has an order to the order of the first one."""
        if not question.arguments.get("ordered"):
            return None
        ids: list[int | None] = found["id"].to_pylist()
        with self._lock:
            first = self._orders.setdefault(question.name, ids)
        return None if ids == first else "the rows came in another order than before"
