"""The worker's side of the fleet: register with each coordinator, renew the lease, say goodbye.

What to send next and when is decided by `Seat`, a state machine without clock or socket; a thread
for each coordinator does what it says.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import pyarrow.flight as fl

from floeberg.process.calling import DIAL_AGAIN_SOON, NO_TLS, ClientTls
from floeberg.protocol.bodies import parse_body
from floeberg.protocol.errors import FloebergError, Unauthenticated, Unavailable
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.registration import (
    LEAVE_WORKER,
    LEND_CREDENTIALS,
    REGISTER_WORKER,
    RENEW_WORKER,
    AskCredentials,
    Lease,
    LeaveWorker,
    LentCredentials,
    RegisterWorker,
    RenewWorker,
    ReplayGuard,
    WorkerLoad,
    open_registration,
    seal_registration,
)
from floeberg.protocol.sealing import Keyring

logger = logging.getLogger(__name__)

_FIRST_BACKOFF_SECONDS = 0.25
_LONGEST_BACKOFF_SECONDS = 10.0
_CALL_SECONDS = 5.0
_GOODBYE_SECONDS = 1.0
# a worker at the edge of its budget has room and none in turn, with each stream
_NEWS_SECONDS = 0.25

Message = RegisterWorker | RenewWorker | LeaveWorker


class Step(StrEnum):
    REGISTER = "register"
    RENEW = "renew"


@dataclass(frozen=True, slots=True)
class Seat:
    """Where this worker stands with one coordinator: what to do `wait_seconds` from now.

    >>> seat = Seat().granted(9.0)
    >>> seat.step.value, seat.wait_seconds
    ('renew', 3.0)
    >>> seat.unknown().step.value
    'register'
    """

    step: Step = Step.REGISTER
    wait_seconds: float = 0.0
    failures: int = 0
    lease_seconds: float = 0.0

    def granted(self, lease_seconds: float) -> Seat:
        """The coordinator has us: renew at a third of the lease, so that two calls may be lost."""
        return Seat(Step.RENEW, lease_seconds / 3, 0, lease_seconds)

    def unknown(self) -> Seat:
        """The coordinator has forgotten us: register at once."""
        return Seat(Step.REGISTER)

    def failed(self, jitter: float) -> Seat:
        """The call failed. Wait twice as long each time, between half of that and all of it by
        `jitter` (0 to 1), so that a fleet doesn't come back in step.

        A member keeps trying to renew until its lease must have run out, and never waits longer
        than a third of it.
        """
        longest = min(_LONGEST_BACKOFF_SECONDS, self.lease_seconds / 3 or _LONGEST_BACKOFF_SECONDS)
        wait = min(_FIRST_BACKOFF_SECONDS * 2 ** min(self.failures, 16), longest)
        return Seat(self.step, wait * (0.5 + jitter / 2), self.failures + 1, self.lease_seconds)

    @property
    def is_member(self) -> bool:
        """Whether the coordinator has us, as far as we can know: its lease outlives two lost
        calls.
        """
        return self.step is Step.RENEW and self.failures < 3


class Coordinator(Protocol):
    """A coordinator as a worker sees it."""

    def send(self, message: Message, seconds: float) -> Lease | None:
        """Send, and return the lease if the answer is one. Raises `FloebergError`."""
        ...

    def close(self) -> None: ...


class FlightCoordinator:
    """A coordinator behind a Flight URI. Safe to use from several threads."""

    def __init__(
        self,
        uri: str,
        keyring: Keyring,
        tls: ClientTls = NO_TLS,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._keyring = keyring
        self._now_ms = now_ms
        self._guard = ReplayGuard()
        self._client = fl.FlightClient(
            uri, generic_options=list(DIAL_AGAIN_SOON), **tls.arguments()
        )

    def send(self, message: Message, seconds: float) -> Lease | None:
        match message:
            case RegisterWorker():
                name = REGISTER_WORKER
            case RenewWorker():
                name = RENEW_WORKER
            case LeaveWorker():
                name = LEAVE_WORKER
        results = self._call(name, message, seconds)
        if isinstance(message, LeaveWorker) or not results:
            return None
        return parse_body(Lease, results[0], name)

    def lend(self, message: AskCredentials, seconds: float) -> LentCredentials:
        """Ask for credentials, and return them. Raises `FloebergError`, and `Unauthenticated` for
        an answer that is to another question or not of this fleet."""
        raw = next(iter(self._call(LEND_CREDENTIALS, message, seconds)), b"")
        lent = open_registration(
            LentCredentials, raw, self._keyring, self._guard, now_ms=self._now_ms()
        )
        if lent.question != message.question:
            raise Unauthenticated("the coordinator answered another question than it was asked")
        return lent

    def _call(self, name: str, message: Message | AskCredentials, seconds: float) -> list[bytes]:
        body = seal_registration(message, self._keyring, now_ms=self._now_ms())
        try:
            results = list(
                self._client.do_action(fl.Action(name, body), fl.FlightCallOptions(timeout=seconds))
            )
        except (fl.FlightError, OSError, ValueError, KeyError, NotImplementedError) as exc:
            raise from_flight(exc) from exc
        return [result.body.to_pybytes() for result in results]

    def close(self) -> None:
        self._client.close()


class Membership:
    """Keeps this worker registered with every coordinator, until it leaves.

    `load` is asked for at each renewal; `on_over` is told of queries that have all they may.
    `start` once, `leave` once.
    """

    def __init__(
        self,
        introduction: RegisterWorker,
        coordinators: Sequence[tuple[str, Callable[[], Coordinator]]],
        load: Callable[[], WorkerLoad],
        jitter: Callable[[], float] = random.random,
        on_over: Callable[[Sequence[str]], None] = lambda queries: None,
    ) -> None:
        self._introduction = introduction
        self._load = load
        self._jitter = jitter
        self._on_over = on_over
        self._draining = False
        self._leaving = False
        self._seats = {uri: Seat() for uri, _ in coordinators}
        self._wake = {uri: threading.Event() for uri, _ in coordinators}
        self._threads = [
            threading.Thread(
                target=self._stay, args=(uri, connect), name=f"floeberg-member-{n}", daemon=True
            )
            for n, (uri, connect) in enumerate(coordinators)
        ]

    @property
    def seats(self) -> dict[str, bool]:
        """Return for each coordinator whether it has this worker now."""
        return {uri: seat.is_member for uri, seat in self._seats.items()}

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def drain(self) -> None:
        """Tell the coordinators to send nobody here any more."""
        self._draining = True
        for wake in self._wake.values():
            wake.set()

    def tell(self) -> None:
        """Renew soon, since there is news of the load; some times a second at most."""
        for wake in self._wake.values():
            wake.set()

    def leave(self) -> None:
        """Say goodbye to every coordinator, and wait until that is done or has failed."""
        self._leaving = True
        for wake in self._wake.values():
            wake.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_CALL_SECONDS + 2 * _GOODBYE_SECONDS)

    def _stay(self, uri: str, connect: Callable[[], Coordinator]) -> None:
        """Run one coordinator's thread."""
        seat, wake = Seat(), self._wake[uri]
        coordinator = connect()
        try:
            while True:
                self._await_turn(seat, wake)
                if self._leaving:
                    break
                seat = self._seats[uri] = self._take_step(uri, coordinator, seat)
            if seat.step is Step.RENEW:
                goodbye = LeaveWorker(worker_id=self._introduction.worker_id)
                try:
                    coordinator.send(goodbye, _GOODBYE_SECONDS)
                except FloebergError as error:
                    logger.info(
                        "could not say goodbye", extra={"coordinator": uri, "error": str(error)}
                    )
        finally:
            coordinator.close()

    def _await_turn(self, seat: Seat, wake: threading.Event) -> None:
        is_woken = wake.wait(seat.wait_seconds)
        wake.clear()
        if is_woken and not (self._leaving or self._draining):
            # news are no reason to call a coordinator earlier that did not answer
            is_member = seat.step is Step.RENEW and not seat.failures
            longest = _NEWS_SECONDS if is_member else seat.wait_seconds
            until = time.monotonic() + min(longest, seat.wait_seconds)
            # more news may come meanwhile, and go with these
            while not (self._leaving or self._draining) and (left := until - time.monotonic()) > 0:
                wake.wait(left)
                wake.clear()

    def _take_step(self, uri: str, coordinator: Coordinator, seat: Seat) -> Seat:
        message: Message
        if seat.step is Step.REGISTER:
            if self._draining:
                return Seat(wait_seconds=_LONGEST_BACKOFF_SECONDS)  # nothing to join for
            message = self._introduction
        else:
            message = RenewWorker(
                worker_id=self._introduction.worker_id,
                state="draining" if self._draining else "ready",
                load=self._load(),
            )
        try:
            lease = coordinator.send(message, _CALL_SECONDS)
        except FloebergError as error:
            if seat.failures == 0 or not isinstance(error, Unavailable):
                is_silent = isinstance(error, Unavailable)
                logger.warning(
                    "coordinator did not answer" if is_silent else "coordinator refused",
                    extra={"coordinator": uri, "code": error.code, "error": str(error)},
                )
            return seat.failed(self._jitter())
        if lease is None or not lease.known:
            logger.info("coordinator asks to register again", extra={"coordinator": uri})
            return seat.unknown()
        if lease.over:
            self._on_over(lease.over)
        if seat.step is Step.REGISTER:
            logger.info(
                "registered", extra={"coordinator": uri, "lease_seconds": lease.lease_seconds}
            )
        return seat.granted(lease.lease_seconds)
