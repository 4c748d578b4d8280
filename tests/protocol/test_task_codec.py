from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.column_codec import MalformedColumns, NumberColumn, Reader, Writer
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.files import NO_METRICS, Content, DataFile, DeleteFile, FileFormat
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.planned_objects import as_planned
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.task_codec import EncodedTasks, TaskEncoder, decode_tasks, encode_tasks
from floeberg.protocol.tasks import FileScanTask
from floeberg.protocol.types import Value
from tests.support.plan_strategies import SCHEMA, planned_tasks, task_lists, tasks_of

FILE = DataFile("s3://lake/t/data/a.parquet", FileFormat.PARQUET, 10, 1000, 0)
DELETE = DeleteFile(
    "s3://lake/t/data/d.parquet", Content.POSITION_DELETES, FileFormat.PARQUET, 1, 100, 0
)
ALIKE = (None, True, 1, 1.0, Decimal(1), Decimal("1.0"), "1", b"1", math.nan, math.inf, -0.0, "")


def same(left: object, right: object) -> bool:
    """Say whether values are alike in all that `repr` shows: kind, NaN, zero's sign, scale."""
    return repr(left) == repr(right)


def without_metrics(tasks: Sequence[FileScanTask]) -> list[FileScanTask]:
    return [
        replace(
            task,
            data_file=replace(task.data_file, metrics=NO_METRICS),
            delete_files=tuple(replace(d, metrics=NO_METRICS) for d in task.delete_files),
        )
        for task in tasks
    ]


def decoded(document: EncodedTasks) -> PlannedTasks:
    described = json.loads(json.dumps(document.described, allow_nan=False))
    return decode_tasks(described, memoryview(document.tables), document.keys, SCHEMA)


def with_sorted_deletes(tasks: Iterable[FileScanTask]) -> list[FileScanTask]:
    return [
        replace(task, delete_files=tuple(sorted(task.delete_files, key=repr))) for task in tasks
    ]


@given(task_lists())
def test_all_of_a_task_but_its_metrics_comes_back(tasks: tuple[FileScanTask, ...]):
    found = decoded(encode_tasks(as_planned(tasks)))

    # deletes come in one order for all tasks, in which each had its own
    assert same(with_sorted_deletes(found), with_sorted_deletes(without_metrics(tasks)))


@given(planned_tasks())
def test_so_does_all_of_a_plan_of_columns(tasks: PlannedTasks):
    assert same(list(decoded(encode_tasks(tasks))), without_metrics(tasks_of(tasks)))


@given(planned_tasks())
def test_columns_and_objects_say_the_same(tasks: PlannedTasks):
    from_objects = decoded(encode_tasks(as_planned(tasks_of(tasks))))

    # objects have lost the order in which their deletes were numbered
    found = decoded(encode_tasks(tasks))
    assert same(with_sorted_deletes(found), with_sorted_deletes(from_objects))


@given(planned_tasks() | task_lists().map(as_planned))
def test_the_same_tasks_give_the_same_document(tasks: PlannedTasks):
    document = encode_tasks(tasks)

    assert encode_tasks(tasks) == document
    assert encode_tasks(decoded(document)) == document


def test_partition_values_that_look_alike_stay_apart():
    tasks = [FileScanTask(replace(FILE, partition={1000: v})) for v in ALIKE]

    found = decoded(encode_tasks(as_planned(tasks)))

    assert same([task.data_file.partition[1000] for task in found], list(ALIKE))


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), Decimal(10**37), Decimal("-0.01"), b""])
def test_a_partition_value_comes_back_as_it_was(value: Value):
    (task,) = decoded(encode_tasks(as_planned([FileScanTask(replace(FILE, partition={7: value}))])))

    assert same(task.data_file.partition, {7: value})


def test_what_tasks_share_stands_once_and_is_shared_again():
    splits = [FileScanTask(FILE, (DELETE,), start=i * 100, length=100) for i in range(10)]

    document = encode_tasks(as_planned(splits))

    assert document.tables.count(b"a.parquet") == 1
    assert document.tables.count(b"d.parquet") == 1
    assert document.described["residuals"] == [["true"]]
    found = decoded(document)
    assert len({id(task.data_file) for task in found}) == 1
    assert len({id(task.delete_files[0]) for task in found}) == 1


def test_only_files_of_the_tasks_and_deletes_of_these_are_in_a_document():
    tasks = [
        FileScanTask(replace(FILE, location=f"f{i}"), (replace(DELETE, location=f"d{i}"),))
        for i in range(9)
    ]

    document = encode_tasks(as_planned(tasks)[3:5])

    assert [name for name in range(9) if b"f%d" % name in document.tables] == [3, 4]
    assert [name for name in range(9) if b"d%d" % name in document.tables] == [3, 4]
    assert decoded(document) == tasks[3:5]


def test_key_metadata_is_not_in_the_document():
    files = [replace(FILE, location=f"f{i}", key_metadata=k) for i, k in enumerate([b"a!", None])]
    tasks = [FileScanTask(file, (replace(DELETE, key_metadata=b"secret key"),)) for file in files]

    document = encode_tasks(as_planned(tasks))

    assert document.keys == [b"a!", b"secret key", b"secret key"]
    assert b"secret" not in document.tables
    assert decoded(document) == tasks


