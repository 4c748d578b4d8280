"""Read a plan: its tasks in order, as batches of a size for the wire, each with its place.

A read may be resumed from any place, on any worker: it goes on with exactly the rows that come
after.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from floeberg.protocol.errors import CorruptTable
from floeberg.protocol.name_mapping import PROPERTY as NAME_MAPPING
from floeberg.protocol.plans import START, ReadPlan, ResumePlace
from floeberg.protocol.storage import Storage
from floeberg.protocol.tasks import FileScanTask
from floeberg.worker.blocks import BlockCache, BlockStorage, PlannedObjects
from floeberg.worker.cache import LoadingCache
from floeberg.worker.deletes.loading import DeleteLoader
from floeberg.worker.files.footers import Footers
from floeberg.worker.files.windows import Ahead
from floeberg.worker.reading.named import resolved
from floeberg.worker.reading.output import KeptRows
from floeberg.worker.reading.primed import PrimedStorage
from floeberg.worker.reading.slicing import join_small, slice_batch
from floeberg.worker.reading.tasks import TaskReader
from floeberg.worker.reading.upcoming import Upcoming

_SMALL = 8
"""What part of a batch's wanted size is enough to travel as it is, as a divisor: messages of a
quarter of a megabyte stream as fast, and to join them would copy every row."""

_PLAN_FOOTER_BYTES = 8 << 20
"""What a plan keeps of footers where its process keeps none: for the splits of a file."""


@dataclass(frozen=True, slots=True)
class PlacedBatch:
    """Rows, and the place after them."""

    batch: pa.RecordBatch
    place: ResumePlace


class PlanReader:
    """Reads the tasks of a plan, each once, in up to `readers` threads; closing it ends what is on
    its way.

    `deletes`, `footers` and `blocks` are what a process keeps of files between plans. With `ahead`,
    storage is asked before there is need, where that gains anything: for the next windows of a
    file, and for the next files. Never plans, and reads neither metadata nor manifests.
    """

    def __init__(
        self,
        plan: ReadPlan,
        storage: Storage,
        *,
        deletes: LoadingCache | None = None,
        footers: LoadingCache | None = None,
        blocks: BlockCache | None = None,
        ahead: Ahead | None = None,
        readers: int = 1,
    ) -> None:
        self._plan = plan
        self._on_disk: BlockStorage | None = None
        if blocks is not None:
            objects = PlannedObjects((plan.storage.store, blocks.environment), plan.tasks)
            storage = self._on_disk = BlockStorage(storage, blocks, objects)
        self._upcoming: Upcoming | None = None
        cache = deletes or LoadingCache()
        kept = footers or LoadingCache(_PLAN_FOOTER_BYTES)
        if ahead is None:
            self._reader = _task_reader(plan, storage, cache, kept)
            return
        primed = PrimedStorage(storage, ahead.background)
        self._reader = _task_reader(plan, primed, cache, kept)
        limit = plan.options.limit
        self._upcoming = Upcoming(
            plan.tasks, self._reader, primed, ahead, limit=limit, readers=readers
        )

    def batches(self, resume: ResumePlace = START) -> Generator[PlacedBatch, None, None]:
        """Yield the rows of the tasks in order, from `resume` on, without regard to a limit."""
        for index in range(resume.task, len(self._plan.tasks)):
            yield from self.task_batches(index, resume.row if index == resume.task else 0)

    def task_batches(self, index: int, from_row: int = 0) -> Iterator[PlacedBatch]:
        """Yield the rows of one task, from its file's row `from_row` on.

        Tasks are best begun in order: what comes next is told from those that were begun.
        """
        options = self._plan.options
        rows = self._rows(index, from_row)
        for kept in join_small(rows, options.batch_bytes // _SMALL, options.limit):
            yield from _placed(kept, index, options.batch_size, options.batch_bytes)

    def _rows(self, index: int, from_row: int) -> Iterator[KeptRows]:
        try:
            yield from self._read(index, from_row)
        except CorruptTable:
            self._forget(self._plan.tasks[index])
            raise

    def _forget(self, task: FileScanTask) -> None:
        """Keep nothing of a task's files, one of which has proved to be damaged: what came may have
        been, and not what is stored."""
        self._reader.forget(task)
        if self._on_disk is not None:
            self._on_disk.forget(task.data_file.location)
            for file in task.delete_files:
                self._on_disk.forget(file.location)

    def _read(self, index: int, from_row: int) -> Iterator[KeptRows]:
        if self._upcoming is not None:
            yield from self._upcoming.read(index, from_row)
            return
        task = self._plan.tasks[index]
        deletes = self._reader.load_deletes(task)
        with closing(self._reader.open(task, deletes, from_row=from_row)) as rows:
            yield from rows

    def close(self) -> None:
        if self._upcoming is not None:
            self._upcoming.close()


def to_batches_for_tasks(
    plan: ReadPlan,
    storage: Storage,
    *,
    resume: ResumePlace = START,
    deletes: LoadingCache | None = None,
    manifests: LoadingCache | None = None,
    footers: LoadingCache | None = None,
    blocks: BlockCache | None = None,
    ahead: Ahead | None = None,
) -> Iterator[PlacedBatch]:
    """Yield the rows of the plan's tasks in order, from `resume` on.

    Tasks that manifests name are resolved first, by those or by what `manifests` keeps of them.

    Every batch has the Arrow schema of `plan.projection`; without a row there is no batch. The
    plan's limit counts the rows of this call: whoever resumes knows how many came before, and cuts
    the rest. The other arguments are `PlanReader`'s.
    """
    limit = plan.options.limit
    plan = resolved(plan, storage, manifests)
    with (
        closing(
            PlanReader(plan, storage, deletes=deletes, footers=footers, blocks=blocks, ahead=ahead)
        ) as reader,
        closing(reader.batches(resume)) as batches,
    ):
        yield from batches if limit is None else _limited(batches, limit)


def _limited(pieces: Iterator[PlacedBatch], limit: int) -> Iterator[PlacedBatch]:
    """Yield the first `limit` rows; a batch that is cut short keeps its place, being the last."""
    remaining = limit
    while remaining > 0 and (piece := next(pieces, None)) is not None:
        rows = piece.batch.slice(0, remaining)
        remaining -= rows.num_rows
        yield PlacedBatch(rows, piece.place)


def _task_reader(
    plan: ReadPlan, storage: Storage, deletes: LoadingCache, footers: LoadingCache
) -> TaskReader:
    schema = plan.metadata.schema_by_id(plan.schema_id)
    loader = DeleteLoader(
        storage,
        plan.storage.store,
        plan.metadata,
        schema,
        deletes,
        plan.options.verify_crc,
    )
    return TaskReader(
        storage,
        plan.metadata,
        schema,
        plan.projection,
        loader,
        Footers(
            footers,
            plan.storage.store,
            plan.metadata.properties.get(NAME_MAPPING),
            plan.options.verify_crc,
        ),
        verify_crc=plan.options.verify_crc,
        prune=plan.options.prune,
    )


def _placed(
    kept: KeptRows, task: int, max_rows: int | None, max_bytes: int
) -> Iterator[PlacedBatch]:
    after = ResumePlace(task + 1, 0) if kept.next_row is None else ResumePlace(task, kept.next_row)
    pieces = list(slice_batch(kept.batch, max_rows, max_bytes))
    if len(pieces) == 1:
        yield PlacedBatch(pieces[0], after)
        return
    end, positions = 0, kept.positions()
    for piece in pieces:
        end += piece.num_rows
        is_last = end == kept.batch.num_rows
        place = after if is_last else ResumePlace(task, int(positions[end - 1]) + 1)
        yield PlacedBatch(piece, place)
