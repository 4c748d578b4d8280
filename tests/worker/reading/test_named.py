"""Tasks that manifests name are read from these, each of which is fetched once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from floeberg.process.storage import open_storage
from floeberg.protocol.errors import StaleTicket, StorageUnavailable
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.named_tasks import NamedTasks
from floeberg.protocol.plan_codec import decode_plan, encode_plan
from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.scans import ScanRequest, resolve
from floeberg.server.planning import plan_files
from floeberg.worker.cache import LoadingCache
from floeberg.worker.reading.named import resolved
from tests.support.lake import TableWriter
from tests.support.orders import write_orders
from tests.support.reads import CountingStorage, placed_batches, plan_of, read


class Unreachable(CountingStorage):
    def read(self, location: str) -> bytes:
        raise StorageUnavailable(f"{location} cannot be reached")


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    return write_orders(tmp_path / "orders")


def named_plan(table: TableWriter, first: int = 0, stop: int | None = None) -> ReadPlan:
    """Return the plan of some tasks of the whole table as it comes out of a ticket."""
    path = table.metadata_path
    scan = resolve(TableMetadata.parse(path.read_bytes(), str(path)), ScanRequest())
    tasks = plan_files(scan, open_storage()).tasks[first:stop]
    plan = decode_plan(encode_plan(replace(plan_of(table), tasks=tasks), by_manifests=True))
    assert isinstance(plan.tasks, NamedTasks)
    return plan


def requested(storage: CountingStorage) -> dict[str, int]:
    return {name: n for name, n in storage.requests.items() if name.endswith(".avro")}


def test_the_same_rows_come_as_of_tasks_that_are_listed(table: TableWriter) -> None:
    listed = plan_of(table)

    assert read(named_plan(table)).equals(read(listed))
    assert read(named_plan(table, 1, 3)).equals(read(replace(listed, tasks=listed.tasks[1:3])))


def test_it_resumes_at_the_same_places(table: TableWriter) -> None:
    plan, listed = named_plan(table), plan_of(table)

    for task in range(len(plan.tasks) + 1):
        place = ResumePlace(task, 7 if task < len(plan.tasks) else 0)
        assert [p.place for p in placed_batches(plan, place)] == [
            p.place for p in placed_batches(listed, place)
        ]


def test_a_manifest_is_fetched_once_for_all_tickets_that_name_it(table: TableWriter) -> None:
    storage, cache = CountingStorage(), LoadingCache()
    count = len(plan_of(table).tasks)

    for first in range(count):
        resolved(named_plan(table, first, first + 1), storage, cache)
        resolved(named_plan(table, first, count), storage, cache)

    assert len(requested(storage)) > 1
    assert set(requested(storage).values()) == {1}


def test_tasks_that_are_listed_are_left_alone(table: TableWriter) -> None:
    plan = plan_of(table)

    assert resolved(plan, Unreachable()) is plan


def test_a_manifest_that_is_gone_makes_the_ticket_stale(table: TableWriter) -> None:
    plan = named_plan(table)
    assert isinstance(plan.tasks, NamedTasks)
    location = plan.tasks.named[-1].manifest.location
    table.local(location).unlink()

    with pytest.raises(StaleTicket, match="does not exist any more") as raised:
        read(plan)

    assert location in str(raised.value)


def test_storage_that_cannot_be_reached_is_no_stale_ticket(table: TableWriter) -> None:
    with pytest.raises(StorageUnavailable):
        resolved(named_plan(table), Unreachable())
