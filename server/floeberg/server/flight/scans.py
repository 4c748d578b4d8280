"""Answer a scan: plan it, place it on the workers, and seal what each endpoint reads.

Knows nothing of Flight.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import assert_never

import pyarrow as pa
from prometheus_client import CollectorRegistry, Counter, Histogram

from floeberg.protocol.actions import ExplainedEndpoint, Explanation
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.bodies import dump_json
from floeberg.protocol.commands import ScanCommand
from floeberg.protocol.errors import Cancelled, FleetBusy, NoWorkers, PlanTooLarge
from floeberg.protocol.requests import current_request
from floeberg.protocol.scans import ResolvedScan, resolve
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.status import QueryKind
from floeberg.protocol.storage import StorageFactory
from floeberg.protocol.tickets import Origin, ReadOptions, ReadPlan
from floeberg.protocol.types import Json
from floeberg.server.access import Caller
from floeberg.server.catalogs import Catalogs, LoadedTable
from floeberg.server.config import RedeemAt
from floeberg.server.fleet import Placement, Worker, place
from floeberg.server.flight.members import Members
from floeberg.server.flight.plan_runs import PlanRuns
from floeberg.server.flight.sealing import seal_tickets
from floeberg.server.planning import (
    CountResult,
    ManifestCache,
    Plan,
    PlanRun,
    Stopwatch,
    count,
    explain,
    plan_files,
)

logger = logging.getLogger(__name__)

IsCancelled = Callable[[], bool]
"""Tells whether nobody waits for the answer any more."""

REUSE_CONNECTION = "arrow-flight-reuse-connection://?"


def nobody_leaves() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ScanPolicy:
    """How scans are answered; see the keys of these names in `CoordinatorConfig`."""

    ticket_seconds: float = 3600.0
    redeem_at: RedeemAt = "workers"
    fallbacks: int = 2
    max_endpoints_per_worker: int = 4
    batch_bytes: int = 2 << 20
    max_info_bytes: int = 8 << 20
    max_tasks: int = 20_000_000
    bind_tickets: bool = False
    refuse_when_full: bool = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A sealed ticket and where to redeem it, in order; no location means where it came from."""

    ticket: bytes
    locations: tuple[str, ...]
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class ScanAnswer:
    """What a client needs to read a scan. `total_records` and `total_bytes` are -1 where unknown.

    `app_metadata` is JSON: the table, the snapshot, the number of tasks, what planning pruned.
    """

    schema: pa.Schema
    endpoints: tuple[Endpoint, ...]
    total_records: int
    total_bytes: int
    ordered: bool
    app_metadata: bytes


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """A plan of a table; where it `is_restricted`, the caller may not read all of that. `query_id`
    is what workers call it, where it is planned to be read."""

    table: LoadedTable
    plan: Plan
    is_restricted: bool = False
    query_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Workers:
    """The workers that may be given tasks: those with room for a stream, and those without."""

    free: tuple[Worker, ...]
    full: tuple[Worker, ...]

    def or_full(self) -> _Workers:
        """Return all of them as free where none is."""
        return self if self.free else _Workers(self.full, ())


@dataclass(frozen=True, slots=True)
class _Resolved:
    table: LoadedTable
    scan: ResolvedScan
    is_restricted: bool