@given(planned_tasks() | task_lists().map(as_planned), st.data())
def test_each_run_has_its_own_tasks_wherever_it_is_cut(tasks: PlannedTasks, data: st.DataObject):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(tasks)), max_size=4)) | {0, len(tasks)})
    encoder = TaskEncoder(tasks)

    for first, stop in pairwise(cuts):
        found = decoded(encoder.encode(first, stop))

        run = without_metrics(tasks_of(tasks)[first:stop])
        assert same(with_sorted_deletes(found), with_sorted_deletes(run))


def test_no_tasks_are_a_document_too():
    assert decoded(encode_tasks(PlannedTasks())) == ()


# --- what is not a document -----------------------------------------------------------------------


def small_plan() -> EncodedTasks:
    tasks = [
        FileScanTask(replace(FILE, split_offsets=(4, 500)), (DELETE,), start=0, length=500),
        FileScanTask(replace(FILE, partition={1000: "eü", 1001: Decimal("1.5")})),
        FileScanTask(replace(FILE, partition={1000: None, 1001: None})),
    ]
    return encode_tasks(as_planned(tasks))


def test_every_truncation_is_refused():
    document = small_plan()

    for size in range(len(document.tables)):
        with pytest.raises(MalformedColumns):
            decoded(replace(document, tables=document.tables[:size]))


def test_every_flipped_bit_is_refused_or_gives_tasks_that_can_be_made():
    document = small_plan()

    for at in range(len(document.tables)):
        for bit in range(8):
            raw = bytearray(document.tables)
            raw[at] ^= 1 << bit
            with contextlib.suppress(MalformedColumns):
                list(decoded(replace(document, tables=bytes(raw))))


@given(planned_tasks() | task_lists().map(as_planned), st.data())
def test_whatever_stands_in_the_tables_nothing_else_is_raised(
    tasks: PlannedTasks, data: st.DataObject
):
    document = encode_tasks(tasks)
    raw = bytearray(document.tables)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))

    with contextlib.suppress(MalformedColumns):
        list(decoded(replace(document, tables=bytes(raw))))


def changed(table: int, key: tuple[int, int], column: NumberColumn | None) -> EncodedTasks:
    """Return the document of one task with a delete in which one column is another."""
    document = encode_tasks(as_planned([FileScanTask(FILE, (DELETE,))]))
    reader, writer = Reader(memoryview(document.tables)), Writer()
    for number in range(4):
        read = reader.table()
        if number == table:
            read.columns.pop(key, None)
            if column is not None:
                read.columns[key] = column
        writer.table(read)
    return replace(document, tables=writer.finish())


def one(value: int, *, valid: bool = True) -> NumberColumn:
    return NumberColumn(np.array([value]), None if valid else np.array([False]))


@pytest.mark.parametrize(
    "document",
    [
        changed(0, (s.OWN, s.FORMAT), one(4)),
        changed(0, (s.OWN, s.FORMAT), one(-1)),
        changed(0, (s.OWN, s.SIZE_BYTES), None),
        changed(0, (s.OWN, s.SIZE_BYTES), one(0, valid=False)),
        changed(0, (s.OWN, s.LOCATION), None),
        changed(0, (s.OWN, s.LOCATION), one(1)),
        changed(0, (s.OWN, s.CONTENT), one(0)),
        changed(0, (s.OWN, s.KEY_METADATA), one(0)),
        changed(0, (s.PARTITION, 1000), one(0)),
        changed(0, (s.LOWER_BOUNDS, 1), one(0)),
        changed(1, (s.OWN, s.CONTENT), one(0)),
        changed(1, (s.OWN, s.CONTENT), one(3)),
        changed(2, (s.OWN, 1), one(1)),
        changed(2, (s.OWN, 1), one(-1)),
        changed(2, (s.OWN, 2), one(2)),
        changed(2, (s.ITEMS, 2), one(1)),
        changed(2, (s.ITEMS, 2), None),
        changed(2, (s.OWN, 9), one(1)),
        changed(3, (s.OWN, 1), one(0)),
        changed(3, (s.OWN, 1), one(2)),
        changed(3, (s.OWN, 1), one(2**62)),
        changed(3, (s.OWN, 9), one(1)),
        replace(changed(9, (0, 0), None), keys=[b"key"]),
        *(
            replace(
                changed(9, (0, 0), None),
                described={"data": [layout], "deletes": [[0]], "residuals": [["true"]]},
            )
            for layout in (
                [],
                7,
                ["0"],
                [0, [1000]],
                [0, [1000, "date", 0]],
                [0, [1000, "integer", "0"]],
                [0, [1000, "decimal", 5000]],
                [0, [1000, "text", 0], [1000, "text", 0]],
            )
        ),
    ],
)
def test_a_document_of_another_shape_is_refused(document: EncodedTasks):
    with pytest.raises(MalformedColumns):
        decoded(document)


@pytest.mark.parametrize("residual", [["=", 999, 1], ["like", 1, "x"], 7])
def test_a_residual_of_another_shape_is_refused(residual: object):
    document = changed(9, (0, 0), None)

    with pytest.raises((FloebergError, ValueError, KeyError, TypeError)):
        decoded(replace(document, described={**document.described, "residuals": [residual]}))
