"""A coordinator that looks for workers: at addresses it was given, and at those of names.

Does what `floeberg.server.fleet.search` says. Each look-up and each question has a thread for the
milliseconds that it takes; one that hangs holds up no other.
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol, assert_never
from urllib.parse import urlsplit

import pyarrow.flight as fl
from prometheus_client import CollectorRegistry, Counter

from floeberg.process.calling import DIAL_AGAIN_SOON, NO_TLS, ClientTls
from floeberg.process.service import location
from floeberg.protocol.errors import FloebergError, ServerUnavailable, Unavailable
from floeberg.protocol.flight_errors import as_floeberg_errors
from floeberg.protocol.registration import (
    ASK_WORKER,
    AskWorker,
    WorkerAnswer,
    is_location,
    seal_registration,
)
from floeberg.protocol.sealing import Keyring
from floeberg.server.fleet.search import (
    Answered,
    Ask,
    Forget,
    Gone,
    Passed,
    Resolve,
    Resolved,
    Search,
    SearchEvent,
    SearchInstruction,
    Silent,
    Target,
    Unresolved,
    Wanted,
    Warn,
)
from floeberg.server.flight.members import Members

logger = logging.getLogger(__name__)

_MOST_CALL_SECONDS = 5.0

Resolver = Callable[[str, int], Sequence[str]]
"""Returns the addresses that a host's name has now. Raises `OSError`."""


