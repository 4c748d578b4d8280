"""Tasks from columns are the tasks that objects would give, however they are asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.expressions.model import FALSE, TRUE
from floeberg.protocol.files import Content, DataFile, DeleteFile, FileFormat, Metrics
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.splitting import Ranges
from floeberg.protocol.tasks import FileScanTask
from tests.support.plan_strategies import planned_tasks, tasks_of
from tests.support.planned import numbered_deletes, planned_files

FILES = [
    DataFile(f"s3://lake/{i}.parquet", FileFormat.PARQUET, 10, 100 + i, 0, split_offsets=(4, 60))
    for i in range(200)
]
DELETES = [
    DeleteFile(f"s3://lake/d{i}", Content.POSITION_DELETES, FileFormat.PARQUET, 1, 9, i)
    for i in range(2)
]


@given(planned_tasks())
def test_tasks_are_those_that_objects_would_give(tasks: PlannedTasks):
    wanted = tasks_of(tasks)

    assert list(tasks) == wanted
    assert [tasks[i] for i in range(len(tasks))] == wanted
    assert tasks == tuple(wanted)
    assert wanted == tasks
    assert tasks.sizes.tolist() == [task.size_bytes for task in wanted]
    assert tasks.total_bytes == sum(task.size_bytes for task in wanted)
    assert list(tasks.locations) == [task.data_file.location for task in wanted]
    assert list(tasks.locations[1:]) == list(tasks.locations)[1:]


@given(planned_tasks())
def test_tasks_without_metrics_are_the_same_otherwise(tasks: PlannedTasks):
    plain = [replace(task, data_file=replace(task.data_file, metrics=Metrics())) for task in tasks]

    assert tasks.without_metrics() == plain
    assert [tasks.without_metrics()[1:][i] for i in range(len(tasks) - 1)] == plain[1:]
    assert tasks.without_metrics().split_size == tasks.split_size


@given(planned_tasks(), st.integers(-9, 9), st.integers(-9, 9))
def test_a_slice_is_a_run_of_the_tasks(tasks: PlannedTasks, first: int, stop: int):
    assert tasks[first:stop] == list(tasks)[first:stop]
    assert tasks[first:][:stop] == list(tasks)[first:][:stop]


def test_deletes_and_residuals_are_each_files_own():
    part = planned_files(
        FILES[:3], [0, 2], (TRUE, FALSE), residual_of=[1, 0], deletes=[[1], [0, 1]]
    )

    tasks = PlannedTasks([part], numbered_deletes(DELETES), 0)

    assert tasks == [
        FileScanTask(FILES[0], (DELETES[1],), FALSE, 0, 100),
        FileScanTask(FILES[2], tuple(DELETES), TRUE, 0, 102),
    ]
    assert tasks[0].delete_files[0] is tasks[1].delete_files[1]


def test_splits_share_their_file():
    tasks = PlannedTasks([planned_files(FILES)], split_size=60)

    assert len(tasks) == 400
    assert tasks[0].data_file is tasks[1].data_file
    assert tasks[0].data_file is tasks[0].data_file
    made = list(tasks)
    assert all(made[i].data_file is made[i + 1].data_file for i in range(0, 400, 2))


def test_tasks_that_differ_are_not_equal():
    tasks = PlannedTasks([planned_files(FILES[:2])])

    assert tasks != PlannedTasks([planned_files(FILES[1::-1])])
    assert tasks != PlannedTasks([planned_files(FILES[:3])])
    assert tasks != [tasks[0], replace(tasks[1], start=1)]
    assert tasks != "ab"
    assert tasks != 7


def test_ranges_may_come_from_elsewhere_in_any_order():
    ranges = Ranges(np.array([1, 0, 1]), np.array([50, 0, 0]), np.array([51, 0, 50]))

    tasks = PlannedTasks.of_ranges([planned_files(FILES[:2])], numbered_deletes([]), ranges)

    assert [(t.data_file, t.start, t.length) for t in tasks] == [
        (FILES[1], 50, 51),
        (FILES[0], 0, 0),
        (FILES[1], 0, 50),
    ]
    assert tasks.sizes.tolist() == [51, 100, 50]  # no length is the whole file
    assert tasks.split_size is None


def test_sizes_beyond_64_bits_in_all_add_up():
    huge = [replace(file, size_bytes=2**62) for file in FILES[:4]]

    assert PlannedTasks([planned_files(huge)]).total_bytes == 2**64


def test_a_slice_has_no_step_and_a_place_exists():
    tasks = PlannedTasks([planned_files(FILES[:2])])

    with pytest.raises(ValueError, match="step"):
        tasks[::2]
    with pytest.raises(IndexError):
        tasks[2]
    assert tasks[-1] == tasks[1]
    assert repr(tasks) == "<PlannedTasks: 2 of 2 files>"
    assert PlannedTasks() == ()
