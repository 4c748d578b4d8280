"""A plan in the making: how far it has come, and whether it may go on.

A plan of a table with a million files takes seconds, and one from a slow store minutes. Whoever
asked for it may be gone by then, it may have had its time, and others may wait for the memory that
it takes. A plan is handed its `PlanRun`, tells it how far it is, and stops where the run says so.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from floeberg.process.background import Background
from floeberg.process.storage.abandonable import AbandonableStorage
from floeberg.protocol.errors import Cancelled, LimitExceeded, PlanTimeout
from floeberg.protocol.storage import Storage
from floeberg.server.planning.plan import Plan
from floeberg.server.planning.seats import Seats
from floeberg.server.planning.turns import Turns

logger = logging.getLogger(__name__)

T = TypeVar("T")

LARGE_PLAN_BYTES = 32 << 20
"""So many bytes of manifests to fetch and decode make a plan a large one: about 80,000 files."""

WAITING = "wait for another large plan"
WAITING_FOR_SEAT = "wait for other plans"

_TOLD_EVERY_SECONDS = 10.0


_FIRST_PHASE = "begin"


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """How far a plan has come.

    `phase` is the step that it is in, in the words of `Explanation.steps`. `manifests` are those
    that it has to read, deletes and data alike, 0 as long as that is not known; `manifests_read` of
    them it is done with.
    """

    table: str
    principal: str | None
    phase: str = _FIRST_PHASE
    manifests: int = 0
    manifests_read: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        read = f"{self.manifests_read:,} of {self.manifests:,} manifests read, "
        return f"{read if self.manifests else ''}in the step {self.phase!r}"


class PlanRun:
    """One plan in the making. Safe to use from several threads, some of which may outlive it.

    `is_cancelled` tells whether anybody still waits; it is not asked any more once the run has
    ended. `seconds` is how long the plan may take, and `limit_seconds` how long a query of the
    principal may take in all; None is for as long as it likes.
    """

    def __init__(
        self,
        table: str = "",
        principal: str | None = None,
        *,
        is_cancelled: Callable[[], bool] = lambda: False,
        seconds: float | None = None,
        limit_seconds: float | None = None,
        turns: Turns | None = None,
        seats: Seats | None = None,
        background: Background | None = None,
        now_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_cancelled = is_cancelled
        self._seconds = seconds
        self._limit_seconds = limit_seconds
        self._turns = turns
        self._seats = seats
        self._background = background
        self._now_seconds = now_seconds
        self._lock = threading.Lock()
        self._table, self._principal = table, principal
        self._phase = _FIRST_PHASE
        self._manifests = self._manifests_read = 0
        self._began = now_seconds()
        self._tell_at = self._began + _TOLD_EVERY_SECONDS
        self._has_turn = self._ended = False
        self._seated: int | None = None  # the thread that has a seat
        self.query_id = secrets.token_hex(8)
        """What tells this plan from every other."""
        self.plan: Plan | None = None
        """What it has come to, once it is made."""
        self.is_large = False
        """Whether it has, or had, to load `LARGE_PLAN_BYTES` of manifests."""
        self.endpoints: int | None = None
        """Into how many the plan was packed, if it is to be read."""

    @property
    def progress(self) -> PlanProgress:
        with self._lock:
            return PlanProgress(
                self._table,
                self._principal,
                self._phase,
                self._manifests,
                self._manifests_read,
                self._now_seconds() - self._began,
            )

    # --- what a plan says -------------------------------------------------------------------------

    def check(self) -> None:
        """Raise `Cancelled` when nobody waits any more, `PlanTimeout` when the plan's time is over,
        `LimitExceeded` when the query's is."""
        with self._lock:
            if self._ended or self._is_cancelled():
                raise Cancelled("the client cancelled the call")
            now = self._now_seconds()
            is_long = now >= self._tell_at
            if is_long:
                self._tell_at = now + _TOLD_EVERY_SECONDS
        if self._limit_seconds is not None and now >= self._began + self._limit_seconds:
            raise LimitExceeded("seconds", self._limit_seconds, "planning alone has taken longer")
        if self._seconds is not None and now >= self._began + self._seconds:
            raise self._timeout()
        if is_long:
            self._tell()

    def begin(self) -> None:
        """Wait for a seat, which is this thread's until `end`. Raises as `check` does."""
        if self._seats is not None:
            self.enter(WAITING_FOR_SEAT)
            self._sit(returning=False)

    def enter(self, phase: str) -> None:
        """Say which step the plan has come to. Raises as `check` does."""
        self._phase = phase
        self.check()

    def reading(self, manifests: int, fetched_bytes: int) -> None:
        """Say how many manifests are read, and how many bytes of them are not in memory yet.

        A large plan waits here for its turn. Raises as `check` does, and `ServerBusy` when its turn
        does not come.
        """
        with self._lock:
            self._manifests, self._manifests_read = manifests, 0
            phase = self._phase
        self.is_large = self.is_large or fetched_bytes >= LARGE_PLAN_BYTES
        if self._turns is None or self._has_turn or fetched_bytes < LARGE_PLAN_BYTES:
            self.check()
            return
        self.enter(WAITING)
        with self.waiting():
            self._turns.take(self.check)
        self._has_turn = True
        self.enter(phase)

    def read_one(self, manifests: int = 1) -> None:
        """Say that the plan is done with one more manifest, or several. Raises as `check` does."""
        with self._lock:
            self._manifests_read += manifests
        self.check()

    # --- what it waits for ------------------------------------------------------------------------

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Leave the seat to others while the block waits, or works for whichever plan comes first.

        Does nothing in a thread that has none. Raises as `check` does.
        """
        if self._seats is None or self._seated != threading.get_ident():
            yield
            return
        self._stand_up()
        yield
        self._sit(returning=True)

    def ask(self, request: Callable[[], T]) -> T:
        """Return what `request` returns, or raise what it raises; it is left where `check`
        raises."""
        if self._background is None:
            self.check()
            return request()
        with self.waiting():
            return self._background.ask(request, self.check)

    def storage(self, inner: Storage) -> Storage:
        """Return `inner` with requests that are left where `check` raises."""
        if self._background is None:
            return inner
        return AbandonableStorage(inner, self.ask, self.check)

    def end(self) -> None:
        """Give back what the plan has taken. What its threads still do, ends as cancelled."""
        with self._lock:
            self._ended = True
        if self._seated is not None:
            self._stand_up()
        if self._has_turn and self._turns is not None:
            self._turns.give_back()
            self._has_turn = False

    def _sit(self, *, returning: bool) -> None:
        assert self._seats is not None
        self._seats.take(self.check, returning=returning)
        self._seated = threading.get_ident()

    def _stand_up(self) -> None:
        assert self._seats is not None
        self._seated = None
        self._seats.give_back()

    def _timeout(self) -> PlanTimeout:
        progress = self.progress
        return PlanTimeout(
            f"planning {progress.table} took longer than {self._seconds:g} s: {progress}; narrow"
            " the filter to fewer partitions, ask again (what was decoded is remembered), or raise"
            " the coordinator's plan_seconds"
        )

    def _tell(self) -> None:
        progress = self.progress
        logger.info(
            "still planning",
            extra={
                "table": progress.table,
                "principal": progress.principal,
                "phase": progress.phase,
                "manifests": progress.manifests,
                "manifests_read": progress.manifests_read,
                "seconds": round(progress.seconds, 1),
            },
        )