def system_addresses(host: str, port: int) -> Sequence[str]:
    """Return the addresses of `host` as this machine resolves it."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return sorted({str(address[0]) for *_, address in found})


def targets_of(name: str, resolve: Resolver) -> list[Target]:
    """Return what a Flight URI with the name of a host stands for: a target for each address.

    >>> targets_of("grpc+tls://workers:8815", lambda host, port: ["10.0.0.1", "fd00::1"])[1]
    Target(uri='grpc+tls://[fd00::1]:8815', server_name='workers')
    """
    parts = urlsplit(name)
    assert parts.hostname is not None
    assert parts.port is not None, "the configuration has looked"
    tls = parts.scheme == "grpc+tls"
    uris = (
        location(address, parts.port, tls=tls) for address in resolve(parts.hostname, parts.port)
    )
    # what is good on one interface alone ("fe80::1%eth0") is no address that clients could dial
    return [Target(uri, parts.hostname if tls else None) for uri in uris if is_location(uri)]


class Asker(Protocol):
    """A way to ask one target."""

    def ask(self, body: bytes, seconds: float) -> bytes:
        """Return the answer to a sealed question. Raises `FloebergError`."""
        ...

    def close(self) -> None: ...


class FlightAsker:
    """Asks over Flight."""

    def __init__(self, target: Target, tls: ClientTls = NO_TLS) -> None:
        self._client = fl.FlightClient(
            target.uri,
            generic_options=list(DIAL_AGAIN_SOON),
            override_hostname=target.server_name,
            **tls.arguments(),
        )

    def ask(self, body: bytes, seconds: float) -> bytes:
        action, options = fl.Action(ASK_WORKER, body), fl.FlightCallOptions(timeout=seconds)
        with as_floeberg_errors():
            results = list(self._client.do_action(action, options))
        if not results:
            raise ServerUnavailable("it gave no answer")
        return results[0].body.to_pybytes()

    def close(self) -> None:
        self._client.close()


class WorkerSearch:
    """Keeps asking workers, and tells `members` what they answer, from `start` until `close`.

    `workers` are Flight URIs of one worker each, `names` those whose hosts are names of many.
    Workers are told `own_location`, where it is known, to ask there for what they need.
    """

    def __init__(
        self,
        workers: Sequence[str],
        names: Sequence[str],
        members: Members,
        keyring: Keyring,
        lease_seconds: float,
        registry: CollectorRegistry,
        *,
        resolve: Resolver = system_addresses,
        connect: Callable[[Target], Asker] = FlightAsker,
        own_location: Callable[[], str | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._members = members
        self._keyring = keyring
        self._lease_seconds = lease_seconds
        self._resolve = resolve
        self._connect = connect
        self._own_location = own_location
        self._clock = clock
        self._now_ms = now_ms
        self._changed = threading.Condition()
        self._search = Search([Target(uri) for uri in workers], names, lease_seconds)
        self._askers: dict[Target, Asker] = {}
        self._over: dict[Target, tuple[str, ...]] = {}
        """What to tell each with its next question; a target is asked one question at a time."""
        self._is_closed = False
        self._is_needed = bool(workers or names)
        self._thread = threading.Thread(target=self._run, name="floeberg-search", daemon=True)
        self._asked = Counter(
            "floeberg_fleet_questions",
            "Workers that were asked who they are, by what came of it.",
            ["outcome"],
            registry=registry,
        )
        self._looked_up = Counter(
            "floeberg_fleet_lookups",
            "Names of workers that were looked up, by what came of it.",
            ["outcome"],
            registry=registry,
        )
        for outcome in ("answered", "silent", "refused"):
            self._asked.labels(outcome)
        for outcome in ("resolved", "failed"):
            self._looked_up.labels(outcome)

    @property
    def has_looked(self) -> bool:
        """Whether all that there was to look at in the beginning has been looked at."""
        with self._changed:
            return self._search.has_looked

    def start(self) -> None:
        if self._is_needed:
            self._thread.start()

    def ask_now(self) -> None:
        """Ask the workers that answer, but for those that are being asked."""
        self._handle(Wanted(self._clock()))

    def close(self) -> None:
        """Ask nobody any more; what is being asked ends by itself."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
            askers, self._askers = list(self._askers.values()), {}
        for asker in askers:
            asker.close()

    def _run(self) -> None:
        while True:
            self._handle(Passed(self._clock()))
            with self._changed:
                if self._is_closed:
                    return
                due_at = self._search.due_at
                if due_at is None:
                    self._changed.wait()
                elif due_at > (now := self._clock()):
                    self._changed.wait(due_at - now)

    def _handle(self, event: SearchEvent) -> None:
        with self._changed:
            if self._is_closed:
                return
            for instruction in self._search.handle(event):
                self._do(instruction)
            self._changed.notify()

    def _do(self, instruction: SearchInstruction) -> None:
        match instruction:
            case Resolve(name):
                self._begin(lambda: self._look_up(name))
            case Ask(target):
                self._begin(lambda: self._ask(target))
            case Gone(worker_id):
                self._members.gone(worker_id)
            case Forget(target):
                asker = self._askers.pop(target, None)
                self._over.pop(target, None)
                if asker is not None:
                    asker.close()
            case Warn(about, why):
                if isinstance(about, Target):
                    logger.warning("worker did not answer", extra={"uri": about.uri, "error": why})
                else:
                    logger.warning("name not resolved", extra={"uri": about, "error": why})
            case _:
                assert_never(instruction)

    def _begin(self, errand: Callable[[], None]) -> None:
        threading.Thread(target=errand, name="floeberg-asks", daemon=True).start()

    def _look_up(self, name: str) -> None:
        why = "an unexpected error"
        event: SearchEvent | None = None
        try:
            event = Resolved(self._clock(), name, targets_of(name, self._resolve))
        except (OSError, UnicodeError) as exc:  # text that no name can be is the latter
            why = str(exc)
        finally:
            self._looked_up.labels("resolved" if event else "failed").inc()
            self._handle(event or Unresolved(self._clock(), name, why))

    def _ask(self, target: Target) -> None:
        why, outcome = "an unexpected error", "refused"
        event: SearchEvent | None = None
        try:
            answer = self._answer_of(target)
            worker_id = answer.introduction.worker_id
            event = Answered(self._clock(), target, worker_id, answer.state == "draining")
            outcome = "answered"
        except FloebergError as error:
            why = f"[{error.code}] {error}"
            outcome = "silent" if isinstance(error, Unavailable) else "refused"
        finally:
            self._asked.labels(outcome).inc()
            self._handle(event or Silent(self._clock(), target, why))

    def _answer_of(self, target: Target) -> WorkerAnswer:
        question = secrets.token_hex(12)
        message = AskWorker(
            coordinator_id=self._members.coordinator_id,
            question=question,
            lease_seconds=self._lease_seconds,
            over=self._over.get(target, ()),
            location=self._own_location(),
        )
        body = seal_registration(message, self._keyring, now_ms=self._now_ms())
        seconds = min(_MOST_CALL_SECONDS, max(1.0, self._lease_seconds / 3))
        raw = self._asker(target).ask(body, seconds)
        answer, self._over[target] = self._members.answered(raw, question)
        return answer

    def _asker(self, target: Target) -> Asker:
        with self._changed:
            if self._is_closed:
                raise ServerUnavailable("the coordinator is stopping")
            asker = self._askers.get(target)
            if asker is None:
                asker = self._askers[target] = self._connect(target)
            return asker
