"""Read a plan: its tasks in order, as batches of a size for the wire, each with its place.

A read may be resumed from any place, on any worker: it goes on with exactly the rows that come
after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from floeberg.protocol.plans import START, ReadPlan, ResumePlace
from floeberg.protocol.storage import Storage
from floeberg.worker.cache import LoadingCache
from floeberg.worker.deletes.loading import DeleteLoader
from floeberg.worker.files.windows import Ahead
from floeberg.worker.reading.output import KeptRows
from floeberg.worker.reading.slicing import join_small, slice_batch
from floeberg.worker.reading.tasks import TaskReader


@dataclass(frozen=True, slots=True)
class PlacedBatch:
    """Rows, and the place after them."""

    batch: pa.RecordBatch
    place: ResumePlace


def to_batches_for_tasks(
    plan: ReadPlan,
    storage: Storage,
    *,
    resume: ResumePlace = START,
    deletes: LoadingCache | None = None,
    ahead: Ahead | None = None,
) -> Iterator[PlacedBatch]:
    """Yield the rows of the plan's tasks in order, from `resume` on.

    Every batch has the Arrow schema of `plan.projection`; without a row there is no batch.
    `deletes` is what a worker keeps of delete files between plans. With `ahead`, storage is asked
    before there is need, where that gains anything. The plan's limit counts the rows
    of this call: whoever resumes knows how many came before, and cuts the rest. Never plans, and
    reads neither metadata nor manifests.
    """
    pieces = _pieces(plan, _task_reader(plan, storage, deletes or LoadingCache(), ahead), resume)
    return pieces if plan.options.limit is None else _limited(pieces, plan.options.limit)


def _pieces(plan: ReadPlan, reader: TaskReader, resume: ResumePlace) -> Iterator[PlacedBatch]:
    options = plan.options
    for index in range(resume.task, len(plan.tasks)):
        from_row = resume.row if index == resume.task else 0
        rows = reader.read(plan.tasks[index], from_row)
        for kept in join_small(rows, options.batch_bytes // 2, options.limit):
            yield from _placed(kept, index, options.batch_size, options.batch_bytes)


def _limited(pieces: Iterator[PlacedBatch], limit: int) -> Iterator[PlacedBatch]:
    """Yield the first `limit` rows; a batch that is cut short keeps its place, being the last."""
    remaining = limit
    while remaining > 0 and (piece := next(pieces, None)) is not None:
        rows = piece.batch.slice(0, remaining)
        remaining -= rows.num_rows
        yield PlacedBatch(rows, piece.place)


def _task_reader(
    plan: ReadPlan, storage: Storage, deletes: LoadingCache, ahead: Ahead | None
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
        verify_crc=plan.options.verify_crc,
        prune=plan.options.prune,
        ahead=ahead,
    )


def _placed(
    kept: KeptRows, task: int, max_rows: int | None, max_bytes: int
) -> Iterator[PlacedBatch]:
    after = ResumePlace(task + 1, 0) if kept.next_row is None else ResumePlace(task, kept.next_row)
    pieces = list(slice_batch(kept.batch, max_rows, max_bytes))
    if len(pieces) == 1:
        yield PlacedBatch(pieces[0], after)
        return
    end = 0
    for piece in pieces:
        end += piece.num_rows
        is_last = end == kept.batch.num_rows
        place = after if is_last else ResumePlace(task, int(kept.positions[end - 1]) + 1)
        yield PlacedBatch(piece, place)
