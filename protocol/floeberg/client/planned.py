"""Read all endpoints of one plan in parallel, holding a bounded window."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.client.connection import Connection
from floeberg.client.hedging import Hedges, Hedging
from floeberg.client.streams import OnProgress, no_progress, read_scan, read_statement
from floeberg.client.turns import Turns
from floeberg.process.ahead import read_as_they_come, read_in_order
from floeberg.process.placed_streams import OpenStreams
from floeberg.process.retries import RetryPolicy, scan_budget
from floeberg.protocol.errors import InternalError
from floeberg.protocol.requests import RequestContext
from floeberg.protocol.sql_tickets import is_sql_ticket

_STREAMS_AT_ONCE = 8


@dataclass(frozen=True)
class Reading:
    """How streams are read, whatever is in them."""

    connection: Connection = field(repr=False)
    policy: RetryPolicy = field(default_factory=RetryPolicy, repr=False)
    on_progress: OnProgress = field(default=no_progress, repr=False)
    hedging: Hedging | None = None
    """When a stream that is late is read elsewhere as well; never, where it is None. What a
    statement gives is never read twice."""


def read_planned(
    info: fl.FlightInfo,
    reading: Reading,
    request: RequestContext,
    *,
    ordered: bool,
    limit: int | None,
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of a plan, reading several endpoints at once and resuming those that break.

    Closing the generator ends the streams. Raises `InternalError` when, at the end, not as many
    rows came as the plan has counted.
    """
    streams = OpenStreams()
    budget = scan_budget(reading.connection.budget)
    hedges = Hedges(reading.hedging, len(info.endpoints)) if reading.hedging else None

    def read(endpoint: fl.FlightEndpoint) -> Iterator[pa.RecordBatch]:
        turns = Turns(endpoint, reading.connection, reading.policy, streams, request, budget)
        if is_sql_ticket(endpoint.ticket.ticket):
            return read_statement(turns, info.schema, reading.on_progress)
        return read_scan(turns, info.schema, reading.on_progress, hedges)

    read_all = read_in_order if ordered else read_as_they_come
    arriving = read_all(info.endpoints, read, in_flight=_STREAMS_AT_ONCE, on_stop=streams.stop)
    rows = 0
    with closing(arriving):
        for batch in _first_rows(arriving, limit):
            rows += batch.num_rows
            yield batch
    if info.total_records not in (-1, rows):
        raise InternalError(f"the plan has {info.total_records} rows, and {rows} came")


def _first_rows(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield at most `limit` rows. A worker that resumes a stream counts its rows anew, so the limit
    is kept here."""
    if limit is None:
        yield from batches
        return
    remaining = limit
    while remaining and (batch := next(batches, None)) is not None:
        kept = batch.slice(0, remaining)
        remaining -= kept.num_rows
        yield kept
