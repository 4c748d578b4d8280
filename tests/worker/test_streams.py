"""Streams whose clients leave: they end soon, whatever they wait for, and ask about their call only
while it lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from floeberg.process.background import Background
from floeberg.process.http import new_registry
from floeberg.process.storage import open_storage
from floeberg.protocol.errors import Cancelled
from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.storage import Storage, StorageConfig
from floeberg.protocol.tickets import seal_ticket
from floeberg.worker.budget import Budget
from floeberg.worker.cache import LoadingCache
from floeberg.worker.files.windows import Ahead
from floeberg.worker.metrics import WorkerMetrics
from floeberg.worker.reading import PlacedBatch, to_batches_for_tasks
from floeberg.worker.stream_log import StreamLog
from floeberg.worker.streams import ReadTasks, Redeemer
from tests.support.gate import now_ms
from tests.support.held import Holdup
from tests.support.lake import TableWriter, required, schema
from tests.support.reads import plan_of
from tests.support.waiting import wait_until

KEYS = Keyring.generate()


def redeemer_of(
    read: ReadTasks, open_storage: Callable[[StorageConfig], Storage]
) -> tuple[Redeemer, Budget]:
    budget = Budget(10, 1 << 40)
    metrics = WorkerMetrics(new_registry(), budget, {})
    return Redeemer(KEYS, budget, metrics, read, open_storage, StreamLog()), budget


def sealed(plan: ReadPlan) -> bytes:
    return seal_ticket(plan, KEYS, principal=None, expires_at_ms=now_ms() + 60_000)


class Client:
    """Reads a stream in a thread of its own until it leaves."""

    def __init__(self, redeemer: Redeemer, ticket: bytes) -> None:
        self.gone = threading.Event()
        self.outcome: str | None = None
        self._stream = redeemer.redeem(ticket, self.gone.is_set)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            self.outcome = f"{sum(batch.num_rows for batch, _ in self._stream.batches)} rows"
        except Cancelled:
            self.outcome = "cancelled"

    def leave(self) -> None:
        self.gone.set()

    def end(self, seconds: float = 20) -> str | None:
        self._thread.join(seconds)
        return self.outcome


@pytest.fixture
def holdup() -> Iterator[Holdup]:
    holdup = Holdup(".parquet")
    yield holdup
    holdup.release()


@pytest.mark.parametrize("ahead", [None, Ahead(Background(4, "st-ahead"))], ids=["", "ahead"])
def test_a_stream_ends_with_its_client_while_storage_hangs(
    tmp_path: Path, holdup: Holdup, ahead: Ahead | None
) -> None:
    table = TableWriter.create(tmp_path / "t", schema({"id": required("long")}))
    table.append([{"id": 1}])
    redeemer, budget = redeemer_of(partial(to_batches_for_tasks, ahead=ahead), holdup.storage)
    client = Client(redeemer, sealed(plan_of(table)))
    wait_until(lambda: holdup.held, "the stream to wait for storage")

    client.leave()

    assert client.end() == "cancelled"
    assert budget.streams == 0
    assert holdup.held > 0, "the request itself goes on"


def test_a_stream_ends_with_its_client_while_it_waits_for_what_another_one_loads(
    tmp_path: Path, holdup: Holdup
) -> None:
    table = TableWriter.create(tmp_path / "t", schema({"id": required("long")}))
    (file,) = table.append([{"id": i} for i in range(10)])
    table.delete_positions({file: [3]})
    deletes = LoadingCache()
    redeemer, _ = redeemer_of(partial(to_batches_for_tasks, deletes=deletes), holdup.storage)
    ticket = sealed(plan_of(table))
    patient = Client(redeemer, ticket)
    wait_until(lambda: deletes.misses and holdup.held, "the deletes to be loaded")
    hasty = Client(redeemer, ticket)
    wait_until(lambda: deletes.hits, "the second stream to wait for them")

    hasty.leave()

    assert hasty.end() == "cancelled"
    assert patient.end(0) is None
    holdup.release()
    assert patient.end() == "9 rows"


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

    redeemer, _ = redeemer_of(read, open_storage)
    assert list(redeemer.redeem(sealed(plan), is_cancelled).batches) == []
    before = len(asked)

    with pytest.raises(Cancelled):
        given[0].read(str(table.metadata_path))

    assert len(asked) == before
