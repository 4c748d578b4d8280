"""A scan being read a batch at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from types import TracebackType
from typing import Any

import pyarrow as pa


class BatchReader:
    """The batches of a scan, in plan order, as they are read.

    Nothing is held beyond a bounded window. `num_tasks` is the length of the plan, `rows` how many
    rows were delivered so far. An error of reading is raised from the iteration, after the batches
    before it; a reader that ended without one has delivered every row. Closing it (or leaving its
    `with` block) stops reading.
    """

    def __init__(
        self, schema: pa.Schema, batches: Generator[pa.RecordBatch, None, None], num_tasks: int
    ) -> None:
        self.schema = schema
        self.num_tasks = num_tasks
        self.rows = 0
        self._batches = batches

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = next(self._batches)
        self.rows += batch.num_rows
        return batch

    def next_batch(self) -> pa.RecordBatch | None:
        """Return the next batch, or None at the end."""
        return next(self, None)

    def to_arrow_reader(self) -> pa.RecordBatchReader:
        """Return the rest as pyarrow's reader."""
        return pa.RecordBatchReader.from_batches(self.schema, self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Give the rest to any library that takes Arrow streams: DuckDB, Polars, pandas."""
        reader: Any = self.to_arrow_reader()  # the stubs leave the protocol untyped
        return reader.__arrow_c_stream__(requested_schema)

    def read_all(self) -> pa.Table:
        """Return the rest as one table."""
        return pa.Table.from_batches(self, schema=self.schema)

    def close(self) -> None:
        self._batches.close()

    def __enter__(self) -> BatchReader:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
