from __future__ import annotations

import contextlib
import json
import math
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.files import NO_METRICS, Content, DataFile, DeleteFile, FileFormat
from floeberg.protocol.task_codec import (
    MalformedTasks,
    decode_tasks,
    decode_value,
    encode_tasks,
    encode_value,
)
from floeberg.protocol.tasks import FileScanTask
from floeberg.protocol.types import Json, Value
from tests.support.plan_strategies import SCHEMA, partition_values, task_lists

FILE = DataFile("s3://lake/t/data/a.parquet", FileFormat.PARQUET, 10, 1000, 0)
DELETE = DeleteFile(
    "s3://lake/t/data/d.parquet", Content.POSITION_DELETES, FileFormat.PARQUET, 1, 100, 0
)


def same(left: object, right: object) -> bool:
    """Say whether values are alike in all that `repr` shows: kind, NaN, zero's sign, scale."""
    return repr(left) == repr(right)


def without_metrics(task: FileScanTask) -> FileScanTask:
    return replace(
        task,
        data_file=replace(task.data_file, metrics=NO_METRICS),
        delete_files=tuple(replace(d, metrics=NO_METRICS) for d in task.delete_files),
    )


def through_json(document: Json) -> Json:
    return json.loads(json.dumps(document, allow_nan=False))


@given(task_lists())
def test_all_of_a_task_but_its_metrics_comes_back(tasks: tuple[FileScanTask, ...]):
    document, keys = encode_tasks(tasks)

    decoded = decode_tasks(through_json(document), keys, SCHEMA)

    assert same(decoded, tuple(without_metrics(task) for task in tasks))


@given(task_lists())
def test_the_same_tasks_give_the_same_document(tasks: tuple[FileScanTask, ...]):
    document, keys = encode_tasks(tasks)
    again = decode_tasks(through_json(document), keys, SCHEMA)

    assert encode_tasks(tasks) == (document, keys)
    assert encode_tasks(again) == (document, keys)


@given(partition_values)
def test_a_partition_value_comes_back_as_it_was(value: Value | None):
    assert same(decode_value(through_json(encode_value(value))), value)


@pytest.mark.parametrize(
    "value",
    [None, True, 1, 1.0, Decimal(1), "1", b"1", math.nan, math.inf, -0.0, 2**63 - 1, "", b""],
)
def test_values_that_look_alike_stay_apart(value: Value | None):
    alike = [True, 1, 1.0, Decimal(1), Decimal("1.0"), "1", b"1", value]
    tasks = [FileScanTask(replace(FILE, partition={1000: v})) for v in alike]

    document, keys = encode_tasks(tasks)

    decoded = decode_tasks(through_json(document), keys, SCHEMA)
    assert same([task.data_file.partition[1000] for task in decoded], alike)


def test_what_tasks_share_stands_once_and_is_shared_again():
    splits = tuple(FileScanTask(FILE, (DELETE,), start=i * 100, length=100) for i in range(10))

    document, keys = encode_tasks(splits)

    assert document["directories"] == ["s3://lake/t/data/"]
    assert document["files"]["name"] == ("a.parquet",)
    assert document["deletes"]["rows"] == 1
    assert document["residuals"] == [["true"]]
    decoded = decode_tasks(document, keys, SCHEMA)
    assert len({id(task.data_file) for task in decoded}) == 1
    assert len({id(task.delete_files[0]) for task in decoded}) == 1


def test_key_metadata_is_not_in_the_document():
    encrypted = replace(FILE, key_metadata=b"secret key")

    document, keys = encode_tasks([FileScanTask(encrypted)])

    assert keys == [b"secret key"]
    assert "secret" not in json.dumps(document)


def test_no_tasks_are_a_document_too():
    document, keys = encode_tasks([])

    assert decode_tasks(through_json(document), keys, SCHEMA) == ()


def broken(path: list[str | int], value: Json) -> Json:
    """Return a good document with `value` in the place of what `path` leads to."""
    document, _ = encode_tasks([FileScanTask(FILE, (DELETE,))])
    document = through_json(document)
    at = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return document


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        broken(["tasks", "file", 0], 1),
        broken(["tasks", "file", 0], -1),
        broken(["tasks", "file", 0], True),
        broken(["tasks", "deletes", 0], [-1]),
        broken(["tasks", "residual", 0], 9),
        broken(["tasks", "start"], ["0"]),
        broken(["tasks", "start"], []),
        broken(["tasks", "rows"], 2),
        broken(["tasks", "colour"], [1]),
        broken(["files", "name", 0], 7),
        broken(["files", "name", 0], None),
        broken(["files", "format", 0], "csv"),
        broken(["files", "records", 0], 1.5),
        broken(["files", "partition", 0], 3),
        broken(["files", "key"], [0]),
        broken(["deletes", "content", 0], 7),
        broken(["deletes", "sequence", 0], None),
        broken(["partitions", 0], [0, [1000, {"date": 1}]]),
        broken(["partitions", 0], [0, [1000, {"decimal": "x"}]]),
        broken(["partitions", 0], [0, [1000]]),
        broken(["residuals", 0], ["=", 999, 1]),
        broken(["residuals", 0], ["like", 1, "x"]),
        broken(["directories"], [7]),
    ],
)
def test_a_document_of_another_shape_is_refused(document: Json):
    with pytest.raises(MalformedTasks):
        decode_tasks(document, [], SCHEMA)


json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.data(), task_lists(), json_values)
def test_whatever_stands_in_a_document_nothing_else_is_raised(
    data: st.DataObject, tasks: tuple[FileScanTask, ...], value: Json
):
    document, keys = encode_tasks(tasks)
    at = document = through_json(document)
    while True:
        step = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[step], dict | list) or not at[step] or data.draw(st.booleans()):
            break
        at = at[step]
    at[step] = value

    with contextlib.suppress(MalformedTasks):
        decode_tasks(document, keys, SCHEMA)