class Scans:
    """Plans the scans of a coordinator. Safe to use from several threads.

    All that loads a table or plans raises `Cancelled` soon after its `is_cancelled` says so, and
    `PlanTimeout` when the plan has had its time.
    """

    def __init__(
        self,
        catalogs: Catalogs,
        members: Members,
        keyring: Keyring,
        policy: ScanPolicy,
        open_storage: StorageFactory,
        registry: CollectorRegistry,
        runs: PlanRuns,
        *,
        manifests: ManifestCache | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._anybody = Caller(None, catalogs)
        self._members = members
        self._keyring = keyring
        self._policy = policy
        self._open_storage = open_storage
        self._now_ms = now_ms
        self._runs = runs
        self._manifests = ManifestCache() if manifests is None else manifests
        self.outcomes: dict[str, int] = {"planned": 0, "failed": 0, "cancelled": 0}
        self._planned = Counter(
            "floeberg_scans", "Scans answered, by outcome.", ["outcome"], registry=registry
        )
        self._seconds = Histogram(
            "floeberg_plan_seconds",
            "How long it took to plan a scan, the catalog included.",
            buckets=(0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100),
            registry=registry,
        )
        self._tasks = Counter("floeberg_tasks", "Tasks handed out.", registry=registry)

    def schema(
        self,
        command: ScanCommand,
        caller: Caller | None = None,
        is_cancelled: IsCancelled = nobody_leaves,
    ) -> pa.Schema:
        """Return the schema of a scan's rows; nothing is planned."""
        caller = caller or self._anybody
        with self._run(command, caller, is_cancelled, "schema") as run:
            found = self._resolve(command, caller, Stopwatch(enter=run.enter), run)
            return arrow_schema(found.scan.projection)

    def answer(
        self,
        command: ScanCommand,
        caller: Caller | None = None,
        is_cancelled: IsCancelled = nobody_leaves,
    ) -> ScanAnswer:
        """Plan a scan and return its endpoints. The tickets are `caller`'s, who asks.

        Two calls give the same tasks in the same endpoints, as long as the table and the workers
        are the same. Raises `NoWorkers`, `FleetBusy` when none has room, and whatever is wrong with
        the command or the table.
        """
        caller = caller or self._anybody
        began = time.monotonic()
        outcome = "failed"
        try:
            with self._run(command, caller, is_cancelled) as run:
                watch = Stopwatch(enter=run.enter)
                found = self._resolve(command, caller, watch, run)
                table, scan = found.table, found.scan
                workers = self._admit()
                plan = self.plan_resolved(table, scan, run)
                planned = PlannedScan(table, plan, found.is_restricted, run.query_id)
                answer = self._answer(planned, workers, caller.principal, watch)
                run.endpoints = len(answer.endpoints)
            outcome = "planned"
        except Cancelled:
            outcome = "cancelled"
            raise
        finally:
            self.outcomes[outcome] += 1
            self._planned.labels(outcome).inc()
            self._seconds.observe(time.monotonic() - began)
        self._tasks.inc(len(plan.tasks))
        logger.info(
            "scan planned",
            extra={
                "table": table.name,
                "principal": caller.principal,
                "snapshot_id": scan.snapshot.snapshot_id if scan.snapshot else None,
                "tasks": len(plan.tasks),
                "bytes": plan.total_bytes,
                "endpoints": len(answer.endpoints),
                "seconds": round(time.monotonic() - began, 3),
            },
        )
        return answer

    def plan(
        self,
        command: ScanCommand,
        caller: Caller | None = None,
        is_cancelled: IsCancelled = nobody_leaves,
    ) -> PlannedScan:
        """Return the plan of a scan, for a person or a program to look at.

        Raises `NotPermitted` where a policy restricts the caller: a plan tells of files, with
        bounds and counts of their columns.
        """
        caller = caller or self._anybody
        with self._run(command, caller, is_cancelled, "plan") as run:
            found = self._resolve(command, caller, Stopwatch(enter=run.enter), run)
            caller.check_full(found.table.catalog, found.table.identifier, "plans are shown")
            plan = self.plan_resolved(found.table, found.scan, run)
            return PlannedScan(found.table, plan, found.is_restricted)

    def plan_resolved(self, table: LoadedTable, scan: ResolvedScan, run: PlanRun) -> Plan:
        """Return the plan of a scan that was resolved elsewhere."""
        storage = self._open_storage(table.storage)
        plan = run.plan = plan_files(scan, storage, self._cache(table), run)
        return plan

    def explain(
        self,
        command: ScanCommand,
        caller: Caller | None = None,
        is_cancelled: IsCancelled = nobody_leaves,
    ) -> Explanation:
        """Plan and place a scan, and return how that went instead of its endpoints.

        Without workers there are no endpoints, and that is no error. Raises `NotPermitted` as
        `plan` does.
        """
        caller = caller or self._anybody
        with self._run(command, caller, is_cancelled, "explain") as run:
            before, after = Stopwatch(enter=run.enter), Stopwatch(enter=run.enter)
            found = self._resolve(command, caller, before, run)
            table = found.table
            caller.check_full(table.catalog, table.identifier, "plans are explained")
            plan = self.plan_resolved(table, found.scan, run)
            planned = PlannedScan(table, plan, found.is_restricted)
            principal = caller.principal
            workers = _Workers(*self._members.with_room()).or_full()
            endpoints: list[ExplainedEndpoint] = []
            placements = self._placements(plan, workers, after) if workers.free else ()
            sealed = self._endpoints(planned, placements, principal, after) if workers.free else ()
            for placement, endpoint in zip(placements, sealed, strict=True):
                tasks = plan.tasks[placement.first : placement.stop]
                endpoints.append(
                    ExplainedEndpoint(
                        tasks=len(tasks),
                        bytes=tasks.total_bytes,
                        ticket_bytes=len(endpoint.ticket),
                        locations=endpoint.locations,
                    )
                )
            return explain(
                plan, table=table.name, endpoints=endpoints, before=before.steps, after=after.steps
            )

    def count(
        self,
        command: ScanCommand,
        caller: Caller | None = None,
        is_cancelled: IsCancelled = nobody_leaves,
    ) -> tuple[CountResult, ResolvedScan]:
        """Return how many rows metadata counts in a scan, its limit not applied."""
        caller = caller or self._anybody
        with self._run(command, caller, is_cancelled, "count") as run:
            found = self._resolve(command, caller, Stopwatch(enter=run.enter), run)
            storage = self._open_storage(found.table.storage)
            return count(found.scan, storage, self._cache(found.table), run), found.scan

    def _cache(self, table: LoadedTable) -> ManifestCache:
        return self._manifests.within(table.storage.store)

    def _run(
        self,
        command: ScanCommand,
        caller: Caller,
        is_cancelled: IsCancelled,
        kind: QueryKind = "scan",
    ) -> AbstractContextManager[PlanRun]:
        return self._runs.run(str(command.table), caller.principal, is_cancelled, kind)

    def _resolve(
        self, command: ScanCommand, caller: Caller, watch: Stopwatch, run: PlanRun
    ) -> _Resolved:
        with watch.step("load the table"):
            table = self._load(command.table.parts, caller.catalogs, run)
        with watch.step("bind names"):
            view = caller.view(table)
            scan = resolve(table.metadata, command.to_request(), view=view)
            return _Resolved(table, scan, view is not None)

    def _load(self, parts: tuple[str, ...], catalogs: Catalogs, run: PlanRun) -> LoadedTable:
        if catalogs.is_local(parts):
            return catalogs.load(parts)  # there is nothing to leave
        return run.ask(lambda: catalogs.load(parts))

    def _answer(
        self,
        planned: PlannedScan,
        workers: _Workers,
        principal: str | None,
        watch: Stopwatch,
    ) -> ScanAnswer:
        plan, scan = planned.plan, planned.plan.scan
        if len(plan.tasks) > self._policy.max_tasks:
            raise PlanTooLarge(
                f"the scan has {len(plan.tasks)} tasks, and at most {self._policy.max_tasks} are"
                " handed out"
            )
        placements = self._placements(plan, workers, watch)
        told: dict[str, Json] = {
            "table": planned.table.name,
            "snapshot_id": scan.snapshot.snapshot_id if scan.snapshot else None,
            "request_id": _origin(planned).request_id,
        }
        if not planned.is_restricted:
            # of files that hold other rows, too
            told |= {"tasks": len(plan.tasks), "counters": plan.counters.summary()}
        return ScanAnswer(
            schema=arrow_schema(scan.projection),
            endpoints=self._endpoints(planned, placements, principal, watch),
            total_records=-1 if plan.total_records is None else plan.total_records,
            total_bytes=-1 if planned.is_restricted else plan.total_bytes,
            ordered=scan.request.ordered,
            app_metadata=dump_json(told),
        )

    def _admit(self) -> _Workers:
        """Return the workers for a scan. What they said last is some seconds old, and others plan
        for them too: a worker that has no room after all refuses by itself.
        """
        workers = _Workers(*self._members.with_room())
        if not workers.free and self._policy.refuse_when_full and workers.full:
            raise FleetBusy(len(workers.full))
        workers = workers.or_full()
        if not workers.free:
            raise NoWorkers()
        return workers

    def _placements(self, plan: Plan, workers: _Workers, watch: Stopwatch) -> tuple[Placement, ...]:
        with watch.step("place tasks on workers"):
            return place(
                plan.tasks.sizes,
                workers.free,
                full=workers.full,
                affinity=plan.tasks.locations,
                endpoints_per_worker=(
                    min(2, self._policy.max_endpoints_per_worker),
                    self._policy.max_endpoints_per_worker,
                ),
                fallbacks=self._policy.fallbacks,
                one_endpoint=plan.scan.request.limit is not None,
            )

    def _endpoints(
        self,
        planned: PlannedScan,
        placements: tuple[Placement, ...],
        principal: str | None,
        watch: Stopwatch,
    ) -> tuple[Endpoint, ...]:
        expires_at_ms = self._now_ms() + int(self._policy.ticket_seconds * 1000)
        with watch.step("seal tickets"):
            tickets = seal_tickets(
                self._read_plan(planned),
                planned.plan.tasks,
                [(p.first, p.stop) for p in placements],
                self._keyring,
                principal=principal,
                bound=self._policy.bind_tickets and principal is not None,
                expires_at_ms=expires_at_ms,
                max_info_bytes=self._policy.max_info_bytes,
                origin=_origin(planned),
            )
            return tuple(
                Endpoint(ticket, self._locations(p.workers), expires_at_ms)
                for ticket, p in zip(tickets, placements, strict=True)
            )

    def _read_plan(self, planned: PlannedScan) -> ReadPlan:
        scan = planned.plan.scan
        return ReadPlan(
            metadata=scan.metadata.for_reading(scan.snapshot),
            schema_id=scan.schema.schema_id,
            projection=scan.projection,
            tasks=(),  # a ticket has its own
            storage=planned.table.storage,
            options=ReadOptions(
                batch_size=None,
                batch_bytes=self._policy.batch_bytes,
                limit=scan.request.limit,
            ),
        )

    def _locations(self, workers: tuple[Worker, ...]) -> tuple[str, ...]:
        named = tuple(worker.location for worker in workers)
        match self._policy.redeem_at:
            case "workers":
                return named
            case "coordinator":
                return ()
            case "both":
                return (*named, REUSE_CONNECTION)
            case _:
                assert_never(self._policy.redeem_at)


def _origin(planned: PlannedScan) -> Origin:
    table, request = planned.table.name, current_request()
    if request is None:
        return Origin(planned.query_id, table=table)
    return Origin(planned.query_id, request.request_id, table, request.traceparent)
