"""Redeem a ticket: a stream of batches, each with the place after it, within the worker's budget.

Knows nothing of Flight. Reading, storage and the clock are handed in.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from floeberg.process.auth import Principal, check_redeemer
from floeberg.process.background import Background
from floeberg.process.storage.abandonable import AbandonableStorage
from floeberg.process.storage.renewals import CredentialSource
from floeberg.process.storage.renewing import RenewingStorage
from floeberg.process.tracing import begin_span
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.errors import Cancelled, FloebergError, LimitExceeded, ServerUnavailable
from floeberg.protocol.requests import RequestContext, adopt, current_request, new_request_id
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.storage import Storage, StorageFactory
from floeberg.protocol.tickets import (
    OpenTicket,
    Origin,
    ReadPlan,
    ResumePlace,
    encode_place,
    open_ticket,
)
from floeberg.worker.budget import Admission, Budget
from floeberg.worker.metrics import WorkerMetrics
from floeberg.worker.query_rows import QueryRows
from floeberg.worker.stream_log import StreamLog, StreamRecord

logger = logging.getLogger(__name__)

T = TypeVar("T")

# a store that hangs holds the threads of streams that were left, and nobody waits for one of those
_REQUESTS_AT_ONCE = 512


class Placed(Protocol):
    """A batch and the place to resume at after it."""

    @property
    def batch(self) -> pa.RecordBatch: ...
    @property
    def place(self) -> ResumePlace: ...


class ReadTasks(Protocol):
    """Reads a plan from a place on: `floeberg.worker.reading.to_batches_for_tasks`."""

    def __call__(
        self, plan: ReadPlan, storage: Storage, *, resume: ResumePlace
    ) -> Iterator[Placed]: ...


@dataclass(frozen=True, slots=True)
class Stream:
    """What a ticket is worth: batches of exactly `schema`, each with its encoded place.

    Whoever takes it runs `batches` to its end or closes it; an error in the middle comes as a
    `FloebergError` from the iterator.
    """

    schema: pa.Schema
    batches: Generator[tuple[pa.RecordBatch, bytes], None, None]


class Redeemer:
    """Turns tickets into streams. Safe to use from several threads.

    `credentials` gives fresh ones for a plan, where there are such.
    """

    def __init__(
        self,
        keyring: Keyring,
        budget: Budget,
        metrics: WorkerMetrics,
        read: ReadTasks,
        open_storage: StorageFactory,
        log: StreamLog,
        *,
        tell: Callable[[], None] = lambda: None,
        credentials: Callable[[ReadPlan], CredentialSource | None] = lambda plan: None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`tell` is called when a stream begins or ends that coordinators count."""
        self._keyring = keyring
        self._budget = budget
        self._metrics = metrics
        self._read = read
        self._open_storage = open_storage
        self._log = log
        self._tell_coordinators = tell
        self._credentials = credentials
        self._now_ms = now_ms
        self._requests = Background(_REQUESTS_AT_ONCE, "floeberg-request")
        self._query_rows = QueryRows()
        self._draining = threading.Event()
        self._cut = threading.Event()

    def redeem(
        self, raw: bytes, is_cancelled: Callable[[], bool], caller: Principal | None = None
    ) -> Stream:
        """Return the stream that the ticket `raw` stands for; nothing has been read when it
        returns.

        Raises `BadTicket` and `ExpiredTicket`, `Unauthenticated` and `NotPermitted` for a ticket
        that is bound to somebody other than `caller`, and, for the client to try elsewhere,
        `WorkerBusy` and `ServerUnavailable`.
        """
        began_ns = time.time_ns()
        try:
            if self._draining.is_set():
                raise ServerUnavailable("the worker is stopping; try the endpoint's next location")
            ticket = open_ticket(raw, self._keyring, now_ms=self._now_ms())
            adopt(_request_of(ticket.origin))
            check_redeemer(ticket, caller)
            admission = self._budget.admit()
        except FloebergError as error:
            logger.info("stream refused", extra={"code": error.code})
            self._metrics.streams_ended.labels("refused").inc()
            self._log.refused()
            raise
        batches = self._batches(ticket, admission, is_cancelled, began_ns)
        # A generator that is dropped before its first batch never comes to its `finally`.
        weakref.finalize(batches, admission.release).atexit = False
        return Stream(arrow_schema(ticket.plan.projection), batches)

    def stop_queries(self, query_ids: Sequence[str]) -> None:
        """End the streams of queries that have been given all they may, by all workers together."""
        self._query_rows.stop(query_ids)

    def drain(self) -> None:
        """Refuse new streams from now on."""
        self._draining.set()

    def cut(self) -> None:
        """End running streams at their next batch, with an error after which clients resume
        elsewhere.
        """
        self._cut.set()

    def _batches(
        self,
        ticket: OpenTicket,
        admission: Admission,
        is_cancelled: Callable[[], bool],
        began_ns: int,
    ) -> Generator[tuple[pa.RecordBatch, bytes], None, None]:
        plan = ticket.plan
        # Threads that fetch ahead check too, and may outlive the call, which is not to be asked
        # then.
        checking = threading.Lock()
        ended = False

        def check() -> None:
            with checking:
                if ended or is_cancelled():
                    raise Cancelled("the client cancelled the call")
            if self._cut.is_set():
                raise ServerUnavailable("the worker stopped in the middle of the stream")
            limits.check()

        def ask(request: Callable[[], T], /) -> T:
            return self._requests.ask(request, check)

        record = self._log.record(ticket)
        limits = _Limits(ticket, record, self._query_rows, self._now_ms)
        request = current_request()
        stream = begin_span(
            "DoGet",
            {
                "request_id": ticket.origin.request_id,
                "table": ticket.origin.table,
                "tasks": len(plan.tasks),
            },
            is_call=True,
            traceparent=None if request is None else request.traceparent,
            began_ns=began_ns,
        )
        stream.event("ticket opened")
        task = ticket.resume.task
        try:
            with self._log.follow(record):
                if ticket.limits.is_counted:
                    self._tell_coordinators()
                storage = AbandonableStorage(self._storage(plan), ask, check)
                for placed in self._read(plan, storage, resume=ticket.resume):
                    check()
                    rows, size = placed.batch.num_rows, placed.batch.nbytes
                    limits.take(rows)
                    admission.has_begun()
                    if placed.place.task != task:
                        stream.event("task read", task=task)
                        task = placed.place.task
                    record.offer(placed.place, rows, size)
                    yield placed.batch, encode_place(placed.place)
                    record.taken()
                    self._metrics.rows.inc(rows)
                    self._metrics.bytes.inc(size)
        finally:
            with checking:
                ended = True
            admission.release()
            failed = record.code if record.outcome == "failed" else None
            stream.end(failed, rows=record.rows, bytes=record.bytes, outcome=record.outcome or "")
            self._tell(record)
            if ticket.limits.is_counted:
                self._tell_coordinators()

    def _storage(self, plan: ReadPlan) -> Storage:
        source = self._credentials(plan)
        if source is None:
            return self._open_storage(plan.storage)
        return RenewingStorage(plan.storage, self._open_storage, source)

    def _tell(self, record: StreamRecord) -> None:
        """Count and log a stream that has ended."""
        self._metrics.streams_ended.labels(record.outcome).inc()
        self._metrics.stream_seconds.observe(record.seconds)
        logger.info(
            "stream ended",
            extra={
                "outcome": record.outcome,
                "code": record.code,
                "table": record.table,
                "principal": record.principal,
                "tasks": record.tasks,
                "rows": record.rows,
                "bytes": record.bytes,
                "seconds": round(record.seconds, 3),
            },
        )


