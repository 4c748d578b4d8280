"""Counting by columns counts what counting task by task does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.expressions.model import FALSE, TRUE
from floeberg.protocol.files import Content, DataFile, DeleteFile, FileFormat
from floeberg.protocol.planned import References
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.server.planning.counting import count_tasks
from tests.support.plain_planner.counting import count_plainly
from tests.support.planned import numbered_deletes, planned_files

COUNTS = [0, 1, 5, 5, 10, 10, 10, -1, 2**62, 2**63 - 1]


def data_file(random: Random) -> DataFile:
    offsets = random.choice([(), (4, 100, 200)])
    return DataFile("d", FileFormat.PARQUET, random.choice(COUNTS), 300, 0, split_offsets=offsets)


def delete_file(random: Random) -> DeleteFile:
    format_, content = random.choice(
        [(FileFormat.PUFFIN, Content.POSITION_DELETES)] * 3
        + [(FileFormat.PARQUET, c) for c in (Content.POSITION_DELETES, Content.EQUALITY_DELETES)]
    )
    return DeleteFile("x", content, format_, random.choice(COUNTS), 10, 0)


def random_tasks(random: Random) -> PlannedTasks:
    deletes = [delete_file(random) for _ in range(random.randint(0, 4))]
    parts = []
    for _ in range(random.randint(0, 3)):
        files = [data_file(random) for _ in range(random.randint(0, 5))]
        rows = [i for i in range(len(files)) if random.randrange(4)]
        lists: Sequence[Sequence[int]] = [
            random.sample(range(len(deletes)), random.choice([0, 0, min(1, len(deletes))]))
            for _ in rows
        ]
        residuals = [TRUE, FALSE] if random.randrange(3) == 0 else [TRUE]
        residual_of = [random.randrange(len(residuals)) for _ in rows]
        parts.append(planned_files(files, rows, residuals, residual_of, lists))
    return PlannedTasks(parts, numbered_deletes(deletes), random.choice([0, 50]))


@given(seed=st.integers(0, 2**32))
def test_the_same_rows_are_counted_and_the_same_tasks_are_to_be_read(seed):
    tasks = random_tasks(Random(seed))

    counted = count_tasks(tasks)

    assert (counted.rows, list(counted.to_read)) == count_plainly(tasks)


def test_files_that_share_deletes_are_counted():
    vectors = [
        DeleteFile("x", Content.POSITION_DELETES, FileFormat.PUFFIN, count, 10, 0)
        for count in (1, 2, 4)
    ]
    part = planned_files([DataFile("d", FileFormat.PARQUET, 10, 300, 0) for _ in range(3)])
    starts, stops = np.array([[0, 0], [1, 0], [0, 2]]), np.array([[2, 0], [3, 0], [1, 3]])
    shared = References(starts, stops, np.arange(3))
    part = replace(part, deletes=shared)

    assert count_tasks(PlannedTasks([part], numbered_deletes(vectors))).rows == 30 - 3 - 6 - 5
