from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from floeberg.process.storage import open_storage
from floeberg.protocol.errors import (
    CorruptDeletes,
    CorruptManifest,
    CorruptMetadata,
    MissingFile,
    Unsupported,
)
from floeberg.protocol.expressions.model import TRUE
from floeberg.server.planning import ManifestCache, Plan, count, plan_files
from tests.support.lake import FileLayout, TableWriter, WrittenFile, required, schema
from tests.support.lake.puffin import write_puffin
from tests.support.scans import RecordingStorage, scan_of

STORAGE = open_storage()
COLUMNS = schema({"id": required("long"), "region": "string", "amount": "double"})

Create = Callable[..., TableWriter]


@pytest.fixture
def create(tmp_path: Path) -> Create:
    def make(*spec: Any, format_version: int = 2, **options: Any) -> TableWriter:
        directory = tmp_path / "table"
        return TableWriter.create(
            directory, COLUMNS, spec, format_version=format_version, **options
        )

    return make


def rows(start: int, stop: int, region: str | None = "eu") -> list[dict[str, Any]]:
    return [{"id": i, "region": region, "amount": i / 2} for i in range(start, stop)]


def plan(table: TableWriter, filter_: Any = None, **request: Any) -> Plan:
    return plan_files(scan_of(table, filter_, **request), STORAGE)


def files(planned: Plan) -> list[str]:
    return [task.data_file.location for task in planned.tasks]


def located(*written: WrittenFile) -> list[str]:
    return [f.location for f in written]


# --- the snapshot ---------------------------------------------------------------------------------


def test_a_manifest_list_that_lost_its_manifests_is_refused(create):
    table = create()
    table.append(rows(0, 3))
    location = table.local(table.snapshot()["manifest-list"])
    raw = location.read_bytes()
    # cut after the header, an Avro file is whole and empty
    location.write_bytes(raw[: raw.index(raw[-16:]) + 16])

    with pytest.raises(
        CorruptManifest, match=r"names no manifest, and snapshot .* has 1 data files"
    ):
        plan(table)


def test_a_table_never_written_to_has_an_empty_plan(create):
    planned = plan(create())

    assert planned.tasks == ()
    assert planned.total_records == 0


def test_a_snapshot_of_no_file_has_an_empty_plan(create):
    table = create()
    (file,) = table.append(rows(0, 3))
    table.remove(file)

    planned = plan(table)

    assert (planned.tasks, planned.total_records) == ((), 0)


def test_every_live_file_is_a_task_in_the_order_of_manifests(create):
    table = create()
    (first,) = table.append(rows(0, 3))
    (second,) = table.append(rows(3, 5))

    planned = plan(table)

    # the writer lists the newest manifest first
    assert files(planned) == located(second, first)
    assert planned.total_records == 5
    assert planned.total_bytes == first.size_bytes + second.size_bytes
    assert all(t.residual == TRUE and t.is_whole_file for t in planned.tasks)
    assert all(t.length == t.data_file.size_bytes for t in planned.tasks)


def test_the_scans_snapshot_is_planned(create):
    table = create()
    (first,) = table.append(rows(0, 3))
    before = table.snapshot_id
    table.remove(first)
    with table.commit(branch="audit") as commit:
        (staged,) = commit.append(rows(9, 10))

    assert files(plan(table)) == []
    assert files(plan(table, snapshot_id=before)) == located(first)
    assert files(plan(table, ref="audit")) == located(staged)


def test_a_false_filter_reads_nothing(create):
    table = create()
    table.append(rows(0, 3))
    storage = RecordingStorage()

    assert plan_files(scan_of(table, ["false"]), storage).total_records == 0
    assert storage.read_locations == []


def test_manifests_named_in_v1_metadata_are_planned(create):
    table = create(("region", "identity"), format_version=1)
    with table.commit(inline_manifests=True) as commit:
        eu, us = commit.append([*rows(0, 3, "eu"), *rows(3, 5, "us")])

    assert files(plan(table)) == located(eu, us)
    assert files(plan(table, ["=", "region", "us"])) == located(us)
    assert [t.data_file.data_sequence_number for t in plan(table).tasks] == [0, 0]
    storage, cache = RecordingStorage(), ManifestCache()
    plan_files(scan_of(table), storage, cache)
    plan_files(scan_of(table), storage, cache)
    assert len(storage.read_locations) == 1


def test_more_manifests_than_are_fetched_at_once_keep_their_order(create):
    table = create()
    table.entries_per_manifest = 1
    with table.commit() as commit:
        written = [commit.append(rows(i, i + 1))[0] for i in range(40)]

    assert files(plan(table)) == located(*written)


# --- pruning --------------------------------------------------------------------------------------


