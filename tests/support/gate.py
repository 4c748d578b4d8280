"""A worker's reading that goes on only when the test lets it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.storage import Storage
from floeberg.worker.reading import PlacedBatch

NO_HURRY = threading.Event()
"""For `stop`: nobody asks a second time."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Gate:
    """Stands in for reading: batches of one row of nulls, each only when it is let through."""

    rows: int = 1000
    opened: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    closed: threading.Event = field(default_factory=threading.Event)

    def __call__(
        self, plan: ReadPlan, storage: Storage, *, resume: ResumePlace
    ) -> Iterator[PlacedBatch]:
        columns = arrow_schema(plan.projection)
        nulls = [pa.nulls(1, field.type) for field in columns]
        try:
            for row in range(self.rows):
                self.opened.acquire()
                storage.is_directory("/")  # as all reading comes by storage
                batch = pa.RecordBatch.from_arrays(nulls, schema=columns)
                yield PlacedBatch(batch, ResumePlace(0, row + 1))
        finally:
            self.closed.set()

    def let_through(self, batches: int) -> None:
        self.opened.release(batches)

    def closes_at_a_batch(self) -> bool:
        """Let a batch through, at which a stream notices that it is over; say whether it has."""
        self.let_through(1)
        return self.closed.is_set()
