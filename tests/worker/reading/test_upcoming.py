"""Tasks are opened before their turn: fewer rounds, the same rows, and no more than is wanted."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from floeberg.process.background import Background
from floeberg.process.storage.abandonable import AbandonableStorage, Ask
from floeberg.protocol.errors import Cancelled, MissingFile
from floeberg.protocol.plans import ReadOptions, ReadPlan, ResumePlace
from floeberg.worker.files.windows import Ahead
from floeberg.worker.reading import PlanReader, to_batches_for_tasks
from tests.support.lake import FileLayout, TableWriter, WrittenFile, required, schema
from tests.support.reads import CountingStorage, cut_at, placed_batches, plan_of
from tests.support.waiting import wait_until

NUMBERS = schema({"id": required("long"), "name": "string"})
THREADS = "test-fetch-files"
PLAIN = {"use_dictionary": False}


@pytest.fixture
def ahead() -> Ahead:
    return Ahead(Background(4, THREADS, idle_seconds=0.05))


@pytest.fixture
def storage() -> CountingStorage:
    return CountingStorage(is_far=True)


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    return TableWriter.create(tmp_path / "t", NUMBERS)


def append(table: TableWriter, files: int, rows: int = 20) -> list[WrittenFile]:
    """Append files of `rows` rows each; ids count on from file to file."""
    written: list[WrittenFile] = []
    with table.commit() as commit:
        for first in range(0, files * rows, rows):
            values = [{"id": i, "name": f"n{i % 5}"} for i in range(first, first + rows)]
            written += commit.append(values, layout=FileLayout(row_group_size=7))
    return written


def ids(plan: ReadPlan, storage: CountingStorage, ahead: Ahead | None, **options: Any) -> list[int]:
    batches = placed_batches(plan, storage=storage, ahead=ahead, **options)
    return [i for placed in batches for i in placed.batch["id"].to_pylist()]


def rounds(plan: ReadPlan, storage: CountingStorage) -> list[int]:
    """Return how many of the plan's data files each round asked for, in the order of the plan.

    Threads make the rounds, so that a later one may come to storage first.
    """
    order = {task.data_file.location: i for i, task in enumerate(plan.tasks)}
    asked = [sorted(order[name] for name in names if name in order) for names in storage.rounds]
    return [len(files) for files in sorted(asked)]


def test_small_files_come_in_ever_larger_rounds(
    table: TableWriter, storage: CountingStorage, ahead: Ahead
) -> None:
    files = append(table, 50)
    plan = plan_of(table)

    found = ids(plan, storage, ahead)

    assert found == ids(plan, CountingStorage(), None)
    assert rounds(plan, storage) == [2, 2, 3, 5, 9, 17, 12]
    assert storage.requests == {file.location: 1 for file in files}
    assert storage.bytes_read.total() == sum(t.data_file.size_bytes for t in plan.tasks)


def test_the_first_windows_of_larger_files_are_asked_for_ahead(
    table: TableWriter, storage: CountingStorage, ahead: Ahead
) -> None:
    text = bytes(range(97, 123)).decode() * 40
    with table.commit() as commit:
        for first in range(0, 8000, 1000):
            names = [f"{i}{text}" for i in range(first, first + 1000)]
            columns = pa.table({"id": range(first, first + 1000), "name": names})
            commit.append(columns, layout=FileLayout(codec="none", parquet=PLAIN))
    plan = plan_of(table)

    batches = to_batches_for_tasks(plan, storage, ahead=ahead)
    found = [next(batches).batch, next(batches).batch]
    wait_until(lambda: max(storage.requests.values()) == 2, "a window of the next file")
    found += [placed.batch for placed in batches]

    assert pa.Table.from_batches(found)["id"].to_pylist() == ids(plan, CountingStorage(), None)
    assert set(storage.requests.values()) == {2}  # the tail, and what is before it
    sizes = sum(task.data_file.size_bytes for task in plan.tasks)
    assert storage.bytes_read.total() == sizes - 8 * 4
    assert len(storage.rounds) == 4 + 8


def test_splits_of_a_file_are_fetched_and_parsed_once(
    table: TableWriter, storage: CountingStorage, ahead: Ahead
) -> None:
    (file,) = append(table, 1, rows=200)
    plan = plan_of(table, change=cut_at(500, 1000, 1500, 2000))
    assert len(plan.tasks) == 5

    found = ids(plan, storage, ahead)

    assert found == list(range(200))
    assert storage.requests == {file.location: 1}


def test_a_local_file_is_opened_when_its_turn_comes(table: TableWriter, ahead: Ahead) -> None:
    append(table, 20)
    storage = CountingStorage()
    batches = to_batches_for_tasks(plan_of(table), storage, ahead=ahead)
    before = set(threading.enumerate())  # those of other tests may be idle still

    next(batches)

    assert len(storage.rounds) == 1
    assert [t for t in threading.enumerate() if t.name == THREADS and t not in before] == []


def test_a_limit_opens_no_file_that_it_surely_does_not_need(
    table: TableWriter, storage: CountingStorage, ahead: Ahead
) -> None:
    append(table, 100)

    found = ids(plan_of(table, None, ReadOptions(limit=10)), storage, ahead)

    assert len(found) == 10
    assert len(storage.requests) == 1


def test_a_limit_on_filtered_rows_looks_ahead_as_it_goes_on(
    table: TableWriter, storage: CountingStorage, ahead: Ahead
) -> None:
    append(table, 100)
    plan = plan_of(table, ["=", "name", "n1"], ReadOptions(limit=10))

    found = ids(plan, storage, ahead)

    assert len(found) == 10
    # four rows a file: three files are read; what is asked for then may be given up before it is
    sizes = rounds(plan, storage)
    assert sizes[:2] == [1, 2]
    assert sizes[2:] in ([], [2])


def test_a_filter_prunes_and_keeps_the_order(
    table: TableWriter, storage: CountingStorage, ahead: Ahead
) -> None:
    append(table, 30)
    plan = plan_of(table, ["in", "id", [3, 100, 101, 333, 599]])

    assert ids(plan, storage, ahead) == ids(plan, CountingStorage(), None)


def test_reading_goes_on_at_any_place(
    table: TableWriter, storage: CountingStorage, ahead: Ahead
) -> None:
    append(table, 6)
    plan = plan_of(table)
    whole = ids(plan, CountingStorage(), None)

    for task in range(6):
        rest = ids(plan, storage, ahead, resume=ResumePlace(task, 13))
        assert rest == whole[task * 20 + 13 :]


def delete_positions(table: TableWriter, files: list[WrittenFile]) -> None:
    table.delete_positions({file: [1, 2, 19] for file in files})


def delete_equal(table: TableWriter, files: list[WrittenFile]) -> None:
    table.delete_equal([{"name": "n1"}], ["name"])
    table.delete_equal([{"id": 7}], ["id"])


def write_vectors(table: TableWriter, files: list[WrittenFile]) -> None:
    table.upgrade(3)
    table.write_vectors({file: [0, 5] for file in files})


@pytest.mark.parametrize("delete", [delete_positions, delete_equal, write_vectors])
def test_deletes_come_in_the_rounds_of_the_files_that_they_are_for(
    table: TableWriter,
    storage: CountingStorage,
    ahead: Ahead,
    delete: Callable[[TableWriter, list[WrittenFile]], None],
) -> None:
    files = append(table, 12)
    delete(table, files)
    plan = plan_of(table)
    deletes = {d.location for task in plan.tasks for d in task.delete_files}

    found = ids(plan, storage, ahead)

    assert found == ids(plan, CountingStorage(), None)
    assert len(found) < 240
    assert rounds(plan, storage) == [2, 2, 3, 5]
    vectors = sum(d.is_deletion_vector for task in plan.tasks for d in task.delete_files)
    assert sum(storage.requests[name] for name in deletes) == max(vectors, len(deletes))


def test_a_missing_file_is_an_error_after_the_rows_before_it(
    table: TableWriter, storage: CountingStorage, ahead: Ahead
) -> None:
    append(table, 10)
    plan = plan_of(table)
    whole = ids(plan, CountingStorage(), None)
    gone = plan.tasks[6].data_file.location
    table.local(gone).unlink()
    found: list[int] = []

    def read() -> None:
        for placed in to_batches_for_tasks(plan, storage, ahead=ahead):
            found.extend(placed.batch["id"].to_pylist())

    with pytest.raises(MissingFile, match=gone):
        read()

    assert found == whole[:120]


def test_a_filter_that_keeps_nothing_is_interrupted(
    table: TableWriter, storage: CountingStorage, ahead: Ahead
) -> None:
    append(table, 400, rows=2)
    plan = plan_of(table, ["=", "name", "n1 or none"])

    def check() -> None:
        if len(storage.rounds) >= 3:
            raise Cancelled("over")

    requests = Background(4, "test-request")
    ask: Ask = lambda request: requests.ask(request, check)  # noqa: E731

    with pytest.raises(Cancelled):
        list(to_batches_for_tasks(plan, AbandonableStorage(storage, ask, check), ahead=ahead))

    assert len(storage.rounds) <= 3 + 4  # each thread may have had one under way


def test_a_reader_that_is_dropped_asks_for_nothing_more(
    table: TableWriter, storage: CountingStorage, ahead: Ahead
) -> None:
    append(table, 60)
    batches = to_batches_for_tasks(plan_of(table), storage, ahead=ahead)
    next(batches)

    del batches
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == THREADS], "no threads")

    assert [len(locations) for locations in storage.rounds] == [2]


def test_several_threads_read_the_tasks_of_one_plan(
    table: TableWriter, storage: CountingStorage, ahead: Ahead
) -> None:
    files = append(table, 40)
    plan = plan_of(table)
    reader = PlanReader(plan, storage, ahead=ahead, readers=3)
    found: dict[int, pa.Table] = {}

    def read(first: int) -> None:
        for index in range(first, len(plan.tasks), 3):
            batches = [placed.batch for placed in reader.task_batches(index)]
            found[index] = pa.Table.from_batches(batches)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader.close()

    together = pa.concat_tables([found[index] for index in range(40)])
    assert together["id"].to_pylist() == ids(plan, CountingStorage(), None)
    assert storage.requests == Counter({file.location: 1 for file in files})
    assert len(storage.rounds) < 20
