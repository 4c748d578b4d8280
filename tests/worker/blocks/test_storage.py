"""Reading through the cache on disk gives the rows of the store, and asks it for nothing twice."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from floeberg.process.background import Background
from floeberg.process.storage.abandonable import AbandonableStorage, Ask
from floeberg.process.storage.ranges import Range
from floeberg.protocol.errors import Cancelled, CorruptDataFile, FloebergError, MissingFile
from floeberg.protocol.plans import ReadOptions, ReadPlan
from floeberg.protocol.storage import StorageConfig
from floeberg.worker.blocks import BlockCache, BlockStorage, PlannedObjects, environment_store
from floeberg.worker.cache import LoadingCache
from floeberg.worker.files.windows import Ahead
from floeberg.worker.reading import PlanReader
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.reads import CountingStorage, cut_at, placed_batches, plan_of
from tests.support.waiting import wait_until

COLUMNS = schema({"id": required("long"), "a": "double", "b": "double", "name": "string"})
PLAIN = FileLayout(
    codec="none",
    row_group_size=9000,
    parquet={"use_dictionary": False, "write_page_checksum": True},
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    """Files of some megabytes, a small one, and deletes of every kind."""
    table = TableWriter.create(tmp_path_factory.mktemp("t") / "t", COLUMNS)
    with table.commit() as commit:
        files = [commit.append(rows(i * 30_000, 30_000), layout=PLAIN)[0] for i in range(3)]
        commit.append(rows(90_000, 50), layout=PLAIN)
    table.delete_positions({files[0]: [0, 5, 29_999], files[1]: [7]})
    table.delete_equal([{"id": 40_000}, {"id": 90_010}], ["id"])
    return table


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": ids,
            "a": [i / 7 for i in ids],
            "b": [i / 3 for i in ids],
            "name": [f"name {i} {'x' * 40}" for i in ids],
        }
    )


@pytest.fixture(params=["at need", "ahead"])
def ahead(request: pytest.FixtureRequest) -> Ahead | None:
    return Ahead(Background(4, "test-fetch")) if request.param == "ahead" else None


@pytest.fixture
def cache(tmp_path: Path) -> BlockCache:
    return BlockCache(tmp_path / "cache", 256 << 20)


def settle(cache: BlockCache) -> None:
    wait_until(lambda: cache.pending_bytes == 0, "the blocks to be written")


def read(
    plan: ReadPlan, cache: BlockCache | None, storage: CountingStorage, ahead: Ahead | None = None
) -> pa.Table:
    """Return the rows in order; every cache in memory is new."""
    batches = placed_batches(plan, storage=storage, blocks=cache, ahead=ahead)
    if cache is not None:
        settle(cache)
    return pa.Table.from_batches([placed.batch for placed in batches])


def far() -> CountingStorage:
    return CountingStorage(is_far=True)


PLANS: dict[str, dict[str, Any]] = {
    "everything": {},
    "two columns": {"select": ("id", "b")},
    "late columns": {"filter": [">", "a", 12_000]},
    "splits": {"change": cut_at(500_000, 1_000_000)},
    "small batches": {"options": ReadOptions(batch_size=1000)},
    "without pruning": {"options": ReadOptions(prune=False), "filter": ["<", "id", 100]},
}


@pytest.mark.parametrize("how", PLANS)
def test_a_second_reading_asks_the_store_for_nothing(
    how: str, table: TableWriter, cache: BlockCache, ahead: Ahead | None
) -> None:
    plan = plan_of(table, **PLANS[how])
    expected = read(plan, None, far())

    first, second = far(), far()
    assert read(plan, cache, first, ahead).equals(expected)
    assert read(plan, cache, second, ahead).equals(expected)

    assert first.requests.total() > 0
    assert second.requests == {}
    assert cache.counts().damaged == cache.counts().failures == 0


def test_another_projection_asks_only_for_what_it_has_more(
    table: TableWriter, cache: BlockCache
) -> None:
    both, one, all_ = (
        plan_of(table, select=("id", "a", "b")),
        plan_of(table, select=("a",)),
        plan_of(table),
    )
    read(both, cache, far())

    storage = far()
    read(one, cache, storage)
    assert storage.requests == {}
    assert read(all_, cache, storage).equals(read(all_, None, far()))
    assert 0 < storage.bytes_read.total() < 0.8 * sum(t.data_file.size_bytes for t in all_.tasks)


def test_what_is_damaged_on_disk_is_fetched_and_replaced(
    table: TableWriter, cache: BlockCache, tmp_path: Path
) -> None:
    plan = plan_of(table)
    expected = read(plan, cache, far())
    for i, path in enumerate(sorted((tmp_path / "cache" / "blocks").iterdir())):
        whole = path.read_bytes()
        path.unlink()
        place = len(whole) * (i + 1) // 20 % len(whole)
        flipped = whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :]
        path.write_bytes(whole[:place] if i % 2 else flipped)

    again, then = far(), far()
    assert read(plan, cache, again).equals(expected)
    assert again.requests.total() > 0
    assert cache.counts().damaged > 3
    assert read(plan, cache, then).equals(expected)
    assert then.requests == {}


class Damaging(CountingStorage):
    """A store of whose answers the second is damaged on its way."""

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[Range]]]
    ) -> list[list[bytes] | FloebergError]:
        found = super().read_many(requests)
        if len(self.rounds) != 2:
            return found
        return [
            [part[:100] + bytes([part[100] ^ 1]) + part[101:] for part in parts]
            if not isinstance(parts, FloebergError)
            else parts
            for parts in found
        ]


def test_what_came_damaged_is_not_kept_once_that_is_known(
    tmp_path: Path, cache: BlockCache
) -> None:
    table = TableWriter.create(tmp_path / "t", COLUMNS)
    table.append(rows(0, 30_000), layout=PLAIN)
    plan, storage, footers = plan_of(table), Damaging(is_far=True), LoadingCache()
    with pytest.raises(CorruptDataFile):
        placed_batches(plan, storage=storage, blocks=cache, footers=footers)
    settle(cache)
    wait_until(lambda: cache.size_bytes == 0, "what was kept to be removed")

    found = placed_batches(plan, storage=storage, blocks=cache, footers=footers)

    assert [i for p in found for i in p.batch["id"].to_pylist()] == list(range(30_000))


def test_a_file_that_was_replaced_by_one_of_another_size_is_another_one(
    tmp_path: Path, cache: BlockCache
) -> None:
    table = TableWriter.create(tmp_path / "t", COLUMNS)
    (file,) = table.append(rows(0, 20_000), layout=PLAIN)
    read(plan_of(table), cache, far())
    other = TableWriter.create(tmp_path / "u", COLUMNS)
    (new,) = other.append(rows(5, 20_000).set_column(1, "a", [[0.5] * 20_000]), layout=PLAIN)
    os.replace(new.location.removeprefix("file://"), file.location.removeprefix("file://"))
    plan, size = plan_of(table), new.size_bytes
    assert size != file.size_bytes

    (task,) = plan.tasks
    replaced = replace(task, length=size, data_file=replace(task.data_file, size_bytes=size))
    found = read(replace(plan, tasks=(replaced,)), cache, far())

    assert found["id"].to_pylist() == list(range(5, 20_005))


def test_a_file_whose_size_is_not_as_its_manifest_says_is_not_kept(
    tmp_path: Path, cache: BlockCache
) -> None:
    table = TableWriter.create(tmp_path / "t", COLUMNS)
    table.append(rows(0, 20_000), layout=PLAIN)
    plan = plan_of(table)
    (task,) = plan.tasks
    size = task.data_file.size_bytes - 9
    wrong = replace(task, data_file=replace(task.data_file, size_bytes=size))
    plan = replace(plan, tasks=(wrong,))

    for _ in range(2):
        storage = far()
        assert read(plan, cache, storage)["id"].to_pylist() == list(range(20_000))
        assert storage.bytes_read.total() > task.data_file.size_bytes
        wait_until(lambda: cache.size_bytes == 0, "what was kept to be removed")


@pytest.mark.parametrize("said", [1 << 62, -5])
def test_of_a_file_of_no_possible_size_nothing_is_kept_nor_forgotten(
    said: int, tmp_path: Path, cache: BlockCache
) -> None:
    # to forget a block after the other of the larger one would take years
    table = TableWriter.create(tmp_path / "t", COLUMNS)
    table.append(rows(0, 100), layout=PLAIN)
    (task,) = plan_of(table).tasks
    lying = replace(task, data_file=replace(task.data_file, size_bytes=said))
    location = task.data_file.location
    storage = BlockStorage(far(), cache, PlannedObjects("", [lying]))

    storage.forget(location)

    assert storage.size(location) == task.data_file.size_bytes
    assert storage.read_ranges(location, [(0, 4)]) == [b"PAR1"]
    settle(cache)
    assert cache.size_bytes == 0


@pytest.mark.parametrize("part", [(-3, 10), (5, -2)])
def test_a_range_that_can_not_be_is_the_stores_to_refuse(
    part: Range, three: Path, cache: BlockCache
) -> None:
    storage = BlockStorage(far(), cache, Objects(three, 3 << 20))

    with pytest.raises(FloebergError) as with_blocks:
        storage.read_ranges(str(three), [part])
    with pytest.raises(FloebergError) as without:
        far().read_ranges(str(three), [part])

    assert str(with_blocks.value) == str(without.value)


def test_a_stream_that_is_cancelled_leaves_whole_blocks_or_none(
    table: TableWriter, cache: BlockCache, tmp_path: Path
) -> None:
    plan, left = plan_of(table, options=ReadOptions(batch_size=500)), False

    def check() -> None:
        if left:
            raise Cancelled("the client has gone")

    class At(Ask):
        def __call__(self, request: Any, /) -> Any:
            check()
            return request()

    for batches in range(0, 40, 4):
        left = False
        storage = AbandonableStorage(far(), At(), check)
        ahead = Ahead(Background(4, "test-fetch"))
        reader = PlanReader(plan, storage, blocks=cache, ahead=ahead)
        stream = reader.batches()
        for _ in range(batches):
            next(stream)
        left = True
        stream.close()
        reader.close()
    settle(cache)

    assert all(p.suffix == ".block" for p in (tmp_path / "cache" / "blocks").iterdir())
    assert read(plan, cache, far()).equals(read(plan, None, far()))
    assert cache.counts().damaged == 0


def test_a_stream_of_a_client_that_has_gone_reads_no_blocks(
    table: TableWriter, cache: BlockCache
) -> None:
    plan = plan_of(table)
    read(plan, cache, far())

    def check() -> None:
        raise Cancelled("the client has gone")

    storage = AbandonableStorage(far(), lambda request: request(), check)
    with pytest.raises(Cancelled):
        placed_batches(plan, storage=storage, blocks=cache)


# --- one request at a time ------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path: Path) -> Path:
    path = tmp_path / "object"
    path.write_bytes(bytes(i * 31 % 256 for i in range(3 << 20)))
    return path


class Objects(PlannedObjects):
    def __init__(self, path: Path, size: int, store: str = "") -> None:
        table = TableWriter.create(path.parent / f"t{size}{store}", COLUMNS)
        table.append(rows(0, 3))
        (task,) = plan_of(table).tasks
        data_file = replace(task.data_file, location=str(path), size_bytes=size)
        super().__init__(store, [replace(task, data_file=data_file)])


@pytest.mark.parametrize("size", [2 << 20, 1 << 20, 1000, 0])
def test_an_object_that_is_shorter_than_was_said_is_no_longer_with_blocks(
    size: int, three: Path, cache: BlockCache
) -> None:
    whole, location = three.read_bytes(), str(three)
    storage = BlockStorage(far(), cache, Objects(three, len(whole)))
    storage.read_ranges(location, [(5 << 19, 1 << 19)])
    settle(cache)
    three.write_bytes(whole[:size])

    found = storage.read_ranges(location, [(100, len(whole) - 100), (0, 50), (7, 0)])

    assert found == [whole[100:size], whole[:50][:size], b""]


def test_errors_are_those_of_the_store_and_take_no_other_request_with_them(
    three: Path, cache: BlockCache
) -> None:
    storage = BlockStorage(far(), cache, Objects(three, 3 << 20))
    gone = str(three.parent / "gone")

    found = storage.read_many([(gone, [(0, 5)]), (str(three), [(3, 5), (1 << 20, 2)])])

    assert isinstance(found[0], MissingFile)
    assert found[1] == [three.read_bytes()[3:8], three.read_bytes()[1 << 20 :][:2]]
    with pytest.raises(MissingFile):
        storage.read_ranges(gone, [(0, 5)])


def test_what_no_task_names_and_what_is_local_is_passed_on(three: Path, cache: BlockCache) -> None:
    near, unknown = CountingStorage(), far()
    here, elsewhere = Objects(three, 3 << 20), Objects(three.parent / "other", 3)
    for inner, objects in ((near, here), (unknown, elsewhere)):
        storage = BlockStorage(inner, cache, objects)
        for _ in range(2):
            assert storage.read_ranges(str(three), [(0, 5)]) == [three.read_bytes()[:5]]
        assert inner.requests[str(three)] == 2
        assert storage.is_local(str(three)) is (inner is near)
        assert storage.read(str(three)) == three.read_bytes()
    settle(cache)
    assert cache.size_bytes == 0


def test_tasks_are_looked_at_as_they_are_needed(three: Path, table: TableWriter) -> None:
    tasks, looked = plan_of(table).tasks, []

    class Tasks(tuple[Any, ...]):
        def __iter__(self) -> Iterator[Any]:
            for task in super().__iter__():
                looked.append(task)
                yield task

    objects = PlannedObjects("", Tasks(tasks))

    assert objects.at(tasks[0].data_file.location) is not None
    assert len(looked) == 1
    assert objects.at(tasks[-1].data_file.location) is not None
    assert objects.at("unknown") is None


def test_a_location_in_another_store_is_another_object(three: Path) -> None:
    def digest(properties: dict[str, str], environ: dict[str, str]) -> bytes:
        store = (StorageConfig(properties).store, environment_store(environ))
        found = PlannedObjects(store, plan).at(plan[0].data_file.location)
        assert found is not None
        return found.digest

    table = TableWriter.create(three.parent / "t", COLUMNS)
    table.append(rows(0, 3))
    plan = plan_of(table).tasks

    plain = digest({}, {})
    assert plain == digest({"s3.access-key-id": "another's"}, {"HOME": "/root", "AWS_PROFILE": ""})
    others = {
        digest({"s3.endpoint": "http://a"}, {}),
        digest({"s3.endpoint": "http://b"}, {}),
        digest({"s3.region": "cn-north-1"}, {}),
        digest({"s3.profile-name": "p"}, {}),
        digest({}, {"AWS_ENDPOINT_URL_S3": "http://a"}),
        digest({}, {"AWS_PROFILE": "p"}),
    }
    assert len(others - {plain}) == 6
