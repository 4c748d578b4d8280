"""A plan's rows, wherever a read starts, stops or is cut."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.process.background import Background
from floeberg.protocol.errors import CorruptDataFile
from floeberg.protocol.plans import ReadOptions, ResumePlace
from floeberg.worker.cache import LoadingCache
from floeberg.worker.files.windows import Ahead
from floeberg.worker.reading import PlacedBatch
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.plain import multiset, plain_rows
from tests.support.reads import CountingStorage, cut_at, placed_batches, plan_of, read
from tests.support.reference import read_table

NUMBERS = schema({"id": required("long"), "name": "string"})
SMALL_GROUPS = FileLayout(row_group_size=7)


def rows(first: int, count: int) -> list[dict[str, Any]]:
    return [{"id": i, "name": f"n{i % 5}" if i % 4 else None} for i in range(first, first + count)]


def ids_of(batches: list[PlacedBatch]) -> list[int]:
    return [i for placed in batches for i in placed.batch["id"].to_pylist()]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    """Files of several row groups, with positions deleted and keys, and one without deletes."""
    table = TableWriter.create(tmp_path_factory.mktemp("numbers") / "t", NUMBERS)
    files = [table.append(rows(i * 40, 40), layout=SMALL_GROUPS)[0] for i in range(3)]
    table.delete_positions({files[1]: [0, 13, 14, 39], files[2]: [3]})
    table.delete_equal([{"name": "n1"}, {"name": None}], ["name"])
    table.append(rows(120, 40), layout=SMALL_GROUPS)
    return table


FILTERS = [None, [">", "id", 130], ["=", "name", "n2"], ["is-null", "name"], ["<", "id", 0]]


@pytest.mark.parametrize("filter_", FILTERS)
@pytest.mark.parametrize(
    "options", [ReadOptions(), ReadOptions(batch_size=3), ReadOptions(prune=False)]
)
def test_reads_what_the_plain_reader_reads(
    numbers: TableWriter, filter_: Any, options: ReadOptions
) -> None:
    table = read(plan_of(numbers, filter_, options))

    expected = read_table(numbers.directory, filter=filter_)
    assert multiset(plain_rows(table)) == multiset(expected)


@pytest.mark.parametrize("filter_", FILTERS)
def test_resumes_after_every_batch_with_exactly_the_rest(
    numbers: TableWriter, filter_: Any
) -> None:
    plan = plan_of(numbers, filter_, ReadOptions(batch_size=4))
    whole = placed_batches(plan)

    for i, placed in enumerate(whole):
        rest = placed_batches(plan, placed.place)
        assert ids_of(rest) == ids_of(whole[i + 1 :])


def test_resumes_at_every_row(numbers: TableWriter) -> None:
    plan = plan_of(numbers, select=("id", "_pos"))
    whole = plain_rows(read(plan))
    borders = [0, *(i for i in range(1, len(whole)) if whole[i]["_pos"] < whole[i - 1]["_pos"])]

    for task, border in enumerate(borders):
        stop = borders[task + 1] if task + 1 < len(borders) else len(whole)
        for row in range(0, 45):
            rest = placed_batches(plan, ResumePlace(task, row))
            found = ids_of(rest)
            here = [r["id"] for r in whole[border:stop] if r["_pos"] >= row]
            assert found == here + [r["id"] for r in whole[stop:]]


def test_the_place_after_the_last_batch_is_the_end(numbers: TableWriter) -> None:
    plan = plan_of(numbers)

    last = placed_batches(plan)[-1].place

    assert last == ResumePlace(len(plan.tasks), 0)
    assert placed_batches(plan, last) == []


@pytest.mark.parametrize("limit", [0, 1, 5, 36, 37, 1000])
def test_a_limit_is_exact_over_files(numbers: TableWriter, limit: int) -> None:
    everything = plain_rows(read(plan_of(numbers)))

    limited = plain_rows(read(plan_of(numbers, None, ReadOptions(limit=limit, batch_size=10))))

    assert limited == everything[:limit]


def test_a_limit_reads_no_file_that_it_does_not_need(numbers: TableWriter) -> None:
    plan = plan_of(numbers, None, ReadOptions(limit=3))
    storage = CountingStorage()

    read(plan, storage)

    read_files = {task.data_file.location for task in plan.tasks} & set(storage.requests)
    assert read_files == {plan.tasks[0].data_file.location}


@settings(max_examples=30)
@given(offsets=st.lists(st.integers(1, 4000), max_size=6))
def test_splits_tile_a_file_wherever_they_are_cut(numbers: TableWriter, offsets: list[int]) -> None:
    whole = plain_rows(read(plan_of(numbers)))

    split = plain_rows(read(plan_of(numbers, change=cut_at(*offsets))))

    assert split == whole


def test_batches_are_bounded_in_rows_and_bytes(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", NUMBERS)
    text = ["x" * 1000 if i % 100 == 0 else "y" for i in range(5000)]
    table.append(pa.table({"id": np.arange(5000), "name": text}))

    small = placed_batches(plan_of(table, None, ReadOptions(batch_bytes=8 << 10)))
    few = placed_batches(plan_of(table, None, ReadOptions(batch_size=7)))

    assert max(b.batch.nbytes for b in small) <= 16 << 10
    assert {b.batch.num_rows for b in few[:-1]} <= {7, 5000 % 7} | set(range(1, 8))
    assert sum(b.batch.num_rows for b in small) == 5000


def test_small_leftovers_of_a_filter_travel_together(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", NUMBERS)
    table.append(pa.table({"id": np.arange(200_000), "name": ["n"] * 200_000}))

    batches = placed_batches(plan_of(table, ["in", "id", [1, 100_000, 199_999]]))

    assert [b.batch["id"].to_pylist() for b in batches] == [[1, 100_000, 199_999]]


def test_rows_without_columns_are_counted(numbers: TableWriter) -> None:
    plan = plan_of(numbers, [">", "id", 125], select=())

    assert sum(b.batch.num_rows for b in placed_batches(plan)) == 34
    assert all(b.batch.num_columns == 0 for b in placed_batches(plan))


def test_pruning_reads_fewer_bytes_and_the_same_rows(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", NUMBERS)
    noise = np.random.default_rng(7)
    names = noise.bytes(1_600_000).hex()
    table.append(
        pa.table(
            {"id": np.arange(40_000), "name": [names[i * 80 : i * 80 + 80] for i in range(40_000)]}
        ),
        layout=FileLayout(row_group_size=1000, metrics="none"),
    )
    filter_ = ["and", [">=", "id", 10_500], ["<", "id", 10_600]]
    storage, unpruned = CountingStorage(), CountingStorage()

    found = read(plan_of(table, filter_), storage)
    same = read(plan_of(table, filter_, ReadOptions(prune=False)), unpruned)

    assert found.equals(same)
    assert found["id"].to_pylist() == list(range(10_500, 10_600))
    assert storage.bytes_read.total() < unpruned.bytes_read.total() * 0.7


def test_a_small_file_takes_one_request(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", NUMBERS)
    (file,) = table.append(rows(0, 40), layout=SMALL_GROUPS)
    storage = CountingStorage()

    read(plan_of(table), storage)

    assert storage.requests == {file.location: 1}


def test_a_delete_file_is_loaded_once_however_many_tasks_name_it(numbers: TableWriter) -> None:
    plan = plan_of(numbers, change=cut_at(300, 600))
    deletes = {d.location for task in plan.tasks for d in task.delete_files}
    storage, cache = CountingStorage(), LoadingCache()

    placed_batches(plan, storage=storage, deletes=cache)
    placed_batches(plan, storage=storage, deletes=cache)

    assert {storage.requests[location] for location in deletes} == {1}


LARGE = FileLayout(codec="none", parquet={"use_dictionary": False, "write_page_checksum": True})


@pytest.fixture
def large(tmp_path: Path) -> TableWriter:
    """A file that is larger than the tail which its footer comes with."""
    table = TableWriter.create(tmp_path / "t", NUMBERS)
    with table.commit() as commit:
        words = [f"{i} {'word ' * 300}" for i in range(1000)]
        commit.append(pa.table({"id": range(1000), "name": words}), layout=LARGE)
    return table


@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_footer_is_read_once_however_many_plans_name_its_file(
    is_ahead: bool, large: TableWriter
) -> None:
    large.append(rows(1000, 40), layout=SMALL_GROUPS)
    plan, footers = plan_of(large), LoadingCache()
    ahead = Ahead(Background(2, "test-fetch")) if is_ahead else None
    asked: list[dict[str, int]] = []

    for _ in range(2):
        storage = CountingStorage(is_far=True)
        found = placed_batches(plan, storage=storage, footers=footers, ahead=ahead)
        assert sorted(ids_of(found)) == list(range(1040))
        asked.append(
            {t.data_file.location: storage.requests[t.data_file.location] for t in plan.tasks}
        )

    assert [list(counts.values()) for counts in asked] == [[1, 2], [0, 1]]


def test_footers_are_kept_for_plans_that_read_alike(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", NUMBERS)
    table.append(rows(0, 40), layout=FileLayout(field_ids=False))
    mapping = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name"]}]
    footers = LoadingCache()

    table.set_properties({"schema.name-mapping.default": json.dumps(mapping[:1])})
    first = placed_batches(plan_of(table, select=("name",)), footers=footers)
    table.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    second = placed_batches(plan_of(table, select=("name",)), footers=footers)

    names = [batch.batch["name"].to_pylist() for batch in (*first, *second)]
    assert names == [[None] * 40, [row["name"] for row in rows(0, 40)]]


class DamagingStorage(CountingStorage):
    """Storage of which one answer, the second, has come damaged."""

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        parts = super().read_ranges(location, ranges)
        if self.requests[location] != 2:
            return parts
        middle = len(parts[0]) // 2
        return [parts[0][:middle] + b"?" + parts[0][middle + 1 :], *parts[1:]]


def test_what_has_proved_damaged_is_fetched_anew(large: TableWriter) -> None:
    plan, storage, footers = plan_of(large), DamagingStorage(), LoadingCache()
    with pytest.raises(CorruptDataFile):
        placed_batches(plan, storage=storage, footers=footers)
    assert footers.size_bytes == 0

    found = placed_batches(plan, storage=storage, footers=footers)

    assert ids_of(found) == list(range(1000))
    assert storage.requests.total() == 4


def test_metadata_columns_tell_where_a_row_is(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", NUMBERS, [("id", "bucket[2]")], format_version=3)
    table.append(rows(0, 20), layout=SMALL_GROUPS)
    files = table.append(rows(20, 20), layout=SMALL_GROUPS)
    table.write_vectors({files[0]: [1]})
    select = (
        "_row_id",
        "id",
        "_pos",
        "_file",
        "_last_updated_sequence_number",
        "_spec_id",
        "_deleted",
    )

    found = read(plan_of(table, [">", "id", 3], select=select))

    assert multiset(plain_rows(found)) == multiset(
        read_table(table.directory, filter=[">", "id", 3], select=list(select))
    )


def test_the_partition_column_spans_all_specs(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", NUMBERS, [("id", "bucket[2]")])
    table.append(rows(0, 4))
    table.evolve_spec([{"name": "name", "transform": "identity", "source-id": 2, "field-id": 1001}])
    table.append(rows(4, 3))

    found = plain_rows(read(plan_of(table, select=("id", "_partition", "_spec_id"))))

    old = [r["_partition"] for r in found if r["_spec_id"] == 0]
    new = [r["_partition"] for r in found if r["_spec_id"] == 1]
    assert {p["id_bucket"] for p in old} == {0, 1}
    assert {p["name"] for p in new} == {None, "n0", "n1"}
    assert all(p["name"] is None for p in old)
    assert all(p["id_bucket"] is None for p in new)
