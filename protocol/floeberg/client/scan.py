"""A scan on a fleet: planned by the coordinator, read from the workers in parallel."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.client.calls import ask, ask_coordinator
from floeberg.client.connection import Connection
from floeberg.client.hedging import Hedging
from floeberg.client.planned import Reading, read_planned
from floeberg.client.rows import RemoteRows
from floeberg.client.streams import OnProgress, no_progress
from floeberg.process.retries import RetryPolicy
from floeberg.protocol.actions import COUNT, EXPLAIN, FILES, PLAN, Explanation, PlanPage
from floeberg.protocol.commands import ScanCommand
from floeberg.protocol.requests import RequestContext, current_request, new_request


@dataclass(frozen=True)
class RemoteScan(RemoteRows):
    """One scan. Nothing is asked of the server until a method that reads is called, and each call
    plans anew.

    Rows come in no particular order over endpoints, unless the scan is `ordered`: then in plan
    order.
    """

    connection: Connection = field(repr=False)
    command: ScanCommand
    policy: RetryPolicy = field(default_factory=RetryPolicy, repr=False)
    on_progress: OnProgress = field(default=no_progress, repr=False)
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
        scan = self.scan
        return read_planned(
            self.info,
            Reading(scan.connection, scan.policy, scan.on_progress, scan.hedging),
            self.request,
            ordered=scan.command.ordered,
            limit=scan.command.limit,
        )
