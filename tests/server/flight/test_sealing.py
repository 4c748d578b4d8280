from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given

from floeberg.protocol.errors import PlanTooLarge
from floeberg.protocol.files import DataFile, FileFormat
from floeberg.protocol.named_tasks import NamedTasks
from floeberg.protocol.plan_codec import encode_plan, listed_bytes
from floeberg.protocol.planned_objects import as_planned
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.storage import StorageConfig
from floeberg.protocol.tickets import open_ticket
from floeberg.server.flight import sealing
from floeberg.server.flight.sealing import seal_tickets
from tests.support.plan_strategies import METADATA, SCHEMA, planned_tasks
from tests.support.planned import planned_files

KEYS = Keyring.generate()
PLAN = ReadPlan(METADATA, SCHEMA.schema_id, SCHEMA, (), StorageConfig())
FILES = [
    DataFile(f"s3://lake/db/orders/data/{i * i}.parquet", FileFormat.PARQUET, i % 7, 100 + i, 0)
    for i in range(3000)
]


def tickets_of(
    tasks: PlannedTasks, runs: Sequence[tuple[int, int]], max_info_bytes: int
) -> list[ReadPlan]:
    sealed = seal_tickets(
        PLAN,
        tasks,
        runs,
        KEYS,
        principal=None,
        expires_at_ms=1000,
        max_info_bytes=max_info_bytes,
    )
    return [open_ticket(ticket, KEYS, now_ms=0).plan for ticket in sealed]


def test_each_ticket_has_its_run_of_the_tasks():
    tasks = PlannedTasks([planned_files(FILES)])

    listed = tickets_of(tasks, [(0, 10), (10, 11), (11, 3000)], 1 << 20)
    named = tickets_of(tasks, [(0, 10), (10, 11), (11, 3000)], 0)

    assert [plan.tasks for plan in listed] == [tasks[:10], tasks[10:11], tasks[11:]]
    for plan, run in zip(named, (tasks[:10], tasks[10:11], tasks[11:]), strict=True):
        assert isinstance(plan.tasks, NamedTasks)
        assert plan.tasks.resolve([tasks.files[0].segment]) == run


def test_many_tasks_are_sealed_in_threads_and_in_order(monkeypatch: pytest.MonkeyPatch):
    tasks = PlannedTasks([planned_files(FILES)])
    runs = [(i, i + 100) for i in range(0, 3000, 100)]
    expected = [plan.tasks for plan in tickets_of(tasks, runs, 1 << 20)]
    monkeypatch.setattr(sealing, "_MANY_TASKS", 0)

    for max_info_bytes in (1 << 20, 0):
        found = tickets_of(tasks, runs, max_info_bytes)
        segments = [tasks.files[0].segment]
        assert expected == [
            plan.tasks.resolve(segments) if isinstance(plan.tasks, NamedTasks) else plan.tasks
            for plan in found
        ]


def test_files_are_listed_while_that_takes_no_more_than_it_may():
    tasks = PlannedTasks([planned_files(FILES)])
    size = listed_bytes(tasks)

    (within,) = tickets_of(tasks, [(0, 3000)], size)
    (beyond,) = tickets_of(tasks, [(0, 3000)], size - 1)

    assert not isinstance(within.tasks, NamedTasks)
    assert isinstance(beyond.tasks, NamedTasks)


def test_files_of_unknown_manifests_are_listed_whatever_that_takes():
    tasks = as_planned(list(PlannedTasks([planned_files(FILES[:20])])))

    (plan,) = tickets_of(tasks, [(0, 20)], 0)

    assert plan.tasks == tasks


def test_each_ticket_names_manifests_where_it_can():
    parts = [planned_files(FILES[:20]), replace(planned_files(FILES[20:40]), manifest=None)]
    tasks = PlannedTasks(parts)

    named, listed, both = tickets_of(tasks, [(0, 10), (20, 40), (10, 30)], 0)

    assert isinstance(named.tasks, NamedTasks)
    assert listed.tasks == tasks[20:40]
    assert both.tasks == tasks[10:30]


def test_tickets_beyond_what_any_client_takes_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sealing, "MAX_ANSWER_BYTES", 1500)
    tasks = PlannedTasks([planned_files(FILES[:20])])

    tickets_of(tasks, [(0, 20)], 0)
    for many in (16_000, 0):
        monkeypatch.setattr(sealing, "_MANY_TASKS", many)
        with pytest.raises(PlanTooLarge, match="more than 1500 bytes; narrow the filter"):
            tickets_of(tasks, [(0, 10), (10, 20)], 0)


def test_the_bytes_of_tickets_are_known_about_before_they_are_sealed():
    tasks = PlannedTasks([planned_files(FILES[i::3]) for i in range(3)])
    head = len(encode_plan(PLAN))

    sizes = [
        len(encode_plan(replace(PLAN, tasks=tasks[i : i + 500]))) - head
        for i in range(0, 3000, 500)
    ]

    assert listed_bytes(tasks) == pytest.approx(sum(sizes), rel=0.2)


@given(planned_tasks())
def test_that_takes_any_tasks(tasks: PlannedTasks):
    assert (listed_bytes(tasks) == 0) == (len(tasks) == 0)
    assert listed_bytes(tasks) == listed_bytes(tasks)


def test_files_are_not_listed_when_those_that_were_looked_at_are_not_like_the_rest():
    dice = Random(1)
    count, seen = 4000, 128
    looked_at = {round(k * (count - seen) / 3) for k in range(4)}
    files = [
        replace(FILES[0], location=f"s3://b/{name}.parquet")
        for name in (
            i
            if any(-2 <= i - first < seen + 2 for first in looked_at)
            else dice.randbytes(90).hex()
            for i in range(count)
        )
    ]
    tasks = PlannedTasks([planned_files(files)])
    assert listed_bytes(tasks) < 100_000

    plans = tickets_of(tasks, [(0, 2000), (2000, count)], 100_000)

    assert all(isinstance(plan.tasks, NamedTasks) for plan in plans)
