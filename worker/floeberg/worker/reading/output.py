"""The columns of the answer: some projected from the file, some that tell of the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from floeberg.protocol.schema import Schema
from floeberg.protocol.types import NestedField
from floeberg.worker.arrow import ArrowArray, rows_without_columns
from floeberg.worker.files.rows import Chunk
from floeberg.worker.projection.assembly import Assembler
from floeberg.worker.projection.sources import Source
from floeberg.worker.reading.metadata_columns import (
    MetadataColumns,
    is_metadata_column,
    stored_part,
)
from floeberg.worker.reading.row_filter import Mask


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows of one task in file order, projected; there may be none.

    `positions` holds the place of each row in its file. `next_row` is the file's row after those
    that were looked at, None when the task has no more.
    """

    batch: pa.RecordBatch
    positions: npt.NDArray[np.int64]
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
        for field in self._fields:
            part = stored_part(field) if is_metadata_column(field) else field
            self._places.append(len(self.stored_fields) if part is not None else None)
            if part is not None:
                self.stored_fields.append(part)

    def keep(
        self, chunk: Chunk, keep: Mask | None, assembler: Assembler, sources: Sequence[Source]
    ) -> KeptRows:
        """Return the rows of `chunk` that `keep` marks, all when it is None."""
        rows = chunk.rows if keep is None else chunk.rows.filter(pa.array(keep))
        places = np.arange(len(rows)) if keep is None else np.flatnonzero(keep)
        positions = places.astype(np.int64, copy=False) + chunk.first_row
        stored = assembler.project(sources, rows)
        assembler.check_required(sources, stored)
        arrays = [
            self._array(field, stored[place] if place is not None else None, positions)
            for field, place in zip(self._fields, self._places, strict=True)
        ]
        return KeptRows(record_batch(arrays, self._schema, len(rows)), positions, _next_row(chunk))

    def keep_none(self, chunk: Chunk) -> KeptRows:
        """Return what `keep` does when none of the rows is kept; the columns need not be there."""
        arrays = [pa.nulls(0, field.type) for field in self._schema]
        batch = record_batch(arrays, self._schema, 0)
        return KeptRows(batch, np.empty(0, dtype=np.int64), _next_row(chunk))

    def _array(
        self, field: NestedField, stored: ArrowArray | None, positions: npt.NDArray[np.int64]
    ) -> ArrowArray:
        if is_metadata_column(field):
            return self._metadata_columns.array(field, positions, stored)
        assert stored is not None, "every other column is projected"
        return stored


def _next_row(chunk: Chunk) -> int | None:
    """Return the file's row after `chunk`, None when the task has no more."""
    return None if chunk.is_last else chunk.first_row + len(chunk.rows)


def record_batch(arrays: Sequence[ArrowArray], schema: pa.Schema, num_rows: int) -> pa.RecordBatch:
    """Return a batch of `num_rows` rows, with columns or without."""
    if arrays:
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    # the only way to a batch that has rows and no columns
    return pa.RecordBatch.from_struct_array(rows_without_columns(num_rows))
