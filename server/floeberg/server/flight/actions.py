"""The coordinator's actions: from a name and a body to results, all bytes.

Knows nothing of Flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from floeberg.protocol.actions import (
    COUNT,
    DESCRIBE,
    DESCRIPTIONS,
    EXPLAIN,
    FILES,
    PAGE_LENGTH,
    PLAN,
    SNAPSHOTS,
    STATUS,
    TABLES,
    WORKERS,
    Action,
    CountReply,
    PlanPage,
    TablesPage,
    WorkersReply,
    pages,
)
from floeberg.protocol.commands import ScanCommand
from floeberg.protocol.errors import BadCommand
from floeberg.protocol.registration import (
    LEAVE_WORKER,
    LEND_CREDENTIALS,
    REGISTER_WORKER,
    RENEW_WORKER,
    Lease,
)
from floeberg.protocol.suggestions import quoted
from floeberg.server.access import Caller
from floeberg.server.access.describing import describe_for, list_snapshots_for, status_for
from floeberg.server.catalogs import Catalogs
from floeberg.server.flight.endpoints import PlannedScan
from floeberg.server.flight.lending import Lender
from floeberg.server.flight.members import Members
from floeberg.server.flight.scans import IsCancelled, Scans, nobody_leaves
from floeberg.server.flight.status import CoordinatorFacts
from floeberg.server.flight.tables import list_tables
from floeberg.server.planning import rest_json

Handler = Callable[[bytes, Caller, IsCancelled], Iterable[bytes]]


class Actions:
    """Answers actions by name. Safe to use from several threads."""

    def __init__(
        self,
        catalogs: Catalogs,
        members: Members,
        scans: Scans,
        facts: CoordinatorFacts,
        lender: Lender,
    ) -> None:
        self._catalogs = catalogs
        self._members = members
        self._scans = scans
        self._facts = facts
        self._handlers: Mapping[str, Handler] = {
            TABLES.name: lambda body, caller, _: self._tables(body, caller),
            DESCRIBE.name: lambda body, caller, _: self._describe(body, caller),
            SNAPSHOTS.name: lambda body, caller, _: self._snapshots(body, caller),
            FILES.name: self._files,
            COUNT.name: self._count,
            PLAN.name: self._plan,
            EXPLAIN.name: self._explain,
            WORKERS.name: lambda body, *_: self._workers(body),
            STATUS.name: lambda body, caller, _: self._status(body, caller),
            REGISTER_WORKER: lambda body, *_: [_json(members.register(body))],
            RENEW_WORKER: lambda body, *_: [_json(members.renew(body))],
            LEAVE_WORKER: lambda body, *_: self._leave(body),
            LEND_CREDENTIALS: lambda body, *_: [lender.lend(body)],
        }

    def descriptions(self) -> list[tuple[str, str]]:
        return list(DESCRIPTIONS)

    def answer(
        self,
        name: str,
        body: bytes,
        caller: Caller,
        is_cancelled: IsCancelled = nobody_leaves,
    ) -> Iterable[bytes]:
        """Return the results of an action for `caller`; some are made only as they are taken.
        Raises `BadCommand` for an unknown action, and what the action raises: `Cancelled` soon
        after `is_cancelled` says so, where it plans.
        """
        handler = self._handlers.get(name)
        if handler is None:
            raise BadCommand(f"no action {quoted(name)}; there are {', '.join(self._handlers)}")
        return handler(body, caller, is_cancelled)

    def _tables(self, body: bytes, caller: Caller) -> Iterator[bytes]:
        entries, unlisted = list_tables(caller.catalogs, TABLES.parse_request(body))
        for page in pages(entries):
            yield TABLES.encode_reply(TablesPage(tables=page, unlisted=unlisted))
            unlisted = {}

    def _describe(self, body: bytes, caller: Caller) -> list[bytes]:
        table = caller.catalogs.load(DESCRIBE.parse_request(body).table.parts)
        return [DESCRIBE.encode_reply(describe_for(caller, table))]

    def _snapshots(self, body: bytes, caller: Caller) -> list[bytes]:
        table = caller.catalogs.load(SNAPSHOTS.parse_request(body).table.parts)
        return [SNAPSHOTS.encode_reply(list_snapshots_for(caller, table))]

    def _files(self, body: bytes, caller: Caller, is_cancelled: IsCancelled) -> Iterator[bytes]:
        command = ScanCommand.parse(body)
        # a split of 0 is a task a file
        whole = command.model_copy(update={"split_size": 0})
        yield from self._plan_pages(FILES, self._scans.plan(whole, caller, is_cancelled))

    def _plan(self, body: bytes, caller: Caller, is_cancelled: IsCancelled) -> Iterator[bytes]:
        planned = self._scans.plan(ScanCommand.parse(body), caller, is_cancelled)
        yield from self._plan_pages(PLAN, planned)

    def _explain(self, body: bytes, caller: Caller, is_cancelled: IsCancelled) -> list[bytes]:
        explained = self._scans.explain(ScanCommand.parse(body), caller, is_cancelled)
        return [EXPLAIN.encode_reply(explained)]

    def _plan_pages(
        self, action: Action[ScanCommand, PlanPage], planned: PlannedScan
    ) -> Iterator[bytes]:
        plan = planned.plan
        snapshot = plan.scan.snapshot
        counters = plan.counters.summary()
        for first in range(0, max(len(plan.tasks), 1), PAGE_LENGTH):
            raw = rest_json(replace(plan, tasks=plan.tasks[first : first + PAGE_LENGTH]))
            page = PlanPage(
                snapshot_id=snapshot.snapshot_id if snapshot else None,
                tasks=tuple(raw["file-scan-tasks"]),
                delete_files=tuple(raw["delete-files"]),
                counters=counters,
            )
            yield action.encode_reply(page)
            counters = {}  # they are the plan's, not the page's

    def _count(self, body: bytes, caller: Caller, is_cancelled: IsCancelled) -> list[bytes]:
        command = ScanCommand.parse(body)
        counted, scan = self._scans.count(command, caller, is_cancelled)
        rows = counted.rows if counted.is_exact else None
        if rows is not None and command.limit is not None:
            rows = min(rows, command.limit)
        if command.limit == 0:
            rows = 0
        snapshot_id = scan.snapshot.snapshot_id if scan.snapshot else None
        return [COUNT.encode_reply(CountReply(count=rows, snapshot_id=snapshot_id))]

    def _status(self, body: bytes, caller: Caller) -> list[bytes]:
        STATUS.parse_request(body)
        return [STATUS.encode_reply(status_for(caller, self._facts.status()))]

    def _workers(self, body: bytes) -> list[bytes]:
        WORKERS.parse_request(body)
        return [WORKERS.encode_reply(WorkersReply(locations=self._scans.worker_locations()))]

    def _leave(self, body: bytes) -> list[bytes]:
        self._members.leave(body)
        return []


def _json(lease: Lease) -> bytes:
    return lease.model_dump_json().encode()
