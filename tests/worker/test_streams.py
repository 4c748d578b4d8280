"""A stream asks about its call only while the call lasts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from floeberg.process.http import new_registry
from floeberg.process.storage import open_storage
from floeberg.protocol.errors import Cancelled
from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.storage import Storage
from floeberg.protocol.tickets import seal_ticket
from floeberg.worker.budget import Budget
from floeberg.worker.metrics import WorkerMetrics
from floeberg.worker.reading import PlacedBatch
from floeberg.worker.stream_log import StreamLog
from floeberg.worker.streams import Redeemer
from tests.support.gate import now_ms
from tests.support.lake import TableWriter, required, schema
from tests.support.reads import plan_of

KEYS = Keyring.generate()


def test_what_is_fetched_after_the_end_is_cancelled_without_asking_the_call(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", schema({"id": required("long")}))
    plan = plan_of(table)
    given: list[Storage] = []
    asked: list[None] = []

    def read(plan: ReadPlan, storage: Storage, *, resume: ResumePlace) -> Iterator[PlacedBatch]:
        given.append(storage)
        return iter(())

    def is_cancelled() -> bool:
        asked.append(None)
        return False

    budget = Budget(1, 1)
    metrics = WorkerMetrics(new_registry(), budget)
    redeemer = Redeemer(KEYS, budget, metrics, read, open_storage, StreamLog())
    ticket = seal_ticket(plan, KEYS, principal=None, expires_at_ms=now_ms() + 60_000)
    assert list(redeemer.redeem(ticket, is_cancelled).batches) == []
    before = len(asked)

    with pytest.raises(Cancelled):
        given[0].read(str(table.metadata_path))

    assert len(asked) == before
