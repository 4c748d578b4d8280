from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.embedded import ScanOptions, TableScan, open_table
from floeberg.protocol.errors import (
    BadCommand,
    BadFilter,
    BadLiteral,
    BadRequest,
    ConflictingSnapshot,
    CorruptManifest,
    MissingFile,
    NoSnapshotAsOf,
    UnknownColumn,
    UnknownRef,
    UnknownSnapshot,
)
from floeberg.protocol.expressions.model import TRUE
from floeberg.server.planning import ManifestCache
from tests.support.lake import TableWriter, required, schema
from tests.support.orders import deleted_ids, live_ids
from tests.support.plain import multiset, plain_rows
from tests.support.reference import read_table
from tests.support.scans import RecordingStorage

FILTERS = [
    None,
    "id >= 100",
    "region = 'eu'",
    "amount IS NULL AND region != 'us'",
    "customer.vip = true OR note IS NOT NULL",
    "id < 0",
    ["in", "id", [1, 2, 41, 5001]],
    ["not", ["and", [">", "amount", 3], ["=", "region", "asia"]]],
]


@pytest.fixture(scope="session")
def scan(orders: TableWriter) -> TableScan:
    return open_table(str(orders.directory)).scan()


def filtered(scan: TableScan, filter_) -> TableScan:
    return scan if filter_ is None else scan.filter(filter_)


def table_of(scan: TableScan, batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches, schema=scan.schema())


# --- setters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.filter("id > 100"),
        lambda s: s.select(["id"]),
        lambda s: s.use_snapshot(1),
        lambda s: s.use_ref("v1"),
        lambda s: s.as_of(0),
        lambda s: s.with_split_size(1),
        lambda s: s.case_insensitive(),
    ],
)
def test_every_setter_returns_a_new_scan(scan, change):
    request = scan.request

    changed = change(scan)

    assert changed != scan
    assert scan.request == request


def test_filters_narrow_each_other(scan):
    both = scan.filter("id >= 100").filter(["=", "region", "eu"])

    assert both.to_table() == scan.filter("id >= 100 AND region = 'eu'").to_table()


def test_columns_come_in_the_order_of_select(scan):
    assert scan.select(["note", "id"]).to_table().column_names == ["note", "id"]
    assert scan.to_table().column_names == scan.schema().names


def test_dotted_names_reach_into_structs(scan):
    table = scan.select(["customer.name", "_pos", "id"]).to_table()

    assert table.schema.field("customer").type == pa.struct([("name", pa.string())])
    assert table.column_names == ["customer", "_pos", "id"]


def test_without_a_column_rows_are_counted(scan):
    table = scan.select([]).to_table()

    assert (table.num_rows, table.num_columns) == (len(live_ids()), 0)


def test_one_text_is_not_a_list_of_columns(scan):
    with pytest.raises(BadRequest, match=r"\['id'\]"):
        scan.select("id")
    with pytest.raises(BadRequest, match="paths"):
        scan.to_batches_for_paths("file.parquet")
    with pytest.raises(BadRequest, match="list of texts, and not of int"):
        scan.select([1])


# --- snapshots ------------------------------------------------------------------------------------


def test_a_tag_and_its_snapshot_have_the_schema_of_their_time(orders, scan):
    tagged = scan.use_ref("v1")
    tag_id = orders.metadata["refs"]["v1"]["snapshot-id"]

    assert sorted(tagged.to_table()["id"].to_pylist()) == list(live_ids(noted=False))
    assert "note" not in tagged.schema().names
    assert scan.use_snapshot(tag_id).to_table() == tagged.to_table()
    assert scan.use_ref("tag=v1").to_table() == tagged.to_table()


def test_a_branch_has_the_current_schema(scan):
    ids = scan.use_ref("audit").to_table()["id"].to_pylist()

    assert sorted(ids) == [*live_ids(noted=False), 9000]
    assert scan.use_ref("branch=audit").schema() == scan.schema()


def test_as_of_takes_milliseconds_or_a_datetime_with_a_zone(orders, scan):
    at_ms = orders.snapshot(orders.metadata["refs"]["v1"]["snapshot-id"])["timestamp-ms"]
    at = datetime.fromtimestamp(at_ms / 1000, UTC)

    assert scan.as_of(at_ms).to_table() == scan.use_ref("v1").to_table()
    assert scan.as_of(at).request == scan.as_of(at_ms).request
    assert scan.as_of(at.isoformat()).request == scan.as_of(at_ms).request
    assert scan.as_of(np.int64(at_ms)).request == scan.as_of(at_ms).request


@pytest.mark.parametrize("time", [datetime(2025, 1, 1), "2025-01-01T00:00:00", "yesterday", 1.5])
def test_what_is_no_time_is_refused_as_over_flight(scan, time):
    with pytest.raises(BadCommand, match="as_of"):
        scan.as_of(time)


