"""Deciding first and decoding the rest where rows are kept gives the rows of decoding at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.process.storage import open_storage
from floeberg.protocol.files import DataFile, FileFormat
from floeberg.protocol.plans import ReadOptions, ReadPlan, ResumePlace
from floeberg.protocol.schema import Schema
from floeberg.worker.deletes.loading import TaskDeletes
from floeberg.worker.files.opening import open_rows
from floeberg.worker.projection.resolution import Resolver
from floeberg.worker.reading.phases import Phases
from floeberg.worker.reading.row_filter import Residual, RowFilter
from tests.support.lake import (
    FileLayout,
    TableWriter,
    WrittenFile,
    list_of,
    required,
    schema,
    struct,
)
from tests.support.lake.schemas import arrow_schema
from tests.support.plain import multiset, plain_rows
from tests.support.reads import CountingStorage, cut_at, placed_batches, plan_of, read
from tests.support.reference import PlainScan

AT_ONCE = ReadOptions(prune=False)
ROWS = 1500
COLUMNS = schema(
    {
        "id": required("long"),
        "k": "int",
        "st": struct({"a": "int", "b": required("string")}),
        "l": list_of("int"),
        "text": "string",
        "name": "string",
    }
)


def rows(first: int = 0, count: int = ROWS) -> list[dict[str, Any]]:
    """Rows of 6.5 kB: 700 of them are more than a chunk, 30 far less."""
    return [
        {
            "id": i,
            "k": i // 100 if i % 7 else None,
            "st": {"a": i // 300, "b": f"b{i}"} if i % 5 else None,
            "l": [i, None] if i % 3 else None,
            "text": f"{i:05}" * 1300 if i % 11 else None,
            "name": f"name {i % 50}" if i % 13 else None,
        }
        for i in range(first, first + count)
    ]


def layout(row_group_size: int) -> FileLayout:
    return FileLayout(
        row_group_size=row_group_size, metrics="none", parquet={"use_dictionary": False}
    )


def with_dictionaries_and_views(table: TableWriter, row_group_size: int) -> WrittenFile:
    """Append the rows as a writer of Arrow's newer types would."""
    plain = pa.Table.from_pylist(rows(), arrow_schema(table.schema))
    newer = {
        "name": plain["name"].cast(pa.string_view()),
        "text": plain["text"].dictionary_encode(),
    }
    for name, column in newer.items():
        i = plain.schema.get_field_index(name)
        plain = plain.set_column(i, plain.schema.field(i).with_type(column.type), column)
    stored = FileLayout(
        row_group_size=row_group_size, metrics="none", parquet={"store_schema": True}
    )
    with table.commit() as commit:
        return commit.append_arrow(plain, layout=stored)


FILES: dict[str, Callable[[TableWriter], WrittenFile]] = {
    "one row group": lambda table: table.append(rows(), layout=layout(ROWS))[0],
    "row groups above a chunk": lambda table: table.append(rows(), layout=layout(700))[0],
    "tiny row groups": lambda table: table.append(rows(), layout=layout(30))[0],
    "dictionaries and views": lambda table: with_dictionaries_and_views(table, 400),
    "Avro": lambda table: table.append(rows(0, 400), layout=FileLayout("avro"))[0],
}


@pytest.fixture(scope="module", params=list(FILES))
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    """One file, of every shape that matters, with some rows deleted by position and by key."""
    table = TableWriter.create(tmp_path_factory.mktemp("phases") / "t", COLUMNS)
    file = FILES[request.param](table)
    # the first 60 rows are whole row groups where they are tiny
    table.delete_positions({file: [*range(60), 200, 701, 702, 1499]})
    table.delete_equal([{"id": 210, "st": {"a": 0, "b": "b211"}}], ["id"])
    table.delete_equal([{"st": {"a": None, "b": "b211"}}], ["st.b"])
    return table