def test_a_partition_that_cannot_match_is_left_out(create):
    table = create(("region", "identity"))
    eu, us, null = table.append([*rows(0, 3), *rows(3, 5, "us"), *rows(5, 6, None)])

    assert files(plan(table, ["=", "region", "us"])) == located(us)
    assert files(plan(table, ["is-null", "region"])) == located(null)
    assert files(plan(table, ["not-null", "region"])) == located(eu, us)


def test_what_the_partition_decides_leaves_the_residual(create):
    table = create(("region", "identity"))
    table.append([*rows(0, 3), *rows(3, 5, "us")])

    decided = plan(table, ["=", "region", "us"])
    open_ = plan(table, ["and", ["=", "region", "us"], [">", "id", 3]])

    assert [t.residual for t in decided.tasks] == [TRUE]
    assert decided.total_records == 2
    assert [t.residual for t in open_.tasks] != [TRUE]
    assert open_.total_records is None


def test_a_file_whose_bounds_exclude_the_filter_is_left_out(create):
    table = create()
    table.append(rows(0, 3))
    (high,) = table.append(rows(10, 13))

    planned = plan(table, [">", "id", 5])

    assert files(planned) == located(high)
    assert planned.counters.files == 2
    assert planned.counters.files_skipped_by_metrics == 1
    assert planned.counters.files_planned == 1


def test_a_file_without_statistics_is_kept(create):
    table = create()
    (file,) = table.append(rows(0, 3), layout=FileLayout(metrics="none"))

    assert files(plan(table, [">", "id", 5])) == located(file)


def test_a_file_of_unknown_row_count_is_kept_and_not_counted(create):
    table = create()
    with table.commit() as commit:
        (file,) = commit.append(rows(0, 3))
        commit.added.clear()
        commit.add_file(replace(file, record_count=-1))

    assert files(plan(table, ["=", "id", 1])) == located(file)
    assert plan(table).total_records is None


def test_manifests_that_cannot_match_are_not_read(create):
    table = create(("region", "identity"))
    table.append(rows(0, 3, "eu"))
    (us,) = table.append(rows(3, 5, "us"))
    storage = RecordingStorage()

    planned = plan_files(scan_of(table, ["=", "region", "us"]), storage)

    assert files(planned) == located(us)
    assert (planned.counters.manifests, planned.counters.manifests_skipped) == (2, 1)
    assert len(storage.read_locations) == 2  # the list, and one manifest


def test_counters_say_what_ruled_files_out(create):
    table = create(("region", "identity"))
    table.append([*rows(0, 3, "eu"), *rows(3, 5, "us"), *rows(90, 95, "us")])

    counters = plan(table, ["and", ["=", "region", "us"], [">", "id", 100]]).counters

    assert counters.files == 2
    assert counters.files_skipped_by_partition == 1
    assert counters.files_skipped_by_metrics == 1


def test_each_manifest_is_pruned_by_its_own_spec(create):
    table = create(("region", "identity"))
    eu, us = table.append([*rows(0, 3, "eu"), *rows(3, 5, "us")])
    table.evolve_spec([("id", "bucket[4]")])
    later = table.append([*rows(5, 9, "eu")])

    planned = plan(table, ["=", "region", "us"])

    assert us.location in files(planned)
    assert eu.location not in files(planned)
    assert not set(files(planned)) & set(located(*later))  # by their statistics
    one = plan(table, ["=", "id", 6])
    assert len(files(one)) == 1


def test_a_dropped_source_column_prunes_nothing(create):
    table = create(("region", "identity"))
    written = table.append([*rows(0, 3, "eu"), *rows(3, 5, "us")])
    table.drop_column("region")

    assert files(plan(table)) == located(*written)
    assert files(plan(table, [">=", "id", 0])) == located(*written)


def test_an_unknown_transform_prunes_nothing_and_is_readable(create):
    table = create(("region", "identity"))
    written = table.append([*rows(0, 3, "eu"), *rows(3, 5, "us")])

    def change(metadata: Any) -> None:
        metadata["partition-specs"][0]["fields"][0]["transform"] = "zorder[2]"

    table.edit(change)

    assert files(plan(table)) == located(*written)
    pruned = plan(table, ["=", "region", "us"])
    assert files(pruned) == located(written[1])  # by statistics alone
    assert pruned.counters.files_skipped_by_partition == 0


def test_a_spec_that_the_table_lacks_is_an_error(create):
    table = create(("region", "identity"))
    table.append(rows(0, 3))

    def change(metadata: Any) -> None:
        metadata["partition-specs"] = [{"spec-id": 9, "fields": []}]
        metadata["default-spec-id"] = 9

    table.edit(change)

    with pytest.raises(CorruptMetadata, match="no partition spec with id 0"):
        plan(table)


# --- deletes --------------------------------------------------------------------------------------


