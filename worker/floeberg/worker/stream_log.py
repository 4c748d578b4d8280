"""What a worker's streams are doing, and what became of the last ones."""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Literal

from floeberg.protocol.errors import Cancelled, FloebergError, InternalError
from floeberg.protocol.plans import START, ResumePlace
from floeberg.protocol.registration import MAX_REPORTS, StreamReport
from floeberg.protocol.sql_tickets import SqlTicket
from floeberg.protocol.status import StreamEntry
from floeberg.protocol.tickets import OpenTicket, Origin

_REMEMBERED = 100
# coordinators ask three times in a lease, of ten seconds by default
_REPORTED_SECONDS = 60.0

Outcome = Literal["done", "failed", "cancelled"]


class StreamRecord:
    """One stream. Its own thread tells how far it is; any thread may look at it."""

    def __init__(
        self,
        origin: Origin,
        table: str,
        principal: str | None,
        tasks: int,
        resume: ResumePlace,
        began_ms: int,
        now_seconds: Callable[[], float],
        max_rows: int | None = None,
    ) -> None:
        self.max_rows = max_rows
        self.origin = origin
        self.stream_id = secrets.token_hex(8)
        self.table = table
        self.principal = principal
        self.tasks = tasks
        self.rows = 0
        self.bytes = 0
        self.outcome: Outcome | None = None
        self.code: str | None = None
        self._resume = self._place = resume
        self._offered = 0, 0
        self._began_ms = began_ms
        self._now_seconds = now_seconds
        self._began = now_seconds()
        self._waits_since: float | None = None
        self._ended: float | None = None

    def offer(self, place: ResumePlace, rows: int, size_bytes: int) -> None:
        """A batch is handed over to be sent; after it the stream is at `place`."""
        self._place = place
        self._offered = rows, size_bytes
        self._waits_since = self._now_seconds()

    def taken(self) -> None:
        """The batch that was offered has been taken."""
        rows, size_bytes = self._offered
        self.rows += rows
        self.bytes += size_bytes
        self._waits_since = None

    def end(self, outcome: Outcome, code: str | None) -> None:
        self.outcome, self.code = outcome, code
        self._ended = self._now_seconds()

    @property
    def task(self) -> int:
        """The task that it is at."""
        return self._place.task

    @property
    def seconds(self) -> float:
        return (self._now_seconds() if self._ended is None else self._ended) - self._began

    def had_ended(self, reading: float) -> bool:
        """Say whether it had ended at a reading of the clock."""
        return self._ended is not None and self._ended < reading

    def report(self) -> StreamReport | None:
        """Return what coordinators are told; None of a ticket that doesn't say what it is of."""
        if self.origin.query_id is None:
            return None
        task = self.tasks if self.outcome == "done" else self._place.task
        return StreamReport(
            query_id=self.origin.query_id,
            stream_id=self.stream_id,
            tasks=task - self._resume.task,
            rows=self.rows,
            bytes=self.bytes,
            outcome=self.outcome,
            max_rows=self.max_rows,
            principal=self.principal,
        )

    def entry(self) -> StreamEntry:
        waits_since = None if self._ended is not None else self._waits_since
        seconds = self.seconds
        return StreamEntry(
            request_id=self.origin.request_id,
            table=self.table,
            principal=self.principal,
            began_ms=self._began_ms,
            seconds=seconds,
            tasks=self.tasks,
            # a place may be the one after a task's last row, or after the last task
            task=min(self._place.task + 1, self.tasks),
            rows=self.rows,
            bytes=self.bytes,
            rows_per_second=self.rows / max(seconds, 1e-3),
            bytes_per_second=self.bytes / max(seconds, 1e-3),
            waits_seconds=0.0 if waits_since is None else self._now_seconds() - waits_since,
            outcome=self.outcome,
            code=self.code,
        )


class StreamLog:
    """The streams of one worker. Safe to use from several threads."""

    def __init__(
        self,
        *,
        now_seconds: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._now_seconds = now_seconds
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._running: dict[int, StreamRecord] = {}
        self._recent: deque[StreamRecord] = deque(maxlen=_REMEMBERED)
        self._ended: dict[str, int] = {}
        self._rows = self._bytes = 0

    def record(self, ticket: OpenTicket | SqlTicket) -> StreamRecord:
        """Return the record of a stream, by the ticket that it redeems, that begins now.

        The tasks of a statement are the endpoints of its inputs.
        """
        if isinstance(ticket, SqlTicket):
            table, resume = "SQL", START
            tasks = sum(len(one.endpoints) for one in ticket.inputs)
        else:
            # a ticket of an earlier version doesn't have the name
            table, resume = ticket.plan.metadata.location or "", ticket.resume
            tasks = len(ticket.plan.tasks)
        return StreamRecord(
            ticket.origin,
            ticket.origin.table or table,
            ticket.principal,
            tasks,
            resume,
            self._now_ms(),
            self._now_seconds,
            ticket.limits.rows,
        )

    @contextmanager
    def follow(self, record: StreamRecord) -> Iterator[None]:
        """Let a stream run within the block; how that ends is its outcome."""
        with self._lock:
            self._running[id(record)] = record
        outcome: Outcome = "done"
        code: str | None = None
        try:
            yield
        except (Cancelled, GeneratorExit):
            outcome, code = "cancelled", Cancelled.code
            raise
        except BaseException as exc:
            outcome = "failed"
            code = exc.code if isinstance(exc, FloebergError) else InternalError.code
            raise
        finally:
            record.end(outcome, code)
            with self._lock:
                del self._running[id(record)]
                self._recent.appendleft(record)
                self._count(outcome)
                self._rows += record.rows
                self._bytes += record.bytes

    def refused(self) -> None:
        """Count a stream that was refused at the start."""
        with self._lock:
            self._count("refused")

    def _count(self, outcome: str) -> None:
        self._ended[outcome] = self._ended.get(outcome, 0) + 1

    def running(self) -> tuple[StreamEntry, ...]:
        """Return the streams under way, the oldest first."""
        with self._lock:
            records = tuple(self._running.values())
        return tuple(record.entry() for record in records)

    def recent(self) -> tuple[StreamEntry, ...]:
        """Return the last streams that ended, the newest first."""
        with self._lock:
            records = tuple(self._recent)
        return tuple(record.entry() for record in records)

    def reports(self) -> tuple[StreamReport, ...]:
        """Return what coordinators are told: of streams that run or ended lately, the last ones
        where they are too many.
        """
        horizon = self._now_seconds() - _REPORTED_SECONDS
        with self._lock:
            records = (*reversed(self._running.values()), *self._recent)
        found = (record.report() for record in records if not record.had_ended(horizon))
        return tuple(islice((report for report in found if report is not None), MAX_REPORTS))

    def ended(self) -> dict[str, int]:
        """Return how many streams ended since the start, by outcome."""
        with self._lock:
            return dict(self._ended)

    def sent(self) -> tuple[int, int]:
        """Return how many rows and bytes were sent since the start."""
        with self._lock:
            running = tuple(self._running.values())
            rows, size_bytes = self._rows, self._bytes
        return (
            rows + sum(record.rows for record in running),
            size_bytes + sum(record.bytes for record in running),
        )
