"""Plan scans for REST clients, and page what was planned.

Clients read the files themselves, and evaluate what is left of the filter by Iceberg's own rule,
under which the negation of a comparison with null is true. So plans keep the files that such rows
may be in. Tasks are whole files: REST's have no byte range. Files without rows are left out, as
Iceberg's own library does: some writers name such files and never make them.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from floeberg.protocol.errors import CorruptMetadata, UnknownSnapshot
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.json_form import (
    MalformedExpression,
    bound_from_json,
    bound_to_json,
)
from floeberg.protocol.expressions.two_valued import keep_nulls_of_negations
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.manifests.segment import RECORD_COUNT
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.scans import ResolvedScan, ScanRequest, resolve
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.types import Json
from floeberg.server.access import Caller
from floeberg.server.catalogs import LoadedTable
from floeberg.server.flight.plan_runs import PlanRuns
from floeberg.server.flight.query_limits import check_plan
from floeberg.server.flight.scans import Scans
from floeberg.server.planning import Plan, PlanRun, rest_scan_tasks
from floeberg.server.rest.errors import NoSuchPlanTask
from floeberg.server.rest.filters import expression_from_rest, suited_to_columns
from floeberg.server.rest.plan_tasks import PlanTask, ScanKey, open_plan_task, seal_plan_task
from floeberg.server.rest.requests import FetchScanTasksRequest, PlanTableScanRequest

_MAX_PLAN_TASKS = 64
_PLAN_TASK_BYTES = 1 << 20  # of all plan tasks of one answer; each holds the scan's filter
_KEPT_TASKS = 1_000_000
_STRIPES = 16


@dataclass(frozen=True, slots=True)
class Client:
    """What is particular to a client."""

    reads_null_partitions: bool = True


class RestPlanner:
    """Plans and pages. Safe to use from several threads.

    An answer holds `page_files` file scan tasks at most. The last plans are kept, up to about a
    million tasks, so that their pages need no new planning.
    """

    def __init__(
        self,
        scans: Scans,
        runs: PlanRuns,
        keyring: Keyring,
        *,
        page_files: int = 1000,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._scans = scans
        self._runs = runs
        self._keyring = keyring
        self._page_files = page_files
        self._now_ms = now_ms
        self._kept = _KeptPlans(_KEPT_TASKS)
        self._stripes = [threading.Lock() for _ in range(_STRIPES)]

    def plan(
        self,
        catalog: str,
        identifier: tuple[str, ...],
        body: bytes,
        caller: Caller,
        cancelled: threading.Event,
    ) -> PlanTask:
        """Return all tasks of a new plan, as a plan task; its pages are then at hand.

        Raises `BadRequest` and `Unsupported` for what the request has wrong, what loading the table
        and planning raise, and `Cancelled` soon after the event is set.
        """
        request = PlanTableScanRequest.parse(body)
        name = _name(catalog, identifier)
        seconds = caller.limits.seconds
        with (
            self._runs.run(name, caller.principal, cancelled.is_set, "rest-plan", seconds) as run,
            self._scans.counted(run, caller),
        ):
            table = _load(catalog, identifier, caller, run)
            scan = _resolved(table, request)
            key = _key(catalog, identifier, scan, request)
            plan = self._scans.plan_resolved(table, scan, run)
            check_plan(plan, caller.limits)
        return PlanTask(key, 0, len(self._keep(key, plan).tasks))

    def fetch(
        self,
        catalog: str,
        identifier: tuple[str, ...],
        body: bytes,
        caller: Caller,
        client: Client,
    ) -> dict[str, Json]:
        """Return what a plan task stands for. Raises `NoSuchPlanTask`, also for another table's,
        and what loading the table and planning raise."""
        request = FetchScanTasksRequest.parse(body)
        task = open_plan_task(request.plan_task, self._keyring, now_ms=self._now_ms())
        if (task.scan.catalog, task.scan.identifier) != (catalog, identifier):
            raise NoSuchPlanTask("this is a plan task of another table")
        return self.page(task, caller, client)

    def page(self, task: PlanTask, caller: Caller, client: Client) -> dict[str, Json]:
        """Return the first page of a plan task as REST's ScanTasks, and the rest as plan tasks.

        Plans are kept for all callers: that `caller` may read the whole table is for whoever asks
        to have checked.
        """
        plan = self._planned(task.scan, caller)
        stop = min(task.first + self._page_files, task.stop)
        page = rest_scan_tasks(
            plan.scan,
            plan.tasks[task.first : stop],
            frozenset(task.scan.stats),
            with_null_partitions=client.reads_null_partitions,
        )
        return page | {"plan-tasks": self._sealed(replace(task, first=stop))}

    def _sealed(self, rest: PlanTask) -> list[Json]:
        """Return the plan tasks that `rest` is divided into: a page each where they are few, so
        that clients can fetch them side by side."""
        if rest.first >= rest.stop:
            return []
        now_ms = self._now_ms()
        bytes_each = len(seal_plan_task(rest, self._keyring, now_ms=now_ms))
        pages = -(-(rest.stop - rest.first) // self._page_files)
        tasks = min(pages, _MAX_PLAN_TASKS, max(1, _PLAN_TASK_BYTES // bytes_each))
        step = -(-pages // tasks) * self._page_files
        return [
            seal_plan_task(
                PlanTask(rest.scan, first, min(first + step, rest.stop)),
                self._keyring,
                now_ms=now_ms,
            )
            for first in range(rest.first, rest.stop, step)
        ]

    def _planned(self, key: ScanKey, caller: Caller) -> Plan:
        plan = self._kept.get(key)
        if plan is not None:
            return plan
        # clients fetch the pages of a plan side by side: it is planned again once
        with self._stripes[hash(key) % _STRIPES]:
            plan = self._kept.get(key)
            if plan is None:
                name = _name(key.catalog, key.identifier)
                with self._runs.run(name, caller.principal, kind="rest-plan") as run:
                    table = _load(key.catalog, key.identifier, caller, run)
                    found = self._scans.plan_resolved(table, _scan_of(key, table), run)
                plan = self._keep(key, found)
        return plan

    def _keep(self, key: ScanKey, plan: Plan) -> Plan:
        """Return the plan whose tasks clients are told."""
        has_rows = _record_counts(plan.tasks) != 0
        if not has_rows.all():
            plan = replace(plan, tasks=plan.tasks.where(has_rows))
        self._kept.keep(key, plan)
        return plan


def _load(catalog: str, identifier: tuple[str, ...], caller: Caller, run: PlanRun) -> LoadedTable:
    """Return a table of which `caller` may read all. Raises `UnknownTable`, `NotPermitted`."""
    run.enter("load the table")
    table = run.ask(lambda: caller.catalogs.get(catalog).load(identifier))
    # under its own name, where the catalog takes others as well
    caller.check_full(table.catalog, table.identifier, "tables are planned for REST clients")
    return table


def _record_counts(tasks: PlannedTasks) -> Int64s:
    """Return what each task's file says of its rows, shape (tasks,)."""
    counts = [files.numbers(RECORD_COUNT) for files in tasks.files]
    return np.concatenate([np.zeros(0, dtype=np.int64), *counts])[tasks.ranges.files]


