"""The fleet of a running coordinator: sealed messages in, leases out.

Holds the state machine of `floeberg.server.fleet` under a lock and reads the clock for it.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge

from floeberg.protocol.errors import Denied, NoWorkers, Unauthenticated
from floeberg.protocol.registration import (
    Lease,
    LeaveWorker,
    Message,
    RegisterWorker,
    RenewWorker,
    ReplayGuard,
    StreamReport,
    WorkerAnswer,
    open_registration,
)
from floeberg.protocol.sealing import Keyring
from floeberg.server.fleet import (
    AskToJoin,
    Change,
    Drain,
    Fleet,
    FleetEvent,
    Grant,
    Instruction,
    Join,
    Leave,
    Member,
    Renew,
    Tell,
    Tick,
    Worker,
    WorkerState,
)

logger = logging.getLogger(__name__)

_FIRST_SECONDS = 30.0


class Members:
    """The workers of this coordinator. Safe to use from several threads.

    `tls_only` refuses workers that would have clients send their tokens in clear text. `on_reports`
    is told what workers say of their streams, and returns which of the queries have all they may.
    """

    def __init__(
        self,
        keyring: Keyring,
        lease_seconds: float,
        registry: CollectorRegistry,
        *,
        tls_only: bool = False,
        on_reports: Callable[[Sequence[StreamReport]], tuple[str, ...]] = lambda reports: (),
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.coordinator_id = f"c-{secrets.token_hex(6)}"
        self._keyring = keyring
        self._lease_seconds = lease_seconds
        self._tls_only = tls_only
        self._on_reports = on_reports
        self._clock = clock
        self._now_ms = now_ms
        self._guard = ReplayGuard()
        self._lock = threading.Condition()
        self._fleet = Fleet(lease_seconds)
        # workers of a coordinator that was here before ask it again within a third of a lease
        self._first_until = clock() + min(lease_seconds / 2, _FIRST_SECONDS)
        self._has_met_one = False
        self._is_stopping = False
        self._changes = Counter(
            "floeberg_fleet_changes",
            "Workers that joined, returned, drained, left, expired or were replaced.",
            ["change"],
            registry=registry,
        )
        for change in Change:
            self._changes.labels(change.value)
        count = Gauge("floeberg_fleet_workers", "Workers, by state.", ["state"], registry=registry)
        for state in WorkerState:
            count.labels(state.value).set_function(partial(self._count, state))

    def register(self, raw: bytes) -> Lease:
        """Take a worker in. Raises `Unauthenticated` for what the fleet's keys have not sealed, and
        `Denied` for a clear-text worker where there is TLS.
        """
        worker = self._introduced(self._open(RegisterWorker, raw))
        return self._lease(self._handle(lambda at: [Join(at, worker)]))

    def renew(self, raw: bytes) -> Lease:
        """Prolong a lease; the answer says so where the worker must register again."""
        message = self._open(RenewWorker, raw)
        over = self._on_reports(message.load.reports)
        return self._lease(self._handle(lambda at: _renewal(at, message)), over)

    def leave(self, raw: bytes) -> None:
        """Let a worker go."""
        self.gone(self._open(LeaveWorker, raw).worker_id)

    def gone(self, worker_id: str) -> None:
        """Let a worker go that was asked, and has left."""
        self._handle(lambda at: [Leave(at, worker_id)])

    def answered(self, raw: bytes, question: str) -> tuple[WorkerAnswer, tuple[str, ...]]:
        """Take a worker in, or prolong its lease, by what it answered to `question`.

        Returns the answer, and which of the queries that it reports on have all they may. Raises as
        `register` does.
        """
        answer = self._open(WorkerAnswer, raw)
        if answer.question != question:
            raise Unauthenticated("the answer is to another question")
        worker = self._introduced(answer.introduction)
        renewal = RenewWorker(worker_id=worker.worker_id, state=answer.state, load=answer.load)
        if not self._lease(self._handle(lambda at: _renewal(at, renewal))).known:
            self._handle(lambda at: [Join(at, worker), *_renewal(at, renewal)])
        return answer, self._on_reports(answer.load.reports)

    def stop(self) -> None:
        """Wait for no worker any more: the coordinator is stopping."""
        with self._lock:
            self._is_stopping = True
            self._lock.notify_all()

    def refusal(self) -> NoWorkers:
        """Return the error for when no worker may be given tasks, which says why."""
        with self._lock:
            drain = [m for m in self._fleet.members() if m.state is WorkerState.DRAINING]
            return NoWorkers(len(drain), is_stopping=self._is_stopping)

    def awaits_first(self) -> bool:
        """Say whether no worker has come yet, and the coordinator is so young that some may be
        about to: those of one that was restarted do not know yet that it was."""
        with self._lock:
            if self._has_met_one or self._is_stopping:
                return False
            return self._clock() < self._first_until

    def wait_for_news(self, seconds: float) -> None:
        """Return when a worker has said something, or `seconds` have passed."""
        with self._lock:
            self._lock.wait(seconds)

    def ready(self) -> tuple[Worker, ...]:
        """Return the workers that may be given tasks now, by worker id."""
        with self._lock:
            told = self._fleet.handle(Tick(self._clock()))
            ready = self._fleet.serving()
        self._tell(told)
        return ready

    def with_room(self) -> tuple[tuple[Worker, ...], tuple[Worker, ...]]:
        """Return the workers that may be given tasks now, those that have room for a stream and
        those that said they have none, each by worker id.
        """
        ready = self.ready()
        with self._lock:
            full = self._fleet.full()
        return (
            tuple(w for w in ready if w.worker_id not in full),
            tuple(w for w in ready if w.worker_id in full),
        )

    def all(self) -> tuple[tuple[Member, float], ...]:
        """Return every member, and how many seconds ago it was heard of."""
        self.ready()
        with self._lock:
            now = self._clock()
            return tuple((m, now - m.seen_at) for m in self._fleet.members())

    def _open(self, kind: type[Message], raw: bytes) -> Message:
        return open_registration(kind, raw, self._keyring, self._guard, now_ms=self._now_ms())

    def _introduced(self, message: RegisterWorker) -> Worker:
        if self._tls_only and not message.location.startswith("grpc+tls://"):
            raise Denied(
                f"this coordinator serves TLS, and {message.location} is clear text: clients would"
                " send their tokens in clear; give the worker 'tls_cert' and 'tls_key'"
            )
        return Worker(
            message.worker_id,
            message.location,
            message.max_streams,
            message.max_bytes,
            message.zone,
            message.version,
            message.http_address,
        )

    def _handle(self, events: Callable[[float], Sequence[FleetEvent]]) -> list[Instruction]:
        with self._lock:
            at = self._clock()
            out = [told for event in events(at) for told in self._fleet.handle(event)]
            self._has_met_one = self._has_met_one or bool(self._fleet.members())
            self._lock.notify_all()
        self._tell(out)
        return out

    def _lease(self, out: list[Instruction], over: tuple[str, ...] = ()) -> Lease:
        known = any(isinstance(i, Grant) for i in out)
        return Lease(
            coordinator_id=self.coordinator_id,
            lease_seconds=self._lease_seconds,
            known=known,
            over=over,
        )

    def _tell(self, out: list[Instruction]) -> None:
        for instruction in out:
            match instruction:
                case Tell(change, worker):
                    self._changes.labels(change.value).inc()
                    serious = change in (Change.EXPIRED, Change.REPLACED)
                    logger.log(
                        logging.WARNING if serious else logging.INFO,
                        f"worker {change.value}",
                        extra={
                            "worker": worker.worker_id,
                            "location": worker.location,
                            "capacity": worker.capacity,
                            "zone": worker.zone,
                        },
                    )
                case Grant() | AskToJoin():
                    pass  # they are the answer to the worker

    def _count(self, state: WorkerState) -> int:
        self.ready()
        with self._lock:
            return sum(m.state is state for m in self._fleet.members())


def _renewal(at: float, message: RenewWorker) -> list[FleetEvent]:
    load = message.load
    renewal = Renew(
        at,
        message.worker_id,
        load.streams,
        load.bytes_in_flight,
        load.rows_sent,
        load.bytes_sent,
    )
    return [Drain(at, message.worker_id), renewal] if message.state == "draining" else [renewal]
