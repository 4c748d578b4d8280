"""What a worker is given: tasks, and everything that it takes to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.schema import Schema
from floeberg.protocol.storage import StorageConfig
from floeberg.protocol.tasks import FileScanTask

DEFAULT_BATCH_BYTES = 2 << 20
"""Clients of other stacks refuse messages above 4 MiB."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How tasks are read.

    `batch_size` bounds a batch by rows and `batch_bytes` by size. `limit` bounds the rows of all
    tasks together, from where reading starts: a stream that is resumed counts anew. `verify_crc`
    checks the checksums of deletion vectors and Parquet pages. Without `prune`, nothing of a
    task is skipped: neither row groups by their statistics or deletes, nor columns of rows that the
    filter drops.
    """

    batch_size: int | None = None
    batch_bytes: int = DEFAULT_BATCH_BYTES
    limit: int | None = None
    verify_crc: bool = True
    prune: bool = True


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Tasks of one snapshot, read to batches of one schema.

    `metadata` is the table's `for_reading()`, and `schema_id` names its schema that is read: the
    one that the tasks' residuals are bound to. `projection` holds the columns of the answer in
    order, metadata columns among them under their reserved ids.
    """

    metadata: TableMetadata
    schema_id: int
    projection: Schema
    tasks: Sequence[FileScanTask]
    storage: StorageConfig
    options: ReadOptions = ReadOptions()

    @property
    def schema(self) -> Schema:
        return self.metadata.schema_by_id(self.schema_id)


class ResumePlace(NamedTuple):
    """Where reading goes on: a task of the plan, and the next row of its file, both from 0.

    Rows are counted in the physical file, whatever was filtered, deleted or split away. A task
    equal to the number of tasks, with row 0, is the end.
    """

    task: int
    row: int


START = ResumePlace(0, 0)
