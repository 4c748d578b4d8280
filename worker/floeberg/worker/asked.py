"""The coordinators that found this worker by themselves, and ask it who it is.

Such a coordinator has this worker for a lease from each answer on. Before the worker goes, each
must hear that it drains: this side can't tell them, only answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from floeberg.protocol.registration import (
    AskWorker,
    RegisterWorker,
    ReplayGuard,
    WorkerAnswer,
    WorkerLoad,
    open_registration,
    seal_registration,
)
from floeberg.protocol.sealing import Keyring


@dataclass(frozen=True, slots=True)
class _Asker:
    lease_until: float
    knows_of_draining: bool
    location: str | None


class Askers:
    """Who has asked. Times are seconds of one clock, whose reading is handed in. Not safe for
    several threads.

    >>> askers = Askers()
    >>> askers.answered("c-1", 10.0, is_draining=False, at=0.0)
    >>> askers.names(9.0), askers.all_know_of_draining(9.0)
    (('c-1',), False)
    >>> askers.all_know_of_draining(10.0)  # it is gone itself, or it would have asked
    True
    """

    def __init__(self) -> None:
        self._askers: dict[str, _Asker] = {}

    def answered(
        self,
        coordinator_id: str,
        lease_seconds: float,
        *,
        is_draining: bool,
        at: float,
        location: str | None = None,
    ) -> None:
        self._askers[coordinator_id] = _Asker(at + lease_seconds, is_draining, location)

    def names(self, at: float) -> tuple[str, ...]:
        """Return the ids of the coordinators that have this worker."""
        self._askers = {name: a for name, a in self._askers.items() if a.lease_until > at}
        return tuple(sorted(self._askers))

    def locations(self, at: float) -> tuple[str, ...]:
        """Return where these coordinators are, of those that have said so."""
        self.names(at)
        found = (asker.location for asker in self._askers.values())
        return tuple(dict.fromkeys(location for location in found if location is not None))

    def all_know_of_draining(self, at: float) -> bool:
        """Say whether no coordinator has this worker without knowing that it drains."""
        self.names(at)
        return all(asker.knows_of_draining for asker in self._askers.values())


class Answers:
    """Answers the questions of coordinators. Safe to use from several threads.

    `on_over` is told of queries that have all they may.
    """

    def __init__(
        self,
        keyring: Keyring,
        introduction: Callable[[], RegisterWorker],
        load: Callable[[], WorkerLoad],
        on_over: Callable[[Sequence[str]], None] = lambda queries: None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._keyring = keyring
        self._on_over = on_over
        self._introduction = introduction
        self._load = load
        self._clock = clock
        self._now_ms = now_ms
        self._guard = ReplayGuard()
        self._lock = threading.Lock()
        self._askers = Askers()
        self._is_draining = False

    def answer(self, raw: bytes) -> bytes:
        """Return the answer to a question. Raises `Unauthenticated` for one that no coordinator of
        this fleet has asked just now, and what `introduction` raises.
        """
        now_ms = self._now_ms()
        asked = open_registration(AskWorker, raw, self._keyring, self._guard, now_ms=now_ms)
        if asked.over:
            self._on_over(asked.over)
        introduction, load = self._introduction(), self._load()
        with self._lock:
            is_draining = self._is_draining
            self._askers.answered(
                asked.coordinator_id,
                asked.lease_seconds,
                is_draining=is_draining,
                at=self._clock(),
                location=asked.location,
            )
        answer = WorkerAnswer(
            question=asked.question,
            introduction=introduction,
            state="draining" if is_draining else "ready",
            load=load,
        )
        return seal_registration(answer, self._keyring, now_ms=now_ms)

    def drain(self) -> None:
        """Say from now on that this worker drains."""
        with self._lock:
            self._is_draining = True

    @property
    def askers(self) -> tuple[str, ...]:
        """The ids of the coordinators that have this worker by its answers."""
        with self._lock:
            return self._askers.names(self._clock())

    @property
    def locations(self) -> tuple[str, ...]:
        """Where the coordinators are that have this worker by its answers, as far as they say."""
        with self._lock:
            return self._askers.locations(self._clock())

    @property
    def all_know_of_draining(self) -> bool:
        """Whether every coordinator that has this worker knows that it drains."""
        with self._lock:
            return self._askers.all_know_of_draining(self._clock())