FILTERS: list[Any] = [
    None,
    ["=", "k", 7],
    ["and", [">=", "id", 690], ["<", "id", 710]],
    ["or", ["=", "id", 3], ["=", "id", 1400]],
    ["is-null", "k"],
    ["=", "st.a", 2],
    ["is-null", "st"],
    ["and", ["=", "st.b", "b1201"], [">", "k", 0]],
    ["starts-with", "text", "0021"],
    ["in", "name", ["name 7", "name 9"]],
    ["=", "k", 99],
    [">=", "id", 0],
]
SELECTS: list[tuple[str, ...] | None] = [
    None,
    (),
    ("text",),
    ("k",),
    ("st.a", "l"),
    ("st.b", "_pos"),
    ("st", "id"),
    ("l", "text", "k", "name"),
]


@pytest.mark.parametrize("filter_", FILTERS, ids=str)
def test_the_rows_are_those_of_decoding_at_once(stored: TableWriter, filter_: Any) -> None:
    for select in SELECTS:
        plan = plan_of(stored, filter_, select=select)

        found = read(plan)

        assert found.equals(read(replace(plan, options=AT_ONCE))), select


def test_the_rows_are_those_of_the_plain_reader(stored: TableWriter) -> None:
    plainly = PlainScan.of(stored.directory)
    everything = list(plainly.rows())
    for filter_ in FILTERS:
        found = read(plan_of(stored, filter_))

        expected = plainly.answer(everything, filter_)
        assert multiset(plain_rows(found)) == multiset(expected), filter_


@settings(max_examples=15, deadline=None)
@given(
    filter_=st.sampled_from(FILTERS),
    select=st.sampled_from(SELECTS),
    row=st.integers(0, ROWS + 10),
    cuts=st.lists(st.integers(1, 100_000), max_size=3),
    limit=st.none() | st.integers(0, 50),
)
def test_a_read_may_begin_and_be_cut_anywhere(
    stored: TableWriter,
    filter_: Any,
    select: tuple[str, ...] | None,
    row: int,
    cuts: list[int],
    limit: int | None,
) -> None:
    planned = plan_of(stored, filter_, change=cut_at(*cuts), select=select)

    def found(prune: bool) -> list[Any]:
        plan = replace(planned, options=ReadOptions(batch_size=40, limit=limit, prune=prune))
        batches = placed_batches(plan, ResumePlace(0, row))
        for placed in batches[:3]:
            rest = placed_batches(plan, placed.place)
            if limit is None:
                assert num_rows(rest) == num_rows(batches) - num_rows_up_to(batches, placed)
        return [row for placed in batches for row in plain_rows(placed.batch)]

    assert found(prune=True) == found(prune=False)


def num_rows(batches: list[Any]) -> int:
    return sum(placed.batch.num_rows for placed in batches)


def num_rows_up_to(batches: list[Any], last: Any) -> int:
    return num_rows(batches[: batches.index(last) + 1])


# --- what is decoded when -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableWriter, DataFile]:
    table = TableWriter.create(tmp_path_factory.mktemp("plain") / "t", COLUMNS)
    (file,) = table.append(rows(0, 90), layout=layout(30))
    size = table.local(file.location).stat().st_size
    return table, DataFile(file.location, FileFormat.PARQUET, 90, size, spec_id=0)


# the leaves of COLUMNS
ID, K, ST_A, ST_B, L, TEXT, NAME = range(7)


@pytest.mark.parametrize(
    ("filter_", "select", "first", "later", "shared"),
    [
        # a column that both need is decoded once, and one that only the filter needs not filtered
        (["=", "k", 1], ("k", "text"), {K}, {TEXT}, 1),
        (["=", "k", 1], ("text", "name"), {K}, {TEXT, NAME}, 0),
        # nothing is left for later
        (["=", "k", 1], ("k",), {K}, set(), 1),
        (["=", "k", 1], (), {K}, set(), 0),
        (None, None, set(range(7)), set(), 6),
        # a column is decoded again where the answer needs more of it
        (["=", "st.a", 1], ("st.a",), {ST_A}, set(), 1),
        (["=", "st.a", 1], ("st",), {ST_A}, {ST_A, ST_B}, 0),
        (["=", "st.a", 1], ("st.b", "id"), {ST_A}, {ST_B, ID}, 0),
        (["and", ["=", "st.a", 1], ["=", "st.b", ""]], ("st.b", "l"), {ST_A, ST_B}, {L}, 1),
    ],
)
def test_columns_are_decoded_once_where_they_can_be(
    plain: tuple[TableWriter, DataFile],
    filter_: Any,
    select: tuple[str, ...] | None,
    first: set[int],
    later: set[int],
    shared: int,
) -> None:
    table, file = plain
    plan = plan_of(table, filter_, select=select)

    phases = phases_of(plan, file, at_once=False)
    at_once = phases_of(plan, file, at_once=True)

    assert (set(phases.first), set(phases.later), len(phases.shared)) == (first, later, shared)
    assert (set(at_once.first), set(at_once.later)) == (first | later, set())