def _name(catalog: str, identifier: tuple[str, ...]) -> str:
    return ".".join((catalog, *identifier))


def _resolved(table: LoadedTable, request: PlanTableScanRequest) -> ResolvedScan:
    asked = ScanRequest(
        snapshot_id=request.snapshot_id, case_sensitive=request.case_sensitive, split_size=0
    )
    scan = resolve(table.metadata, asked, use_snapshot_schema=request.use_snapshot_schema)
    case_sensitive = request.case_sensitive
    suited = suited_to_columns(expression_from_rest(request.filter), scan.schema, case_sensitive)
    widened = keep_nulls_of_negations(suited)
    return replace(scan, filter=bind(widened, scan.schema, case_sensitive))


def _key(
    catalog: str, identifier: tuple[str, ...], scan: ResolvedScan, request: PlanTableScanRequest
) -> ScanKey:
    """Return what decides a scan's tasks, the table named as the client does: its catalog may spell
    it otherwise."""
    stats = {
        scan.schema.lookup(name, request.case_sensitive).field_id
        for name in request.stats_fields or ()
    }
    return ScanKey(
        catalog=catalog,
        identifier=identifier,
        table_uuid=scan.metadata.table_uuid,
        snapshot_id=scan.snapshot.snapshot_id if scan.snapshot else None,
        schema_id=scan.schema.schema_id,
        filter=json.dumps(bound_to_json(scan.filter), separators=(",", ":")),
        stats=tuple(sorted(stats)),
    )


def _scan_of(key: ScanKey, table: LoadedTable) -> ResolvedScan:
    """Return the scan that was planned, from the table as it is now.

    Raises `NoSuchPlanTask` where the table has lost what was planned, or is another one.
    """
    metadata = table.metadata
    if metadata.table_uuid != key.table_uuid:
        raise NoSuchPlanTask("another table has taken this one's name")
    try:
        scan = resolve(metadata, ScanRequest(snapshot_id=key.snapshot_id, split_size=0))
        schema = metadata.schema_by_id(key.schema_id)
        filter_ = bound_from_json(json.loads(key.filter), schema)
    except (UnknownSnapshot, CorruptMetadata, MalformedExpression, ValueError) as exc:
        raise NoSuchPlanTask("the table no longer has the snapshot that was planned") from exc
    snapshot = None if key.snapshot_id is None else scan.snapshot
    return replace(scan, snapshot=snapshot, schema=schema, projection=schema, filter=filter_)


class _KeptPlans:
    """The plans used last, as many as hold about `max_tasks` tasks; the newest in any case."""

    def __init__(self, max_tasks: int) -> None:
        self._max_tasks = max_tasks
        self._lock = threading.Lock()
        self._plans: OrderedDict[ScanKey, Plan] = OrderedDict()
        self._tasks = 0

    def get(self, key: ScanKey) -> Plan | None:
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
            return plan

    def keep(self, key: ScanKey, plan: Plan) -> None:
        with self._lock:
            replaced = self._plans.pop(key, None)
            self._tasks += _weight(plan) - (_weight(replaced) if replaced else 0)
            self._plans[key] = plan
            while self._tasks > self._max_tasks and len(self._plans) > 1:
                _, given_up = self._plans.popitem(last=False)
                self._tasks -= _weight(given_up)


def _weight(plan: Plan) -> int:
    return len(plan.tasks) + 1000  # the table's metadata, its schema, the filter