def test_position_deletes_go_to_the_files_that_they_may_name(create):
    table = create()
    (first,) = table.append(rows(0, 3))
    (second,) = table.append(rows(3, 5))
    (deletes,) = table.delete_positions({first: [1]})
    (third,) = table.append(rows(5, 6))

    planned = {t.data_file.location: t.delete_files for t in plan(table).tasks}

    assert [d.location for d in planned[first.location]] == [deletes.location]
    assert planned[second.location] == ()
    assert planned[third.location] == ()


def test_a_global_equality_delete_goes_to_every_older_file(create):
    table = create(("region", "identity"))
    old = table.append([*rows(0, 3, "eu"), *rows(3, 5, "us")])
    deletes = table.delete_equal([{"id": 0}, {"id": 4}], ["id"])
    (new,) = table.append(rows(4, 5, "us"))

    planned = plan(table)
    by_file = {t.data_file.location: t.delete_files for t in planned.tasks}

    assert [[d.location for d in by_file[f.location]] for f in old] == [[deletes.location]] * 2
    assert by_file[new.location] == ()
    assert planned.counters.delete_files == 1


def test_an_equality_delete_goes_to_no_file_whose_values_lie_elsewhere(create):
    table = create()
    (first,) = table.append(rows(0, 3))
    (second,) = table.append(rows(3, 5))
    deletes = table.delete_equal([{"id": 4}], ["id"])

    planned = {t.data_file.location: t.delete_files for t in plan(table).tasks}

    assert planned[first.location] == ()
    assert [d.location for d in planned[second.location]] == [deletes.location]
    assert plan(table).total_records is None


def test_a_global_delete_applies_whatever_the_filter(create):
    table = create(("region", "identity"))
    table.append([*rows(0, 3, "eu"), *rows(3, 5, "us")])
    table.delete_equal([{"id": 4}], ["id"])

    (task,) = plan(table, ["=", "region", "us"]).tasks

    assert len(task.delete_files) == 1


def test_deletes_of_partitions_that_are_not_needed_are_not_read(create):
    table = create(("region", "identity"))
    eu, _ = table.append([*rows(0, 3, "eu"), *rows(3, 5, "us")])
    table.delete_positions({eu: [0]})
    storage = RecordingStorage()

    planned = plan_files(scan_of(table, ["=", "region", "us"]), storage)

    assert planned.counters.delete_files == 0
    assert len(storage.read_locations) == 2


def test_a_vector_replaces_position_deletes_in_an_upgraded_table(create):
    table = create()
    (first,) = table.append(rows(0, 3))
    (second,) = table.append(rows(3, 5))
    table.delete_positions({first: [1], second: [0]}, per_file=True)
    table.upgrade(3)
    table.write_vectors({first: [1, 2]})

    by_file = {t.data_file.location: t.delete_files for t in plan(table).tasks}

    assert [d.is_deletion_vector for d in by_file[first.location]] == [True]
    assert [d.is_deletion_vector for d in by_file[second.location]] == [False]


def test_two_vectors_of_one_file_are_an_error(create):
    table = create(format_version=3)
    (file,) = table.append(rows(0, 3))
    (vector,) = table.write_vectors({file: [1]})
    other = table.new_location("data/second.puffin")
    write_puffin(table.local(other), {file.location: [2]})
    with table.commit() as commit:
        commit.add_file(replace(vector, location=other))

    with pytest.raises(CorruptDeletes, match="two deletion vectors"):
        plan(table)


# --- row ids --------------------------------------------------------------------------------------


def test_files_of_version_3_have_their_first_row_id(create):
    table = create(format_version=3)
    table.append(rows(0, 3))
    table.append(rows(3, 5))

    assert sorted(t.data_file.first_row_id for t in plan(table).tasks) == [0, 3]


def test_a_snapshot_from_before_version_3_has_none(create):
    table = create()
    table.append(rows(0, 3))
    before = table.snapshot_id
    table.upgrade(3)
    table.append(rows(3, 5))

    assert [t.data_file.first_row_id for t in plan(table, snapshot_id=before).tasks] == [None]
    assert sorted(t.data_file.first_row_id for t in plan(table).tasks) == [0, 2]


# --- counting -------------------------------------------------------------------------------------


def test_vectors_are_counted_and_other_deletes_are_read(create):
    table = create(format_version=3)
    (first,) = table.append(rows(0, 5))
    (second,) = table.append(rows(5, 10))
    table.write_vectors({first: [1, 2]})

    assert plan(table).total_records == 8
    assert count(scan_of(table), STORAGE).rows == 8

    table.delete_equal([{"id": 7}], ["id"])
    with table.commit() as commit:
        commit.append(rows(10, 12))
    counted = count(scan_of(table), STORAGE)

    assert plan(table).total_records is None
    assert counted.rows == 3 + 2
    assert [t.data_file.location for t in counted.to_read] == [second.location]
    assert not counted.is_exact