def phases_of(plan: ReadPlan, file: DataFile, at_once: bool) -> Phases:
    residual = plan.tasks[0].residual
    fields = RowFilter.of(Residual.of(residual, table_schema(plan)), TaskDeletes()).columns
    with open_rows(open_storage(), file) as stored:
        resolver = Resolver(file.location, {})
        return Phases.of(fields, plan.projection.fields, resolver, stored, at_once=at_once)


def table_schema(plan: ReadPlan) -> Schema:
    return plan.metadata.schema_by_id(plan.schema_id)


# --- what is fetched ------------------------------------------------------------------------------

NOISE = schema({"id": required("long"), "near": "double", "text": "string"})
GROUPS, ROWS_A_GROUP = 8, 3000


def noise_rows() -> pa.Table:
    """Row groups of 3 MB; `near` is the number of the row group, but that each has extremes."""
    count = GROUPS * ROWS_A_GROUP
    near = np.repeat(np.arange(GROUPS, dtype=float), ROWS_A_GROUP)
    near[::ROWS_A_GROUP], near[1::ROWS_A_GROUP] = -1, GROUPS
    text = np.random.default_rng(5).bytes(count * 500).hex()
    parts = [text[i * 1000 : i * 1000 + 1000] for i in range(count)]
    return pa.table({"id": np.arange(count), "near": near, "text": parts})


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    table = TableWriter.create(tmp_path_factory.mktemp("noise") / "t", NOISE)
    table.append(noise_rows(), layout=layout(ROWS_A_GROUP))
    return table


@pytest.mark.parametrize(("filter_", "groups"), [(["=", "near", 2.0], 1), (["=", "near", 2.5], 0)])
def test_columns_of_row_groups_without_a_kept_row_are_not_fetched(
    noise: TableWriter, filter_: Any, groups: int
) -> None:
    storage, unpruned = CountingStorage(), CountingStorage()

    found = read(plan_of(noise, filter_), storage)
    same = read(plan_of(noise, filter_, AT_ONCE), unpruned)

    assert found.equals(same)
    assert found.num_rows == groups * (ROWS_A_GROUP - 2)
    size = unpruned.bytes_read.total()
    tail_and_filter = (512 << 10) + 8 * GROUPS * ROWS_A_GROUP
    assert storage.bytes_read.total() < tail_and_filter + groups * size / GROUPS


def test_row_groups_that_are_deleted_by_position_are_not_fetched(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", NOISE)
    (file,) = table.append(noise_rows(), layout=layout(ROWS_A_GROUP))
    table.delete_positions({file: list(range(1, 5 * ROWS_A_GROUP))})
    storage, unpruned = CountingStorage(), CountingStorage()

    found = read(plan_of(table), storage)
    same = read(plan_of(table, None, AT_ONCE), unpruned)

    assert found.equals(same)
    assert found.num_rows == (GROUPS - 5) * ROWS_A_GROUP + 1
    saved = unpruned.bytes_read[file.location] - storage.bytes_read[file.location]
    assert saved > 3.5 / GROUPS * unpruned.bytes_read[file.location]


def test_files_that_keep_rows_teach_to_fetch_ahead_in_the_next(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", NOISE)
    for _ in range(2):
        table.append(noise_rows(), layout=layout(ROWS_A_GROUP))
    storage, plan = CountingStorage(), plan_of(table, [">=", "id", 0])

    read(plan, storage)

    first, second = (storage.requests[task.data_file.location] for task in plan.tasks)
    assert second < first
