from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.rest.scan_planning import ScanTasks

from floeberg.process.storage import open_storage
from floeberg.protocol.errors import CorruptManifest
from floeberg.server.planning import plan_files, rest_json, rest_scan_tasks
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.scans import scan_of

COLUMNS = schema(
    {
        "id": required("long"),
        "region": "string",
        "day": "date",
        "amount": "decimal(9, 2)",
        "raw": "binary",
        "note": "string",
    }
)


def rows(start: int, stop: int, region: str = "eu") -> list[dict[str, Any]]:
    day = datetime.date(2024, 1, 1)
    return [{"id": i, "region": region, "day": day, "amount": i} for i in range(start, stop)]


def as_json(table: TableWriter, filter_: Any = None, **request: Any) -> Any:
    written = rest_json(plan_files(scan_of(table, filter_, **request), open_storage()))
    as_read: Any = json.loads(json.dumps(written))
    # PyIceberg's own model takes it, but for null in a partition tuple, which Iceberg's own writes
    for file in [*as_read["delete-files"], *(t["data-file"] for t in as_read["file-scan-tasks"])]:
        file["partition"] = [v for v in file["partition"] if v is not None]
    ScanTasks.model_validate(as_read)
    return json.loads(json.dumps(written))


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    spec = [("region", "identity"), ("day", "day"), ("raw", "identity")]
    return TableWriter.create(tmp_path / "table", COLUMNS, spec, format_version=3)


def test_a_task_names_its_file_its_range_and_its_residual(table):
    (file,) = table.append(rows(0, 3))

    (task,) = as_json(table)["file-scan-tasks"]

    assert task["start"] == 0
    assert task["length"] == file.size_bytes
    assert task["spec-id"] == 0
    assert task["data-sequence-number"] == 1
    assert task["residual"] == ["true"]
    assert task["residual-filter"] is True
    assert task["delete-file-references"] == []
    data = task["data-file"]
    assert data["content"] == "data"
    assert data["file-path"] == file.location
    assert data["file-format"] == "parquet"
    assert data["partition"] == ["eu", "2024-01-01", None]
    assert data["record-count"] == 3
    assert data["file-size-in-bytes"] == file.size_bytes
    assert data["first-row-id"] == 0
    assert data["split-offsets"] == list(file.split_offsets)
    assert data["value-counts"]["keys"] == list(file.metrics.value_counts)
    lower = dict(zip(data["lower-bounds"]["keys"], data["lower-bounds"]["values"], strict=True))
    assert lower[1] == "0000000000000000"


def test_deletes_are_listed_once_and_referred_to_by_place(table):
    first, _ = table.append([*rows(0, 3), *rows(3, 5, "us")])
    vectors = table.write_vectors({first: [1]})
    equality = table.delete_equal([{"id": 2}], ["id"])

    written = as_json(table)

    by_path = {t["data-file"]["file-path"]: t for t in written["file-scan-tasks"]}
    places = by_path[first.location]["delete-file-references"]
    found = {written["delete-files"][place]["content"]: place for place in places}
    assert set(found) == {"position-deletes", "equality-deletes"}
    assert len(written["delete-files"]) == 2
    vector = written["delete-files"][found["position-deletes"]]
    assert vector["file-format"] == "puffin"
    assert vector["referenced-data-file"] == first.location
    assert vector["content-offset"] == vectors[0].content_offset
    assert vector["content-size-in-bytes"] == vectors[0].content_size_bytes
    assert written["delete-files"][found["equality-deletes"]]["equality-ids"] == [1]
    assert written["delete-files"][found["equality-deletes"]]["file-path"] == equality.location


def test_ranges_of_one_file_are_tasks_of_their_own(table):
    (file,) = table.append(rows(0, 10), layout=FileLayout(row_group_size=5))

    first, second = as_json(table, split_size=1)["file-scan-tasks"]

    assert (first["start"], second["start"]) == (0, file.split_offsets[1])
    assert first["length"] + second["length"] == file.size_bytes


@pytest.mark.parametrize(
    ("filter_", "residual"),
    [
        (["=", "id", 1], {"type": "eq", "term": "id", "value": 1}),
        (["!=", "id", 1], {"type": "not-eq", "term": "id", "value": 1}),
        (["<=", "amount", "1.5"], {"type": "lt-eq", "term": "amount", "value": "1.50"}),
        (["in", "id", [2, 1]], {"type": "in", "term": "id", "values": [1, 2]}),
        (["is-null", "note"], {"type": "is-null", "term": "note"}),
    ],
)
def test_residuals_have_rests_form(table, filter_, residual):
    table.append(rows(0, 3))

    (task,) = as_json(table, filter_)["file-scan-tasks"]

    assert task["residual-filter"] == residual


def test_long_conjunctions_become_balanced_pairs(table):
    table.append(rows(0, 3))
    many = ["or", *(["=", "amount", f"{i}.00"] for i in range(3)), [">", "id", 1]]

    (task,) = as_json(table, many)["file-scan-tasks"]

    assert task["residual-filter"]["type"] == "or"
    assert set(task["residual-filter"]) == {"type", "left", "right"}


def test_partition_values_of_a_dropped_column_keep_their_form(table):
    table.append(rows(0, 3))
    table.drop_column("region")

    (task,) = as_json(table)["file-scan-tasks"]

    assert task["data-file"]["partition"] == ["eu", "2024-01-01", None]


def test_a_partition_value_of_another_type_is_told_with_its_file(table):
    (file,) = table.append(rows(0, 3))
    table.edit(lambda m: m["partition-specs"][0]["fields"][0].update(transform="bucket[4]"))

    with pytest.raises(CorruptManifest, match=f"{file.location} does not fit partition spec 0"):
        as_json(table)


def test_scan_tasks_have_no_more_than_rest_names_and_the_statistics_asked_for(table):
    (file,) = table.append(rows(0, 3))
    plan = plan_files(scan_of(table, split_size=0), open_storage())

    written = rest_scan_tasks(plan.scan, plan.tasks, {1})

    (task,) = written["file-scan-tasks"]
    assert set(task) == {"data-file", "delete-file-references", "residual-filter"}
    assert task["data-file"]["value-counts"]["keys"] == [1]
    assert task["data-file"]["upper-bounds"]["keys"] == [1]
    (bare,) = rest_scan_tasks(plan.scan, plan.tasks, ())["file-scan-tasks"]
    assert set(task["data-file"]) - set(bare["data-file"]) >= {"value-counts", "lower-bounds"}
    assert bare["data-file"]["file-path"] == file.location


def test_a_tuple_with_null_is_left_out_for_who_cannot_read_it(table):
    with_null, without = table.append([*rows(0, 3), {**rows(3, 4, "us")[0], "raw": b"\x01"}])
    plan = plan_files(scan_of(table, split_size=0), open_storage())

    written = rest_scan_tasks(plan.scan, plan.tasks, (), with_null_partitions=False)

    found = {
        t["data-file"]["file-path"]: t["data-file"]["partition"] for t in written["file-scan-tasks"]
    }
    assert found == {with_null.location: [], without.location: ["us", "2024-01-01", "01"]}