def test_position_deletes_are_not_counted_as_they_may_name_a_row_twice(create):
    table = create()
    (file,) = table.append(rows(0, 5))
    table.delete_positions({file: [1, 1]})

    assert plan(table).total_records is None
    assert count(scan_of(table), STORAGE).rows == 0


def test_a_vector_with_more_rows_than_its_file_counts_nothing(create):
    table = create(format_version=3)
    (file,) = table.append(rows(0, 2))
    with table.commit() as commit:
        (vector,) = commit.write_vectors({file: [0]})
        commit.added.clear()
        commit.add_file(replace(vector, record_count=3))

    assert plan(table).total_records is None


def test_a_limit_caps_the_total(create):
    table = create()
    table.append(rows(0, 5))

    assert plan(table, limit=3).total_records == 3
    assert plan(table, limit=30).total_records == 5
    assert plan(table, ["=", "amount", 1.0], limit=0).total_records == 0


def test_a_divided_file_is_counted_once(create):
    table = create()
    (file,) = table.append(rows(0, 10), layout=FileLayout(row_group_size=2))

    planned = plan(table, split_size=1)

    assert len(planned.tasks) == len(file.split_offsets) == 5
    assert [t.start for t in planned.tasks] == [0, *file.split_offsets[1:]]
    assert planned.total_bytes == file.size_bytes
    assert planned.total_records == 10
    assert count(scan_of(table, split_size=1), STORAGE).rows == 10


def test_the_tables_split_size_is_used_unless_the_scan_says_otherwise(create):
    table = create(properties={"read.split.target-size": "1"})
    table.append(rows(0, 10), layout=FileLayout(row_group_size=5))

    assert len(plan(table).tasks) == 2
    assert len(plan(table, split_size=0).tasks) == 1


# --- the cache ------------------------------------------------------------------------------------


def test_a_second_plan_reads_nothing_and_is_the_same(create):
    table = create(("region", "identity"))
    table.append([*rows(0, 3), *rows(3, 5, "us")])
    table.delete_equal([{"id": 1}], ["id"])
    storage, cache = RecordingStorage(), ManifestCache()
    first = plan_files(scan_of(table), storage, cache)
    reads = len(storage.read_locations)

    second = plan_files(scan_of(table), storage, cache)

    assert second == first == plan(table)
    assert len(storage.read_locations) == reads == 3


def test_a_new_snapshot_reads_only_what_is_new(create):
    table = create()
    table.append(rows(0, 3))
    storage, cache = RecordingStorage(), ManifestCache()
    plan_files(scan_of(table), storage, cache)
    table.append(rows(3, 5))
    storage.read_locations.clear()

    planned = plan_files(scan_of(table), storage, cache)

    assert len(planned.tasks) == 2
    assert len(storage.read_locations) == 2  # the new list, and the new manifest


# --- what is wrong with a table -------------------------------------------------------------------


def manifest_of(table: TableWriter) -> Path:
    return table.local(table.lines(table.snapshot_id)[0]["manifest_path"])


def list_of(table: TableWriter) -> Path:
    return table.local(table.snapshot()["manifest-list"])


def test_a_missing_manifest_list_is_named(create):
    table = create()
    table.append(rows(0, 3))
    path = list_of(table)
    path.unlink()

    with pytest.raises(MissingFile, match=f"manifest list .*{path.name}"):
        plan(table)


def test_a_missing_manifest_is_named(create):
    table = create()
    table.append(rows(0, 3))
    path = manifest_of(table)
    path.unlink()

    with pytest.raises(MissingFile, match=f"^manifest .*{path.name}"):
        plan(table)


@pytest.mark.parametrize("of", [list_of, manifest_of])
def test_a_truncated_or_garbled_file_is_named(create, of):
    table = create()
    table.append(rows(0, 3))
    path = of(table)
    whole = path.read_bytes()
    for damaged in (whole[:-5], b"", b"garbled" * 20):
        path.write_bytes(damaged)
        with pytest.raises(CorruptManifest, match=path.name):
            plan(table)


def test_one_unreadable_manifest_of_many_fails_the_plan(create):
    table = create()
    for i in range(30):
        table.append(rows(i, i + 1))
    lines = table.lines(table.snapshot_id)
    table.local(lines[20]["manifest_path"]).write_bytes(b"garbled")

    with pytest.raises(CorruptManifest):
        plan(table)


def test_an_encrypted_manifest_list_is_refused_by_name(create):
    table = create(format_version=3)
    table.append(rows(0, 3))

    def change(metadata: Any) -> None:
        metadata["snapshots"][-1]["key-id"] = "k"

    table.edit(change)
    assert len(plan(table).tasks) == 1  # a plain file is read, whatever key it names
    list_of(table).write_bytes(b"AGS1....")

    with pytest.raises(Unsupported, match="encrypted"):
        plan(table)