@pytest.mark.parametrize(
    "choose",
    [
        lambda s: s.use_snapshot(1).use_ref("v1"),
        lambda s: s.use_ref("v1").as_of(5),
        lambda s: s.as_of(5).use_snapshot(1),
    ],
)
def test_two_ways_to_choose_a_snapshot_are_refused(scan, choose):
    with pytest.raises(ConflictingSnapshot):
        choose(scan).schema()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda s: s.use_snapshot(1), UnknownSnapshot),
        (lambda s: s.use_ref("nope"), UnknownRef),
        (lambda s: s.use_ref("tag=audit"), UnknownRef),
        (lambda s: s.as_of(0), NoSnapshotAsOf),
        (lambda s: s.select(["nope"]), UnknownColumn),
        (lambda s: s.filter("nope = 1"), UnknownColumn),
        (lambda s: s.filter("id = 'x'"), BadLiteral),
        (lambda s: s.with_split_size(-1), BadCommand),
    ],
)
def test_what_is_wrong_raises_at_the_call_and_not_on_the_first_batch(scan, change, error):
    wrong = change(scan)

    for ask in (wrong.schema, wrong.plan_files, wrong.plan_files_json, wrong.to_batch_reader):
        with pytest.raises(error):
            ask()


def test_a_filter_that_cannot_be_parsed_is_refused_by_the_setter(scan):
    with pytest.raises(BadFilter):
        scan.filter("id >")
    with pytest.raises(BadFilter):
        scan.filter(["between", "id", 1, 2])


def test_a_manifest_that_is_damaged_raises_before_any_batch(directory: Path):
    writer = TableWriter.create(directory, schema({"id": required("long")}))
    writer.append([{"id": 1}])
    scan = open_table(str(directory)).scan()
    (line,) = writer.lines(writer.snapshot_id)
    manifest = writer.local(line["manifest_path"])
    manifest.write_bytes(manifest.read_bytes()[:100])

    with pytest.raises(CorruptManifest):
        scan.to_batch_reader()
    manifest.unlink()
    with pytest.raises(MissingFile):
        scan.to_batch_reader()


def test_a_data_file_that_is_gone_is_an_error_and_not_a_shorter_answer(directory: Path):
    writer = TableWriter.create(directory, schema({"id": required("long")}))
    for number in range(4):
        writer.append([{"id": number}])
    writer.local(writer.files()[2].location).unlink()
    scan = open_table(str(directory)).scan()

    for workers in (1, 3):
        with scan.to_batch_reader(ScanOptions(num_workers=workers)) as reader:
            assert reader.next_batch() is not None
            with pytest.raises(MissingFile):
                list(reader)


# --- planning -------------------------------------------------------------------------------------


def test_plans_are_equal_whatever_was_cached(scan):
    cache = ManifestCache()

    first, second = scan.plan_files_with(cache), scan.plan_files_with(cache)

    assert first == second == scan.plan_files()


def test_a_shared_cache_reads_each_manifest_once(orders):
    storage = RecordingStorage()
    scan = open_table(str(orders.directory), io=storage).scan()
    cache = ManifestCache()

    for snapshot in orders.metadata["snapshots"]:
        scan.use_snapshot(snapshot["snapshot-id"]).plan_files_with(cache)

    read = [place for place in storage.read_locations if place.endswith(".avro")]
    assert len(read) == len(set(read))


def test_the_plan_as_json_has_the_rest_shape(scan):
    whole = json.loads(scan.plan_files_json())
    filtered = json.loads(scan.filter("id = 1").plan_files_json())

    tasks = whole["file-scan-tasks"]
    assert len(tasks) == len(scan.plan_files())
    assert {json.dumps(task["residual"]) for task in tasks} == {'["true"]'}
    assert all(task["length"] > 0 for task in tasks)
    kinds = [d["content"] for d in whole["delete-files"]]
    assert sorted(set(kinds)) == ["equality-deletes", "position-deletes"]
    for task in tasks:
        for reference in task["delete-file-references"]:
            assert 0 <= reference < len(kinds)
    assert filtered["file-scan-tasks"][0]["residual"] == ["=", "id", 1]


def test_a_scan_is_explained_as_it_is_planned(scan):
    narrowed = scan.filter("region = 'eu' AND id > 200")

    found = narrowed.explain()

    assert found.tasks == len(narrowed.plan_files())
    assert found.endpoints is None
    assert found.steps[0].name == "bind names"


def test_a_split_size_divides_files_and_changes_no_row(scan):
    whole, divided = scan.plan_files(), scan.with_split_size(1).plan_files()

    assert len(divided) > len(whole)
    assert scan.with_split_size(0).plan_files() == whole
    assert scan.with_split_size(1).to_table() == scan.to_table()


# --- reading --------------------------------------------------------------------------------------


def test_the_rows_are_those_that_were_written_and_not_deleted(scan):
    ids = scan.to_table()["id"].to_pylist()

    assert sorted(ids) == list(live_ids())
    assert not deleted_ids() & set(ids)


