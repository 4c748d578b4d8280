"""The columns of the answer: some projected from the file, some that tell of the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from floeberg.protocol.schema import Schema
from floeberg.protocol.types import NestedField
from floeberg.worker.arrow import ArrowArray, rows_without_columns
from floeberg.worker.files.rows import Chunk
from floeberg.worker.projection.assembly import Assembler
from floeberg.worker.projection.sources import Source
from floeberg.worker.reading.masks import Mask, kept_of, places_of
from floeberg.worker.reading.metadata_columns import (
    MetadataColumns,
    is_metadata_column,
    stored_part,
)

_NO_POSITIONS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows of one task in file order, projected; there may be none.

    `positions` tells the place of each row in its file, which few ask for. `next_row` is the file's
    row after those that were looked at, None when the task has no more.
    """

    batch: pa.RecordBatch
    positions: Callable[[], npt.NDArray[np.int64]]
    next_row: int | None


class OutputColumns:
    """Projects kept rows to the columns of `projection`, in the Arrow schema `schema`."""

    def __init__(
        self, projection: Schema, schema: pa.Schema, metadata_columns: MetadataColumns
    ) -> None:
        self._fields = projection.fields
        self._schema = schema
        self._metadata_columns = metadata_columns
        self.stored_fields: list[NestedField] = []
        """What to resolve against the file: the sources that `keep` takes are theirs."""
        self._places: list[int | None] = []
        self._needs_positions = any(map(is_metadata_column, self._fields))
        for field in self._fields:
            part = stored_part(field) if is_metadata_column(field) else field
            self._places.append(len(self.stored_fields) if part is not None else None)
            if part is not None:
                self.stored_fields.append(part)

    def keep(
        self, chunk: Chunk, keep: Mask | None, assembler: Assembler, sources: Sequence[Source]
    ) -> KeptRows:
        """Return the rows of `chunk` that `keep` marks, all when it is None."""
        rows = chunk.rows if keep is None else kept_of(chunk.rows, keep)
        positions = partial(_positions, chunk.first_row, len(rows), keep)
        stored = assembler.project(sources, rows)
        assembler.check_required(sources, stored)
        known = positions() if self._needs_positions else _NO_POSITIONS
        arrays = [
            self._array(field, stored[place] if place is not None else None, known)
            for field, place in zip(self._fields, self._places, strict=True)
        ]
        return KeptRows(record_batch(arrays, self._schema, len(rows)), positions, _next_row(chunk))

    def keep_none(self, chunk: Chunk) -> KeptRows:
        """Return what `keep` does when none of the rows is kept; the columns need not be there."""
        arrays = [pa.nulls(0, field.type) for field in self._schema]
        batch = record_batch(arrays, self._schema, 0)
        return KeptRows(batch, lambda: _NO_POSITIONS, _next_row(chunk))

    def _array(
        self, field: NestedField, stored: ArrowArray | None, positions: npt.NDArray[np.int64]
    ) -> ArrowArray:
        if is_metadata_column(field):
            return self._metadata_columns.array(field, positions, stored)
        assert stored is not None, "every other column is projected"
        return stored


def _positions(first_row: int, count: int, keep: Mask | None) -> npt.NDArray[np.int64]:
    """Return the places in the file of the `count` rows that `keep` marks, all when it is None."""
    if keep is None:
        return np.arange(first_row, first_row + count, dtype=np.int64)
    return places_of(keep) + first_row


def _next_row(chunk: Chunk) -> int | None:
    """Return the file's row after `chunk`, None when the task has no more."""
    return None if chunk.is_last else chunk.first_row + len(chunk.rows)


def record_batch(arrays: Sequence[ArrowArray], schema: pa.Schema, num_rows: int) -> pa.RecordBatch:
    """Return a batch of `num_rows` rows, with columns or without."""
    if arrays:
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    # the only way to a batch that has rows and no columns
    return pa.RecordBatch.from_struct_array(rows_without_columns(num_rows))