class _Limits:
    """Holds one stream to what its ticket says that the query may take."""

    def __init__(
        self,
        ticket: OpenTicket,
        record: StreamRecord,
        query_rows: QueryRows,
        now_ms: Callable[[], int],
    ) -> None:
        self._limits = ticket.limits
        self._query = ticket.origin.query_id or record.stream_id
        self._query_rows = query_rows
        self._now_ms = now_ms

    def check(self) -> None:
        limits = self._limits
        if limits.until_ms is not None and self._now_ms() >= limits.until_ms:
            raise LimitExceeded("seconds", limits.seconds or 0, "the query has had its time")
        if limits.rows is not None and self._query_rows.is_stopped(self._query):
            raise self._too_many_rows(limits.rows)

    def take(self, rows: int) -> None:
        """Let `rows` more pass."""
        allowed = self._limits.rows
        if allowed is not None and self._query_rows.add(self._query, rows) > allowed:
            raise self._too_many_rows(allowed)

    def _too_many_rows(self, allowed: int) -> LimitExceeded:
        return LimitExceeded(
            "rows", allowed, "the query has been given all of its rows, and there are more"
        )


def _request_of(origin: Origin) -> RequestContext:
    """Return what a ticket is redeemed for. The call's own trace, where it has one, is nearer than
    the plan's.
    """
    request = current_request()
    own_trace = None if request is None else request.traceparent
    return RequestContext(origin.request_id or new_request_id(), own_trace or origin.traceparent)
