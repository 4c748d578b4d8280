"""What a ticket asks of a worker: to read tasks, or to run a statement."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Protocol, TypeAlias

import pyarrow as pa

from floeberg.process.auth import Principal
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.plans import ResumePlace
from floeberg.protocol.requests import current_request, new_request
from floeberg.protocol.sql_tickets import SqlTicket
from floeberg.protocol.tickets import OpenTicket, encode_place
from floeberg.worker.placed import Placed
from floeberg.worker.sql.engine import SqlCall, SqlEngine

Check: TypeAlias = Callable[[], None]
"""Raises when nobody wants the rows any more."""

ReadScan: TypeAlias = Callable[[OpenTicket, ResumePlace, Check], Iterator[Placed]]

Sent: TypeAlias = tuple[pa.RecordBatch, ResumePlace, bytes | None]
"""A batch, how far the ticket is done after it, and what is sent with it."""


class Work(Protocol):
    """Is done once, or `release`d without."""

    @property
    def schema(self) -> pa.Schema: ...
    def batches(self, check: Check) -> Generator[Sent, None, None]: ...
    def release(self) -> None: ...


class Scan:
    """Reads the tasks of a ticket."""

    def __init__(self, ticket: OpenTicket, read: ReadScan) -> None:
        self.schema = arrow_schema(ticket.plan.projection)
        self._ticket = ticket
        self._read = read

    def batches(self, check: Check) -> Generator[Sent, None, None]:
        for placed in self._read(self._ticket, self._ticket.resume, check):
            yield placed.batch, placed.place, encode_place(placed.place)

    def release(self) -> None:
        """There is nothing to give back."""


class Statement:
    """Runs the statement of a ticket.

    Waits for its share of memory; raises `WorkerBusy`, and what `check` raises meanwhile. How far
    it is done is counted in endpoints of its inputs.
    """

    def __init__(
        self,
        ticket: SqlTicket,
        caller: Principal | None,
        began_ms: int,
        engine: SqlEngine,
        read: ReadScan,
        check: Check,
    ) -> None:
        self.schema = ticket.schema
        self._ticket = ticket
        self._caller = caller
        self._began_ms = began_ms
        self._engine = engine
        self._read = read
        self._share = engine.admit(ticket, check)
        self._endpoints_read = 0

    def batches(self, check: Check) -> Generator[Sent, None, None]:
        call = SqlCall(
            self._caller,
            current_request() or new_request(),
            self._began_ms,
            check,
            self._read,
            self._endpoint_is_read,
        )
        with closing(self._engine.run(self._ticket, self._share, call)) as batches:
            for batch in batches:
                yield batch, ResumePlace(self._endpoints_read, 0), None

    def release(self) -> None:
        self._share.release()

    def _endpoint_is_read(self) -> None:
        # an input that is read twice counts twice, and no more than there are; a few that are lost
        # between threads would do no harm
        most = sum(len(one.endpoints) for one in self._ticket.inputs)
        self._endpoints_read = min(self._endpoints_read + 1, most)
