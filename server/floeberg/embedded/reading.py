"""Read a plan with threads of this process, in plan order."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing

import pyarrow as pa

from floeberg.embedded.kept import KeptOfTable
from floeberg.process.ahead import read_in_order
from floeberg.process.background import Background
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.storage import Storage
from floeberg.worker.files.windows import Ahead
from floeberg.worker.reading import PlanReader, to_batches_for_tasks

# of all the scans in this process; without a scan there is no thread
_AHEAD = Ahead(Background(16, "floeberg-fetch"))


def read_plan(
    plan: ReadPlan, storage: Storage, kept: KeptOfTable, *, in_flight: int, overlap: bool
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the batches of `plan` in its order, with up to `in_flight` tasks open at once.

    With a limit, tasks are read one after the other: stopping early only means something in order.
    All threads share what is `kept` of footers and delete files.
    """
    if plan.options.limit == 0:
        return
    ahead = _AHEAD if overlap else None
    if plan.options.limit is not None or (in_flight == 1 and not overlap):
        for placed in to_batches_for_tasks(
            plan, storage, deletes=kept.deletes, footers=kept.footers, ahead=ahead
        ):
            yield placed.batch
        return
    reader = PlanReader(
        plan,
        storage,
        deletes=kept.deletes,
        footers=kept.footers,
        ahead=ahead,
        readers=in_flight,
    )

    def read(index: int) -> Iterator[pa.RecordBatch]:
        for placed in reader.task_batches(index):
            yield placed.batch

    with closing(reader):
        yield from read_in_order(range(len(plan.tasks)), read, in_flight=in_flight)
