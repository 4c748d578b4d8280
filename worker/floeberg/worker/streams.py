"""Redeem a ticket: a stream of batches, each with the place after it, within the worker's budget.

Knows nothing of Flight. Reading, storage and the clock are handed in.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from floeberg.process.auth import Principal, check_redeemer
from floeberg.process.background import Background
from floeberg.process.storage.abandonable import AbandonableStorage
from floeberg.process.storage.renewals import CredentialSource
from floeberg.process.storage.renewing import RenewingStorage
from floeberg.process.tracing import begin_span
from floeberg.protocol.errors import Cancelled, FloebergError, ServerUnavailable, UnsupportedSql
from floeberg.protocol.requests import RequestContext, adopt, current_request, new_request_id
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.sql_tickets import SqlTicket, is_sql_ticket, open_sql_ticket
from floeberg.protocol.storage import Storage, StorageFactory
from floeberg.protocol.tickets import OpenTicket, Origin, ReadPlan, ResumePlace, open_ticket
from floeberg.worker.budget import Admission, Budget
from floeberg.worker.limits import QueryLimits
from floeberg.worker.metrics import WorkerMetrics
from floeberg.worker.placed import Placed
from floeberg.worker.query_rows import QueryRows
from floeberg.worker.sql.engine import SqlEngine
from floeberg.worker.stream_log import StreamLog, StreamRecord
from floeberg.worker.work import Scan, Statement, Work

logger = logging.getLogger(__name__)

T = TypeVar("T")

# a store that hangs holds the threads of streams that were left, and nobody waits for one of those
_REQUESTS_AT_ONCE = 512


class ReadTasks(Protocol):
    """Reads a plan from a place on: `floeberg.worker.reading.to_batches_for_tasks`."""

    def __call__(
        self, plan: ReadPlan, storage: Storage, *, resume: ResumePlace
    ) -> Iterator[Placed]: ...


@dataclass(frozen=True, slots=True)
class Stream:
    """What a ticket is worth: batches of exactly `schema`, each with its encoded place, or None for
    a statement's, which have none.

    Whoever takes it runs `batches` to its end or closes it; an error in the middle comes as a
    `FloebergError` from the iterator.
    """

    schema: pa.Schema
    batches: Generator[tuple[pa.RecordBatch, bytes | None], None, None]


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
        sql: SqlEngine | None = None,
        tell: Callable[[], None] = lambda: None,
        credentials: Callable[[ReadPlan], CredentialSource | None] = lambda plan: None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`sql` runs statements. `tell` is called when a stream begins or ends that coordinators
        count."""
        self._keyring = keyring
        self._budget = budget
        self._metrics = metrics
        self._read = read
        self._open_storage = open_storage
        self._log = log
        self._sql = sql
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
            ticket = self._open(raw)
            adopt(_request_of(ticket.origin))
            check_redeemer(ticket, caller)
            # first, as a statement that waits for its turn is no stream yet
            work = self._work(ticket, caller, is_cancelled)
            try:
                admission = self._budget.admit()
            except FloebergError:
                work.release()
                raise
        except FloebergError as error:
            logger.info("stream refused", extra={"code": error.code})
            self._metrics.streams_ended.labels("refused").inc()
            self._log.refused()
            raise
        batches = self._batches(ticket, work, admission, is_cancelled, began_ns)
        # A generator that is dropped before its first batch never comes to its `finally`.
        for release in (admission.release, work.release):
            weakref.finalize(batches, release).atexit = False
        return Stream(work.schema, batches)

    def _open(self, raw: bytes) -> OpenTicket | SqlTicket:
        now_ms = self._now_ms()
        if is_sql_ticket(raw):
            return open_sql_ticket(raw, self._keyring, now_ms=now_ms)
        return open_ticket(raw, self._keyring, now_ms=now_ms)

    def _work(
        self,
        ticket: OpenTicket | SqlTicket,
        caller: Principal | None,
        is_cancelled: Callable[[], bool],
    ) -> Work:
        if isinstance(ticket, OpenTicket):
            return Scan(ticket, self._read_scan)
        if self._sql is None:
            raise UnsupportedSql("this worker runs no SQL")

        query = ticket.origin.query_id or ""
        limits = QueryLimits(ticket.limits, query, self._query_rows, self._now_ms)

        def check() -> None:
            if is_cancelled():
                raise Cancelled("the client cancelled the call")
            if self._draining.is_set():
                raise ServerUnavailable("the worker is stopping; try the endpoint's next location")
            limits.check()

        return Statement(ticket, caller, self._now_ms(), self._sql, self._read_input, check)

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
        ticket: OpenTicket | SqlTicket,
        work: Work,
        admission: Admission,
        is_cancelled: Callable[[], bool],
        began_ns: int,
    ) -> Generator[tuple[pa.RecordBatch, bytes | None], None, None]:
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

        record = self._log.record(ticket)
        query = ticket.origin.query_id or record.stream_id
        limits = QueryLimits(ticket.limits, query, self._query_rows, self._now_ms)
        request = current_request()
        stream = begin_span(
            "DoGet",
            {
                "request_id": ticket.origin.request_id,
                "table": ticket.origin.table,
                "tasks": record.tasks,
            },
            is_call=True,
            traceparent=None if request is None else request.traceparent,
            began_ns=began_ns,
        )
        stream.event("ticket opened")
        task = record.task
        try:
            with self._log.follow(record), closing(work.batches(check)) as batches:
                if ticket.limits.is_counted:
                    self._tell_coordinators()
                for batch, place, metadata in batches:
                    check()
                    rows, size = batch.num_rows, batch.nbytes
                    limits.take(rows)
                    admission.has_begun()
                    if place.task != task:
                        stream.event("task read", task=task)
                        task = place.task
                    record.offer(place, rows, size)
                    yield batch, metadata
                    record.taken()
                    self._metrics.rows.inc(rows)
                    self._metrics.bytes.inc(size)
        finally:
            with checking:
                ended = True
            work.release()
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

    def _read_scan(
        self, ticket: OpenTicket, resume: ResumePlace, check: Callable[[], None]
    ) -> Iterator[Placed]:
        """Yield the rows of a scan, from a place on, until `check` raises."""

        def ask(request: Callable[[], T], /) -> T:
            return self._requests.ask(request, check)

        plan = ticket.plan
        storage = AbandonableStorage(self._storage(plan), ask, check)
        yield from self._read(plan, storage, resume=resume)

    def _read_input(
        self, ticket: OpenTicket, resume: ResumePlace, check: Callable[[], None]
    ) -> Iterator[Placed]:
        """Yield the rows of a scan within a statement, which has limits of its own."""
        query = ticket.origin.query_id or new_request_id()
        limits = QueryLimits(ticket.limits, query, self._query_rows, self._now_ms)

        def check_both() -> None:
            check()
            limits.check()

        for placed in self._read_scan(ticket, resume, check_both):
            limits.take(placed.batch.num_rows)
            yield placed

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


def _request_of(origin: Origin) -> RequestContext:
    """Return what a ticket is redeemed for. The call's own trace, where it has one, is nearer than
    the plan's.
    """
    request = current_request()
    own_trace = None if request is None else request.traceparent
    return RequestContext(origin.request_id or new_request_id(), own_trace or origin.traceparent)
