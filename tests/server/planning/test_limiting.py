"""A plan with a limit has the first files that have the rows, by what metadata says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.process.storage import open_storage
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.server.planning import ManifestCache, Plan, count, plan_files
from floeberg.server.planning.limiting import RowLimit
from tests.server.planning.test_counting import random_tasks
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.plain_planner import comparable, plan_plainly
from tests.support.plain_planner.counting import count_plainly
from tests.support.scans import RecordingStorage, scan_of

STORAGE = open_storage()
COLUMNS = schema({"id": required("long"), "region": "string"})

Create = Callable[..., TableWriter]


@pytest.fixture
def create(tmp_path: Path) -> Create:
    def make(*spec: Any, **options: Any) -> TableWriter:
        return TableWriter.create(tmp_path / "table", COLUMNS, spec, **options)

    return make


def rows(start: int, stop: int, region: str = "eu") -> list[dict[str, Any]]:
    return [{"id": i, "region": region} for i in range(start, stop)]


def plan(table: TableWriter, limit: int | None, filter_: Any = None, **request: Any) -> Plan:
    scan = scan_of(table, filter_, limit=limit, **request)
    planned = plan_files(scan, STORAGE)
    assert comparable(planned) == comparable(plan_plainly(scan, STORAGE))
    return planned


def files(planned: Plan) -> list[str]:
    return list(dict.fromkeys(task.data_file.location for task in planned.tasks))


def sizes(planned: Plan) -> list[int]:
    return [task.data_file.record_count for task in planned.tasks]


def test_the_first_files_that_have_the_rows_are_planned(create):
    table = create()
    with table.commit() as commit:
        for first in range(0, 30, 10):
            commit.append(rows(first, first + 10))
    whole = files(plan(table, None))

    for limit, kept in ((1, 1), (10, 1), (11, 2), (20, 2), (30, 3), (31, 3), (1 << 62, 3)):
        found = plan(table, limit)
        assert files(found) == whole[:kept]
        assert found.total_records == min(limit, 30)
        assert found.counters.files_planned == kept
        assert found.counters.files_skipped_by_limit == 3 - kept


def test_manifests_that_follow_are_not_read(create):
    table = create()
    for first in range(0, 30, 10):
        table.append(rows(first, first + 10))
    storage, cache = RecordingStorage(), ManifestCache()
    for _ in range(2):
        plan_files(scan_of(table), storage, cache)

    found = plan_files(scan_of(table, limit=15), storage, cache)

    manifests = found.counters.data_manifests
    assert (manifests.listed, manifests.by_limit, manifests.read) == (3, 1, 2)
    assert found.trace.manifests_cached == 2
    assert found.counters.files == found.counters.files_planned == 2


def test_only_the_first_manifests_are_fetched_where_they_have_the_rows(create):
    table = create()
    table.entries_per_manifest = 1
    with table.commit() as commit:
        for first in range(90):
            commit.append(rows(first, first + 1))
    storage = RecordingStorage()
    in_order = [line["manifest_path"] for line in table.lines(table.snapshot_id)]

    found = plan_files(scan_of(table, limit=2), storage)

    assert (found.total_records, len(found.tasks)) == (2, 2)
    assert found.counters.data_manifests.read == found.trace.manifests_fetched == 2
    assert set(in_order[:2]) < set(storage.read_locations)
    assert not set(in_order[8:]) & set(storage.read_locations)

    # what they do not have, the others have
    for limit, filter_, tasks in ((88, None, 88), (100, None, 90), (3, ["=", "region", "us"], 0)):
        assert len(plan_files(scan_of(table, filter_, limit=limit), storage).tasks) == tasks


def test_nothing_is_read_for_no_row(create):
    table = create()
    table.append(rows(0, 3))
    storage = RecordingStorage()

    found = plan_files(scan_of(table, limit=0), storage)

    assert (found.tasks, found.total_records, storage.read_locations) == ((), 0, [])


def test_files_of_which_a_filter_leaves_some_rows_count_nothing(create):
    table = create(("region", "identity"))
    table.append([*rows(0, 5, "us"), *rows(5, 50, "us")])
    table.append(rows(0, 10, "eu"))
    table.append(rows(5, 15, "us"))
    filter_ = ["or", ["=", "region", "eu"], [">=", "id", 10]]

    assert sizes(plan(table, 10, filter_)) == [10, 10]
    assert plan(table, 10, filter_).total_records == 10
    assert sizes(plan(table, 11, filter_)) == [10, 10, 50]
    assert plan(table, 11, filter_).total_records is None


def test_rows_that_vectors_delete_are_not_counted(create):
    table = create(format_version=3)
    (last,) = table.append(rows(0, 10))
    (first,) = table.append(rows(10, 20))
    table.write_vectors({first: [0, 1, 2], last: [0]})

    assert [len(plan(table, limit).tasks) for limit in (7, 8, 16, 17)] == [1, 2, 2, 2]
    assert [plan(table, limit).total_records for limit in (7, 8, 16, 17)] == [7, 8, 16, 16]


def test_files_with_other_deletes_count_nothing(create):
    table = create()
    (last,) = table.append(rows(0, 10))
    (first,) = table.append(rows(10, 20))
    table.delete_positions({first: [0]})

    assert files(plan(table, 3)) == [first.location, last.location]
    assert plan(table, 3).total_records == 3
    assert plan(table, 11).total_records is None


def test_all_ranges_of_a_file_are_planned_or_none(create):
    table = create()
    for first in (0, 100):
        table.append(rows(first, first + 100), layout=FileLayout(row_group_size=10))

    found = plan(table, 15, split_size=1)

    assert len(found.tasks) > 1
    assert len(files(found)) == 1
    assert found.total_bytes == found.tasks[0].data_file.size_bytes


def test_a_count_is_not_limited(create):
    table = create()
    for first in range(0, 30, 10):
        table.append(rows(first, first + 10))

    assert count(scan_of(table, limit=5), STORAGE).rows == 30


@given(seed=st.integers(0, 2**32), limit=st.sampled_from([1, 5, 6, 10, 20, 2**40, 2**62]))
def test_no_more_files_are_taken_than_have_the_rows(seed, limit):
    whole = random_tasks(Random(seed))
    left = RowLimit(limit, whole.deletes)

    taken = []
    for part in whole.files:
        if not left.is_reached:
            taken.append(left.first_of(part))

    tasks = PlannedTasks(taken, whole.deletes, whole.split_size or 0)
    assert list(tasks) == list(whole)[: len(tasks)]
    counted = count_plainly(tasks)[0]
    if left.is_reached:
        of_file = tasks.ranges.files.tolist()
        before = count_plainly(list(tasks)[: of_file.index(of_file[-1])])[0]
        assert before < limit <= counted
    else:
        assert len(tasks) == len(whole)
        assert counted < limit or limit > 1 << 40
    for part in taken:
        assert set(part.residual_of.tolist()) <= set(range(len(part.residuals)))
