"""Answer a scan: plan it, place it on the workers, and seal what each endpoint reads.

Knows nothing of Flight.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from prometheus_client import CollectorRegistry, Counter, Histogram

from floeberg.process.storage.renewing import RenewingStorage
from floeberg.protocol.actions import ExplainedEndpoint, Explanation
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.bodies import dump_json
from floeberg.protocol.commands import ScanCommand
from floeberg.protocol.errors import Cancelled
from floeberg.protocol.scans import ResolvedScan, resolve
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.status import QueryKind
from floeberg.protocol.storage import Storage, StorageFactory
from floeberg.protocol.types import Json
from floeberg.server.access import Caller
from floeberg.server.catalogs import Catalogs, LoadedTable
from floeberg.server.fleet import Placement
from floeberg.server.flight.at_once import Planned, QueriesAtOnce
from floeberg.server.flight.endpoints import (
    Endpoint,
    Endpoints,
    PlannedScan,
    ScanPolicy,
    Workers,
    origin_of,
)
from floeberg.server.flight.members import Members
from floeberg.server.flight.plan_runs import PlanRuns
from floeberg.server.flight.query_limits import check_plan, stream_limits
from floeberg.server.flight.reads import Reads
from floeberg.server.planning import (
    CountResult,
    ManifestCache,
    ManifestSource,
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


def nobody_leaves() -> bool:
    return False


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


@dataclass(frozen=True)
class TableScan:
    """A scan of a table whose names are bound; where it `is_restricted`, a policy keeps something
    of the table from the caller."""

    table: LoadedTable
    scan: ResolvedScan
    is_restricted: bool

    @property
    def label(self) -> str:
        """What people call it."""
        return self.table.name

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of its rows."""
        return arrow_schema(self.scan.projection)


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
        at_once: QueriesAtOnce | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._anybody = Caller(None, catalogs)
        self.endpoints = Endpoints(members, keyring, policy, now_ms)
        self._open_storage = open_storage
        self.now_ms = now_ms
        self._runs = runs
        self._manifests = ManifestCache() if manifests is None else manifests
        self._at_once = at_once or QueriesAtOnce(Reads(), patience_seconds=0)
        self.outcomes: dict[str, int] = {"planned": 0, "failed": 0, "cancelled": 0}
        self._planned = Counter(
            "floeberg_scans", "Scans answered, by outcome.", ["outcome"], registry=registry
        )
        for outcome in self.outcomes:
            self._planned.labels(outcome)
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
            return found.schema

    def answer(
        self,
        command: ScanCommand,
        caller: Caller | None = None,
        is_cancelled: IsCancelled = nobody_leaves,
    ) -> ScanAnswer:
        """Plan a scan and return its endpoints. The tickets are `caller`'s, who asks.

        Two calls give the same tasks in the same endpoints, as long as the table and the workers
        are the same. Waits for the first worker of a coordinator that has just begun. Raises
        `NoWorkers`, `FleetBusy` when none has room, `LimitExceeded` when it is more than `caller`
        may have, `TooManyQueries` when it is one too many, and whatever is wrong with the command
        or the table.
        """
        caller = caller or self._anybody
        began_ms = self.now_ms()
        with (
            self.observed(),
            self._run(command, caller, is_cancelled) as run,
            self.counted(run, caller) as counted,
        ):
            watch = Stopwatch(enter=run.enter)
            found = self._resolve(command, caller, watch, run)
            workers = self.endpoints.admit(run)
            answer, counted.tasks = self.answer_resolved(
                found, workers, caller, run, watch, began_ms
            )
        return answer

    def answer_resolved(
        self,
        found: TableScan,
        workers: Workers,
        caller: Caller,
        run: PlanRun,
        watch: Stopwatch,
        began_ms: int,
    ) -> tuple[ScanAnswer, int]:
        """Plan a scan that was resolved; return its answer and how many tasks there are to read.

        Raises what `answer` does when it comes to planning.
        """
        plan = self.plan_resolved(found.table, found.scan, run)
        check_plan(plan, caller.limits, is_restricted=found.is_restricted)
        limits = stream_limits(plan, caller.limits, began_ms)
        planned = PlannedScan(found.table, plan, found.is_restricted, run.query_id, limits)
        answer = self._answer(planned, workers, caller.principal, watch)
        run.endpoints = len(answer.endpoints)
        self.count_tasks(len(plan.tasks))
        snapshot = found.scan.snapshot
        logger.info(
            "scan planned",
            extra={
                "table": found.table.name,
                "principal": caller.principal,
                "snapshot_id": snapshot.snapshot_id if snapshot else None,
                "tasks": len(plan.tasks),
                "bytes": plan.total_bytes,
                "endpoints": len(answer.endpoints),
                "seconds": round(run.progress.seconds, 3),
            },
        )
        return answer, len(plan.tasks)

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Count what becomes of a query that is planned within the block, and measure it."""
        began = time.monotonic()
        outcome = "failed"
        try:
            yield
            outcome = "planned"
        except Cancelled:
            outcome = "cancelled"
            raise
        finally:
            self.outcomes[outcome] += 1
            self._planned.labels(outcome).inc()
            self._seconds.observe(time.monotonic() - began)

    def count_tasks(self, tasks: int) -> None:
        """Count tasks that are handed out."""
        self._tasks.inc(tasks)

    def counted(self, run: PlanRun, caller: Caller) -> AbstractContextManager[Planned]:
        """Let a query be planned within the block, among those that its caller may have at once.

        Raises `TooManyQueries`, and what `run.check` raises.
        """
        return self._at_once.planning(run, caller.principal, caller.limits.queries)

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
        storage = self._storage(table)
        plan = run.plan = plan_files(scan, storage, self._cache(table), run)
        return plan

    def manifest_source(self, table: LoadedTable, run: PlanRun) -> ManifestSource:
        """Return what reads a table's manifests as its plans do: through the same cache, and for no
        longer than `run` lets it."""
        storage = run.storage(self._storage(table))
        return ManifestSource(storage, self._cache(table), table.metadata.table_uuid, run)

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
            workers = self.endpoints.workers()
            endpoints: list[ExplainedEndpoint] = []
            placements: tuple[Placement, ...] = ()
            sealed: tuple[Endpoint, ...] = ()
            if workers.free:
                placements = self.endpoints.place(plan, workers, after)
                sealed = self.endpoints.seal(planned, placements, principal, after)
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
            storage = self._storage(found.table)
            return count(found.scan, storage, self._cache(found.table), run), found.scan

    def worker_locations(self) -> tuple[str, ...]:
        """Return where tickets may be redeemed now, as an endpoint would name it."""
        return self.endpoints.locations()

    def _storage(self, table: LoadedTable) -> Storage:
        if table.credentials is None:
            return self._open_storage(table.storage)
        return RenewingStorage(table.storage, self._open_storage, table.credentials)

    def _cache(self, table: LoadedTable) -> ManifestCache:
        return self._manifests.within(table.storage.store)

    def _run(
        self,
        command: ScanCommand,
        caller: Caller,
        is_cancelled: IsCancelled,
        kind: QueryKind = "scan",
    ) -> AbstractContextManager[PlanRun]:
        return self.run(str(command.table), caller, is_cancelled, kind)

    def run(
        self, tables: str, caller: Caller, is_cancelled: IsCancelled, kind: QueryKind
    ) -> AbstractContextManager[PlanRun]:
        """Let a query of `tables`, as people call them, be planned within the block."""
        return self._runs.run(tables, caller.principal, is_cancelled, kind, caller.limits.seconds)

    def _resolve(
        self, command: ScanCommand, caller: Caller, watch: Stopwatch, run: PlanRun
    ) -> TableScan:
        with watch.step("load the table"):
            table = self.load(command.table.parts, caller.catalogs, run)
        with watch.step("bind names"):
            view = caller.view(table)
            scan = resolve(table.metadata, command.to_request(), view=view)
            return TableScan(table, scan, view is not None)

    def load(self, parts: tuple[str, ...], catalogs: Catalogs, run: PlanRun) -> LoadedTable:
        """Return a table of a query that is planned by `run`."""
        if catalogs.is_local(parts):
            return catalogs.load(parts)  # there is nothing to leave
        return run.ask(lambda: catalogs.load(parts))

    def _answer(
        self,
        planned: PlannedScan,
        workers: Workers,
        principal: str | None,
        watch: Stopwatch,
    ) -> ScanAnswer:
        plan, scan = planned.plan, planned.plan.scan
        self.endpoints.check_tasks(len(plan.tasks))
        placements = self.endpoints.place(plan, workers, watch)
        told: dict[str, Json] = {
            "table": planned.table.name,
            "snapshot_id": scan.snapshot.snapshot_id if scan.snapshot else None,
            "request_id": origin_of(planned).request_id,
        }
        if scan.request.limit is not None:
            # for who resumes the stream of a query, whose text alone has it
            told["limit"] = scan.request.limit
        if not planned.is_restricted:
            # of files that hold other rows, too
            told |= {"tasks": len(plan.tasks), "counters": plan.counters.summary()}
        return ScanAnswer(
            schema=arrow_schema(scan.projection),
            endpoints=self.endpoints.seal(planned, placements, principal, watch),
            total_records=-1 if plan.total_records is None else plan.total_records,
            total_bytes=-1 if planned.is_restricted else plan.total_bytes,
            ordered=scan.request.ordered,
            app_metadata=dump_json(told),
        )