FILTERS = [
    None,
    [">=", "id", 100],
    ["and", ["is-null", "amount"], ["!=", "region", "us"]],
    ["not", ["and", [">", "amount", 3], ["=", "region", "asia"]]],
]
ON_A_LATER_COLUMN = ["or", ["=", "customer.vip", True], ["not-null", "note"]]


@pytest.mark.parametrize(
    ("ref", "filter_"),
    [
        *product([None, "v1", "audit"], FILTERS),
        *product([None, "audit"], [ON_A_LATER_COLUMN]),  # which v1 does not have
    ],
)
def test_the_rows_are_those_of_the_plain_reader(orders, scan, ref, filter_):
    select = ["customer.name", "id", "amount", "_pos"]
    scan = filtered(scan, filter_).select(select)
    scan = scan if ref is None else scan.use_ref(ref)

    expected = read_table(orders.directory, ref=ref, filter=filter_, select=select)

    assert multiset(plain_rows(scan.to_table())) == multiset(expected)


@pytest.mark.parametrize("filter_", FILTERS)
def test_all_ways_to_read_give_the_same_rows(scan, filter_):
    scan = filtered(scan, filter_)
    expected = scan.to_table()
    tasks = scan.plan_files()
    paths = [task.data_file.location for task in tasks]

    assert table_of(scan, scan.to_batches()) == expected
    assert table_of(scan, list(scan.to_batch_reader())) == expected
    assert scan.to_batch_reader().to_arrow_reader().read_all() == expected
    assert table_of(scan, scan.to_batches_for_tasks(tasks)) == expected
    assert table_of(scan, [b for t in tasks for b in scan.to_batches_for_tasks([t])]) == expected
    assert table_of(scan, scan.to_batches_for_paths(paths)) == expected
    assert table_of(scan, [b for p in paths for b in scan.to_batches_for_paths([p])]) == expected
    assert scan.count() == expected.num_rows
    assert scan.select([]).to_table().num_rows == expected.num_rows
    assert all(batch.schema == scan.schema() for batch in scan.to_batches())


def test_splits_are_read_one_by_one(scan):
    scan = scan.filter("id >= 20").with_split_size(1)
    pairs = [(task.data_file.location, task.start) for task in scan.plan_files()]
    assert len({start for _, start in pairs}) > 2

    paths, starts = zip(*pairs, strict=True)
    one_by_one = [b for p, s in pairs for b in scan.to_batches_for_splits([p], [s])]

    assert table_of(scan, scan.to_batches_for_splits(paths, starts)) == scan.to_table()
    assert table_of(scan, one_by_one) == scan.to_table()


def test_what_todays_plan_does_not_hold_is_ignored(scan):
    (first, *_), none = scan.plan_files(), ["gone.parquet"]

    assert scan.to_batches_for_paths(none) == []
    assert scan.to_batches_for_splits([first.data_file.location], [first.start + 1]) == []
    with pytest.raises(BadRequest, match="one start"):
        scan.to_batches_for_splits(["a"], [])


def test_paths_keep_what_the_plan_decided(scan):
    """Its pruning, its residual and its deletes, as for the whole scan."""
    (path,) = scan.filter("id = 3").select(["_file"]).to_table()["_file"].to_pylist()
    scan = scan.filter("id IN (3, 9)").select(["id"])

    # order 9 is deleted from that file by its position
    assert table_of(scan, scan.to_batches_for_paths([path])).to_pylist() == [{"id": 3}]


options = st.builds(
    ScanOptions,
    batch_size=st.none() | st.integers(1, 50),
    limit=st.none() | st.integers(0, 300),
    verify_crc=st.booleans(),
    prune=st.booleans(),
    split_size=st.none() | st.sampled_from([0, 1, 2000]),
    num_workers=st.integers(1, 4),
    files_at_once=st.none() | st.integers(1, 3),
    overlap_io=st.booleans(),
)


@settings(deadline=None, max_examples=40)
@given(options=options, filter_=st.sampled_from(FILTERS))
def test_options_change_neither_rows_nor_their_order(scan, options, filter_):
    scan = filtered(scan, filter_)
    whole = scan.to_table()

    batches = scan.to_batches(options)

    assert table_of(scan, batches) == whole.slice(0, options.limit)
    assert scan.count(options) == whole.slice(0, options.limit).num_rows
    if options.batch_size is not None:
        assert all(batch.num_rows <= options.batch_size for batch in batches)


def test_a_table_never_written_to_has_a_schema_and_no_rows(directory: Path):
    TableWriter.create(directory, schema({"id": required("long"), "name": "string"}))
    scan = open_table(str(directory)).scan()

    assert scan.request.filter == TRUE
    assert scan.schema().names == ["id", "name"]
    assert scan.to_table() == scan.schema().empty_table()
    assert (scan.count(), scan.plan_files(), scan.to_batches()) == (0, [], [])
    assert json.loads(scan.plan_files_json())["file-scan-tasks"] == []
    assert scan.to_batch_reader(ScanOptions(num_workers=4)).read_all().num_rows == 0
    with pytest.raises(UnknownSnapshot):
        scan.use_snapshot(1).to_table()
