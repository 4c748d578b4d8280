"""A query over several tables, planned as one: its scans, and the tickets of what is computed.

Knows nothing of Flight, nor of SQL but that there are statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from floeberg.protocol.commands import TableName
from floeberg.protocol.errors import FloebergError, PlanTooLarge
from floeberg.protocol.requests import current_request
from floeberg.protocol.scans import ScanRequest, resolve
from floeberg.protocol.sql_tickets import (
    InputEndpoint,
    SqlInput,
    SqlSettings,
    SqlTicket,
    seal_sql_ticket,
)
from floeberg.protocol.status import QueryKind
from floeberg.protocol.tickets import NO_LIMITS, Origin
from floeberg.server.access import Caller
from floeberg.server.catalogs import LoadedTable
from floeberg.server.fleet import Worker
from floeberg.server.flight.at_once import Planned
from floeberg.server.flight.endpoints import Endpoint, PlannedScan, Workers, worker_locations
from floeberg.server.flight.query_limits import check_plans, statement_limits
from floeberg.server.flight.scans import IsCancelled, ScanAnswer, Scans, TableScan
from floeberg.server.planning import ManifestSource, PlanRun, Stopwatch

_ROOM_SECONDS = 10.0
"""So long a query waits for room: many clients of SQL try nothing again that a fleet refuses."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An endpoint of a scan, for workers to read, and those whose share of the scan it is, first
    choice first."""

    endpoint: InputEndpoint
    workers: tuple[Worker, ...]


@dataclass(frozen=True, slots=True)
class Computed:
    """A statement over inputs, whose rows have `schema`."""

    sql: str
    schema: pa.Schema
    inputs: tuple[SqlInput, ...]


class Queries:
    """Makes queries of a coordinator. Safe to use from several threads."""

    def __init__(self, scans: Scans) -> None:
        self._scans = scans

    @contextmanager
    def planning(self, tables: str, caller: Caller, is_cancelled: IsCancelled) -> Iterator[Query]:
        """Let a query be planned within the block that is to be run, among those that its caller
        may have at once.

        Raises `TooManyQueries`.
        """
        scans = self._scans
        with (
            scans.observed(),
            scans.run(tables, caller, is_cancelled, "sql") as run,
            scans.counted(run, caller) as counted,
        ):
            yield Query(scans, run, caller, counted)

    @contextmanager
    def looking(
        self, tables: str, caller: Caller, is_cancelled: IsCancelled, kind: QueryKind
    ) -> Iterator[Query]:
        """Let something be found out within the block of a query that is not run."""
        with self._scans.run(tables, caller, is_cancelled, kind) as run:
            yield Query(self._scans, run, caller, Planned())


class Query:
    """One query. Not safe to use from several threads.

    Whatever loads or plans raises `Cancelled` soon after nobody waits any more, and `PlanTimeout`.
    """

    def __init__(self, scans: Scans, run: PlanRun, caller: Caller, counted: Planned) -> None:
        self.caller = caller
        self.run = run
        self._scans = scans
        self._counted = counted
        self._watch = Stopwatch(enter=run.enter)
        self._began_ms = scans.now_ms()
        self._workers: Workers | None = None
        self._loaded: dict[TableName, LoadedTable] = {}
        self._bound: dict[tuple[int, str], TableScan] = {}
        self._tables: list[str] = []

    def is_cancelled(self) -> bool:
        """Say whether nobody waits for the query any more, or its time is over."""
        try:
            self.run.check()
        except FloebergError:
            return True
        return False

    # --- scans -----------------------------------------------------------------------------------

    def load(self, name: TableName) -> LoadedTable:
        """Return a table, the same whenever it is asked for. Raises `UnknownTable`."""
        table = self._loaded.get(name)
        if table is None:
            with self._watch.step("load the table"):
                table = self._scans.load(name.parts, self.caller.catalogs, self.run)
            self._loaded[name] = table
        return table

    def neighbours(self, catalog: str, identifier: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        """Return tables of a catalog whose names are like one that is none."""
        asked = self.caller.catalogs.get(catalog)
        return self.run.ask(lambda: asked.neighbours(identifier))

    def manifests(self, table: LoadedTable) -> ManifestSource:
        """Return what reads a table's manifests, as its plans do."""
        return self._scans.manifest_source(table, self.run)

    def scan(self, table: LoadedTable, request: ScanRequest) -> TableScan:
        """Return a scan of a table as the caller sees it, the same for the same request of what
        `load` gave. Raises what `resolve` does."""
        # by its text: to each other, 1, 1.0 and True are the same
        key = id(table), repr(request)
        found = self._bound.get(key)
        if found is None:
            with self._watch.step("bind names"):
                view = self.caller.view(table)
                scan = resolve(table.metadata, request, view=view)
                found = self._bound[key] = TableScan(table, scan, view is not None)
        return found

    def admit(self) -> Workers:
        """Return the workers for this query, as soon as there are some with room. Raises
        `NoWorkers` and `FleetBusy`."""
        if self._workers is None:
            self._workers = self._scans.endpoints.admit(self.run, room_seconds=_ROOM_SECONDS)
        return self._workers

    def plan(self, scans: Sequence[TableScan]) -> list[PlannedScan]:
        """Return the plans of all scans of the query; those that are the same have the same.
        Raises `LimitExceeded` and `PlanTooLarge`."""
        planned: list[PlannedScan] = []
        made: dict[int, PlannedScan] = {}
        for one in scans:
            if id(one) not in made:
                plan = self._scans.plan_resolved(one.table, one.scan, self.run)
                self._scans.endpoints.check_tasks(len(plan.tasks))
                made[id(one)] = PlannedScan(one.table, plan, one.is_restricted, self.run.query_id)
            planned.append(made[id(one)])
            check_plans(
                [p.plan for p in planned],
                self.caller.limits,
                is_restricted=any(p.is_restricted for p in planned),
            )
        self._tables = list(dict.fromkeys(p.table.name for p in planned))
        return planned

    def all_placed(self, planned: Sequence[PlannedScan]) -> list[list[Placed]]:
        """Return the endpoints of all scans of a statement; those of the same plan have the
        same."""
        made: dict[int, list[Placed]] = {}
        for one in planned:
            if id(one) not in made:
                made[id(one)] = self.placed(one, len(planned))
        return [made[id(one)] for one in planned]

    def placed(self, planned: PlannedScan, scans: int = 1) -> list[Placed]:
        """Return the endpoints of one of so many `scans`, for workers to read."""
        endpoints = self._scans.endpoints
        placements = endpoints.place(planned.plan, self.admit(), self._watch)
        sealed = endpoints.seal(
            planned,
            placements,
            self.caller.principal,
            self._watch,
            for_workers=True,
            max_info_bytes=endpoints.max_info_bytes // scans,
        )
        self._scans.count_tasks(len(planned.plan.tasks))
        return [
            Placed(InputEndpoint(one.ticket, one.locations), placement.workers)
            for one, placement in zip(sealed, placements, strict=True)
        ]

    # --- answers ---------------------------------------------------------------------------------

    def answer_scan(self, scan: TableScan) -> ScanAnswer:
        """Return the answer to a query that is one scan."""
        answer, self._counted.tasks = self._scans.answer_resolved(
            scan, self.admit(), self.caller, self.run, self._watch, self._began_ms
        )
        return answer

    def fragment(self, statement: Computed, workers: tuple[Worker, ...], timezone: str) -> Endpoint:
        """Return the endpoint of a statement over a share of a scan, for a client, at the workers
        that read that."""
        return self._endpoint(statement, workers, timezone)

    def part(
        self, statement: Computed, workers: tuple[Worker, ...], timezone: str
    ) -> InputEndpoint:
        """Return likewise an endpoint for another statement of the query to read."""
        ticket, _ = self._sealed(statement, timezone, is_part=True)
        return InputEndpoint(ticket, worker_locations(workers))

    def statement(self, statement: Computed, timezone: str) -> Endpoint:
        """Return the endpoint of a statement, at any worker."""
        workers = self._scans.endpoints.rank(self.admit(), self.run.query_id)
        return self._endpoint(statement, workers, timezone)

    def told(self, rows: Computed) -> Endpoint:
        """Return the endpoint of rows that an input has in itself, which any coordinator or worker
        gives."""
        ticket, expires_at_ms = self._sealed(rows, "UTC")
        return Endpoint(ticket, (), expires_at_ms)

    def answer(
        self, schema: pa.Schema, endpoints: Sequence[Endpoint], told: bytes, total_bytes: int = -1
    ) -> ScanAnswer:
        """Return the answer to a query of these endpoints, whose app_metadata is `told`."""
        self.run.endpoints = len(endpoints)
        return ScanAnswer(schema, tuple(endpoints), -1, total_bytes, False, told)

    def _endpoint(
        self, statement: Computed, workers: tuple[Worker, ...], timezone: str
    ) -> Endpoint:
        ticket, expires_at_ms = self._sealed(statement, timezone)
        # what workers count of a statement's stream
        self._counted.tasks += sum(len(one.endpoints) for one in statement.inputs)
        return Endpoint(ticket, self._scans.endpoints.named(workers), expires_at_ms)

    def _sealed(
        self, statement: Computed, timezone: str, *, is_part: bool = False
    ) -> tuple[bytes, int]:
        endpoints, principal = self._scans.endpoints, self.caller.principal
        request = current_request()
        tables = ", ".join(self._tables) or None
        origin = (
            Origin(self.run.query_id, table=tables)
            if request is None
            else Origin(self.run.query_id, request.request_id, tables, request.traceparent)
        )
        expires_at_ms = endpoints.expires_at_ms()
        # how many rows a part has is nothing to the caller
        limits = NO_LIMITS if is_part else statement_limits(self.caller.limits, self._began_ms)
        ticket = SqlTicket(
            statement.sql,
            statement.schema,
            statement.inputs,
            principal,
            expires_at_ms,
            SqlSettings(timezone, endpoints.batch_bytes),
            origin,
            endpoints.binds_to(principal),
            limits,
            is_part,
        )
        sealed = seal_sql_ticket(ticket, endpoints.keyring)
        if any(one.rows for one in statement.inputs) and len(sealed) > endpoints.max_info_bytes:
            raise PlanTooLarge(
                f"what the coordinator itself tells comes to {len(sealed)} bytes, and an answer has"
                f" at most {endpoints.max_info_bytes}",
                "ask for fewer columns",
            )
        return sealed, expires_at_ms
