"""Every case of the corpus: read in this process, through sealed tickets, and over Flight."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from floeberg.client import Lake
from floeberg.embedded import TableScan, open_table
from floeberg.process.storage import open_storage
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.plan_codec import PlanEncoder
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.scans import ResolvedScan
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.storage import Storage, StorageConfig
from floeberg.protocol.tickets import open_ticket, seal_encoded
from floeberg.server.planning import Plan, plan_files
from floeberg.worker.cache import LoadingCache
from floeberg.worker.reading import to_batches_for_tasks
from tests.corpus.cases import Case
from tests.support.plain_planner import PlainPlan, comparable, plan_plainly
from tests.support.rows import assert_same_rows

KEYS = Keyring.generate()


def check(case: Case, read: Callable[[], pa.Table]) -> None:
    """Read the case and hold the answer, or the refusal, against what is expected."""
    if case.expected_error is not None:
        with pytest.raises(FloebergError):
            read()
        return
    try:
        table = read()
    except FloebergError:
        if case.allow_error:
            return
        raise
    assert_same_rows(table, case.expected())


def scan_of(case: Case) -> TableScan:
    scan = open_table(case.source, rebase=case.rebase).scan()
    if case.filter is not None:
        scan = scan.filter(case.filter)
    if case.select is not None:
        scan = scan.select(case.select)
    if case.snapshot_id is not None:
        scan = scan.use_snapshot(case.snapshot_id)
    if case.ref is not None:
        scan = scan.use_ref(case.ref)
    if case.as_of_ms is not None:
        scan = scan.as_of(case.as_of_ms)
    if case.split_size is not None:
        scan = scan.with_split_size(case.split_size)
    return scan if case.case_sensitive else scan.case_insensitive()


def test_in_process(case: Case) -> None:
    check(case, lambda: scan_of(case).to_table())


@pytest.mark.parametrize("by_manifests", [False, True], ids=["listed", "named"])
def test_through_tickets(case: Case, by_manifests: bool) -> None:
    """The plan's tasks, each sealed on its own and read by a worker's code, give the same rows."""

    def read() -> pa.Table:
        table = open_table(case.source, rebase=case.rebase)
        scan = scan_of(case).resolved()
        tasks = plan_files(scan, scan_of(case).storage).tasks
        plan = ReadPlan(
            metadata=table.metadata.for_reading(scan.snapshot),
            schema_id=scan.schema.schema_id,
            projection=scan.projection,
            tasks=(),
            storage=StorageConfig(rebase=case.rebase),
        )
        encoder = PlanEncoder(plan, tasks, by_manifests=by_manifests)
        tickets = [
            seal_encoded(
                encoder.encode(i, i + 1),
                KEYS,
                principal=None,
                expires_at_ms=1_000,
            )
            for i in range(len(tasks))
        ]
        plans = [open_ticket(ticket, KEYS, now_ms=0).plan for ticket in tickets]
        storage, manifests = open_storage(StorageConfig(rebase=case.rebase)), LoadingCache()
        placed = [
            p for plan in plans for p in to_batches_for_tasks(plan, storage, manifests=manifests)
        ]
        return pa.Table.from_batches(
            [p.batch for p in placed], schema=arrow_schema(scan.projection)
        )

    check(case, read)


def test_over_flight(case: Case, lake: Lake) -> None:
    """The same rows come from two workers, with every file split as finely as it can be."""

    def read() -> pa.Table:
        scan = lake.table([case.id]).scan(
            filter=case.filter,
            select=case.select,
            snapshot_id=case.snapshot_id,
            ref=case.ref,
            as_of=case.as_of_ms,
            case_sensitive=case.case_sensitive,
            split_size=case.split_size or 1,
        )
        return scan.to_arrow()

    check(case, read)


def test_count(case: Case) -> None:
    """`count()` equals the number of rows, whichever way it was found.

    A damaged data file may go unseen: metadata alone can be exact.
    """
    try:
        count = scan_of(case).count()
    except FloebergError:
        assert case.expected_error is not None or case.allow_error
        return
    assert case.expected_rows is None or count == case.expected().num_rows


def test_plan(case: Case) -> None:
    """The plan is the plain planner's, file by file: ranges, deletes, residuals and order."""

    def planned(plan: Callable[[ResolvedScan, Storage], Plan | PlainPlan]) -> object:
        try:
            scan = scan_of(case)
            return comparable(plan(scan.resolved(), scan.storage))
        except FloebergError as exc:
            return type(exc)

    assert planned(plan_files) == planned(plan_plainly)
