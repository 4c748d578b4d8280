"""Read written tables as a worker does, task by task; and storage that counts requests."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa

from floeberg.process.storage import open_storage
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.model import TRUE
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.plans import START, ReadOptions, ReadPlan, ResumePlace
from floeberg.protocol.scans import ScanRequest, resolve
from floeberg.protocol.storage import Storage, StorageConfig
from floeberg.protocol.tasks import FileScanTask
from floeberg.server.planning import plan_files
from floeberg.worker.reading import PlacedBatch, to_batches_for_tasks
from tests.support.lake import TableWriter


def plan_of(
    table: TableWriter,
    filter: Any = None,
    options: ReadOptions | None = None,
    change: Callable[[FileScanTask], Sequence[FileScanTask]] | None = None,
    **request: Any,
) -> ReadPlan:
    """Return the plan of a scan.

    `filter` is in the JSON form, `request` is ScanRequest's; `change` may replace each task by
    others.
    """
    path = table.metadata_path
    metadata = TableMetadata.parse(path.read_bytes(), str(path))
    expression = TRUE if filter is None else expression_from_json(filter)
    scan = resolve(metadata, ScanRequest(filter=expression, **request))
    tasks: Sequence[FileScanTask] = plan_files(scan, open_storage()).tasks
    if change is not None:
        tasks = tuple(new for task in tasks for new in change(task))
    return ReadPlan(
        metadata.for_reading(scan.snapshot),
        scan.schema.schema_id,
        scan.projection,
        tuple(tasks),
        StorageConfig(),
        options or ReadOptions(),
    )


def placed_batches(
    plan: ReadPlan, resume: ResumePlace = START, storage: Storage | None = None, **options: Any
) -> list[PlacedBatch]:
    """Return the plan's batches, each checked against the plan's schema."""
    found = list(to_batches_for_tasks(plan, storage or open_storage(), resume=resume, **options))
    schema = arrow_schema(plan.projection)
    for placed in found:
        placed.batch.validate(full=True)
        assert placed.batch.schema.equals(schema, check_metadata=True)
        assert placed.batch.num_rows > 0
    return found


def read(plan: ReadPlan, storage: Storage | None = None) -> pa.Table:
    """Return the plan's rows as one table."""
    batches = [placed.batch for placed in placed_batches(plan, storage=storage)]
    return pa.Table.from_batches(batches, schema=arrow_schema(plan.projection))


def cut_at(*offsets: int) -> Callable[[FileScanTask], list[FileScanTask]]:
    """Return what cuts each task's file at the given bytes, wherever its row groups are."""

    def cut(task: FileScanTask) -> list[FileScanTask]:
        size = task.data_file.size_bytes
        borders = sorted({0, size, *(offset for offset in offsets if 0 < offset < size)})
        return [
            replace(task, start=start, length=stop - start) for start, stop in pairwise(borders)
        ]

    return cut


class CountingStorage:
    """Reads local files, and counts for each location the requests and the bytes they brought.

    `rounds` has the locations of each call for bytes: what is asked for in one call is fetched at
    once. With `is_far` it says that it is an object store, from which readers fetch ahead. `inner`
    reads, if not local files.
    """

    def __init__(self, inner: Storage | None = None, *, is_far: bool = False) -> None:
        self._inner = inner or open_storage()
        self._is_far = is_far
        self._lock = threading.Lock()
        self.rounds: list[list[str]] = []
        self.requests: Counter[str] = Counter()
        self.bytes_read: Counter[str] = Counter()

    def read(self, location: str) -> bytes:
        return self._counted([(location, [self._inner.read(location)])])[0]

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        parts = self._inner.read_ranges(location, ranges)
        return self._counted([(location, parts)])

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> list[list[bytes] | FloebergError]:
        found = self._inner.read_many(requests)
        answers = [(location, parts) for (location, _), parts in zip(requests, found, strict=True)]
        self._counted([(loc, [] if isinstance(p, FloebergError) else p) for loc, p in answers])
        return found

    def _counted(self, answers: Sequence[tuple[str, list[bytes]]]) -> list[bytes]:
        with self._lock:
            self.rounds.append([location for location, _ in answers])
            for location, parts in answers:
                self.requests[location] += len(parts)
                self.bytes_read[location] += sum(map(len, parts))
        return answers[0][1]

    def size(self, location: str) -> int:
        self.requests[location] += 1
        return self._inner.size(location)

    def open(self, location: str) -> pa.NativeFile:
        raise AssertionError(f"{location} is read by ranges, so that requests can be counted")

    def list(self, location: str) -> Sequence[str]:
        return self._inner.list(location)

    def is_directory(self, location: str) -> bool:
        return self._inner.is_directory(location)

    def is_local(self, location: str) -> bool:
        return not self._is_far
