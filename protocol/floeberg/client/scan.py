"""A scan on a fleet: planned by the coordinator, read from the workers in parallel."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.client.calls import ask, ask_coordinator
from floeberg.client.connection import Connection
from floeberg.client.hedging import Hedges, Hedging
from floeberg.client.streams import Progress, no_progress, read_endpoint
from floeberg.process.ahead import read_as_they_come, read_in_order
from floeberg.process.frames import to_pandas, to_polars
from floeberg.process.placed_streams import OpenStreams
from floeberg.process.retries import RetryPolicy, scan_budget
from floeberg.protocol.actions import COUNT, EXPLAIN, FILES, PLAN, Explanation, PlanPage
from floeberg.protocol.commands import ScanCommand
from floeberg.protocol.errors import InternalError
from floeberg.protocol.requests import RequestContext, current_request, new_request

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_STREAMS_AT_ONCE = 8


@dataclass(frozen=True)
class RemoteScan:
    """One scan. Nothing is asked of the server until a method that reads is called, and each call
    plans anew.

    Rows come in no particular order over endpoints, unless the scan is `ordered`: then in plan
    order.
    """

    connection: Connection = field(repr=False)
    command: ScanCommand
    policy: RetryPolicy = field(default_factory=RetryPolicy, repr=False)
    on_progress: Callable[[Progress], None] = field(default=no_progress, repr=False)
    hedging: Hedging | None = None
    """When a stream that is late is read elsewhere as well; never, where it is None."""

    def planned(self) -> PlannedScan:
        """Return the scan as the coordinator plans it now: a snapshot that later commits do not
        change."""
        descriptor = fl.FlightDescriptor.for_command(self.command.to_json())
        request = current_request() or new_request()
        info = ask_coordinator(
            self.connection,
            "GetFlightInfo",
            lambda client, options: client.get_flight_info(descriptor, options),
            request,
            self.policy,
        )
        return PlannedScan(self, info, request)

    def schema(self) -> pa.Schema:
        """Return the schema of the rows."""
        descriptor = fl.FlightDescriptor.for_command(self.command.to_json())
        result: Any = ask_coordinator(
            self.connection,
            "GetSchema",
            lambda client, options: client.get_schema(descriptor, options),
            current_request() or new_request(),
            self.policy,
        )
        # a SchemaResult, whatever the stubs say
        schema: pa.Schema = result.schema
        return schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream that holds a bounded window; DuckDB, Polars and others read
        it as it is. The scan is planned before this returns."""
        plan = self.planned()
        return pa.RecordBatchReader.from_batches(plan.info.schema, plan.batches())

    def to_batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Return the rows batch by batch, as they arrive. The scan is planned before this
        returns."""
        return self.planned().batches()

    def to_arrow(self) -> pa.Table:
        """Return all rows as one table."""
        plan = self.planned()
        return pa.Table.from_batches(plan.batches(), schema=plan.info.schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all rows as a pandas DataFrame (extra `pandas`); `options` are those of
        `pyarrow.Table.to_pandas`."""
        return to_pandas(self.to_arrow, options)

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a Polars DataFrame (extra `polars`)."""
        return to_polars(self.to_arrow)

    def count(self) -> int:
        """Return how many rows the scan has: from metadata where that is exact, else by reading no
        column of them."""
        (counted,) = ask(self.connection, COUNT, self.command.to_json(), self.policy)
        if counted.count is not None:
            return counted.count
        narrow = replace(self, command=self.command.model_copy(update={"select": ()}))
        return sum(batch.num_rows for batch in narrow.to_batches())

    def plan(self) -> list[PlanPage]:
        """Return the scan's tasks, in pages, in the shape of the REST spec's FileScanTask."""
        return ask(self.connection, PLAN, self.command.to_json(), self.policy)

    def explain(self) -> Explanation:
        """Return what planning the scan does: what it looks at and rules out, and by what; deletes,
        what is left of the filter, endpoints, and the time of each step."""
        (explanation,) = ask(self.connection, EXPLAIN, self.command.to_json(), self.policy)
        return explanation

    def files(self) -> list[PlanPage]:
        """Return the data files that the scan reads: its plan with one task a file."""
        return ask(self.connection, FILES, self.command.to_json(), self.policy)


@dataclass(frozen=True)
class PlannedScan:
    """A scan with its plan: `info` has the schema, the endpoints with tickets and locations, and
    totals (-1 unknown). `request` is what servers know it by."""

    scan: RemoteScan
    info: fl.FlightInfo
    request: RequestContext = field(default_factory=new_request)

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows, reading several endpoints at once and resuming those that break.

        Closing the generator ends the streams. Raises `InternalError` when, at the end, not as many
        rows came as the plan has counted.
        """
        scan, info = self.scan, self.info
        streams = OpenStreams()
        budget = scan_budget(scan.connection.budget)
        hedges = Hedges(scan.hedging, len(info.endpoints)) if scan.hedging else None

        def read(endpoint: fl.FlightEndpoint) -> Iterator[pa.RecordBatch]:
            return read_endpoint(
                endpoint,
                info.schema,
                scan.connection,
                scan.policy,
                scan.on_progress,
                streams,
                self.request,
                budget,
                hedges,
            )

        read_all = read_in_order if scan.command.ordered else read_as_they_come
        arriving = read_all(info.endpoints, read, in_flight=_STREAMS_AT_ONCE, on_stop=streams.stop)
        rows = 0
        with closing(arriving):
            for batch in _first_rows(arriving, scan.command.limit):
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
