"""Read one task: open, decode, decide which rows are kept, project those.

Nothing here knows of other tasks, of limits or of the wire.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.errors import CorruptDataFile
from floeberg.protocol.files import DataFile
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.name_mapping import NameMapping
from floeberg.protocol.schema import Schema
from floeberg.protocol.storage import Storage
from floeberg.protocol.tasks import FileScanTask
from floeberg.protocol.types import NestedField
from floeberg.worker.arrow import ArrowArray, rows_without_columns
from floeberg.worker.deletes.loading import DeleteLoader
from floeberg.worker.files.opening import open_rows
from floeberg.worker.files.rows import Chunk, Share, StoredFile
from floeberg.worker.files.stored import has_field_ids
from floeberg.worker.projection.assembly import Assembler
from floeberg.worker.projection.partition_values import identity_values
from floeberg.worker.projection.reading import bind
from floeberg.worker.projection.resolution import Resolver
from floeberg.worker.projection.sources import Source
from floeberg.worker.reading.metadata_columns import (
    MetadataColumns,
    is_metadata_column,
    stored_part,
)
from floeberg.worker.reading.row_filter import Mask, RowFilter

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The kept rows of one chunk, projected; there may be none.

    `next_row` is the file's row after the chunk, None when the task has no more chunks.
    """

    batch: pa.RecordBatch
    first_row: int
    keep: Mask | None
    next_row: int | None

    def positions(self) -> npt.NDArray[np.int64]:
        """Return the place in the file of each kept row."""
        return _positions(self.first_row, self.batch.num_rows, self.keep)


def _positions(first_row: int, num_rows: int, keep: Mask | None) -> npt.NDArray[np.int64]:
    """Return the places of the kept rows; `num_rows` counts the rows when all are kept."""
    places = np.arange(num_rows) if keep is None else np.flatnonzero(keep)
    return (places + first_row).astype(np.int64, copy=False)


class TaskReader:
    """Reads the tasks of one plan, to batches of one Arrow schema."""

    def __init__(
        self,
        storage: Storage,
        metadata: TableMetadata,
        schema: Schema,
        projection: Schema,
        loader: DeleteLoader,
        *,
        verify_crc: bool,
    ) -> None:
        self._storage = storage
        self._metadata = metadata
        self._schema = schema
        self._projection = projection
        self._mapping: NameMapping | None = metadata.name_mapping()
        self._loader = loader
        self._verify_crc = verify_crc
        self.arrow_schema = arrow_schema(projection)

    def read(self, task: FileScanTask, from_row: int = 0) -> Iterator[KeptRows]:
        """Yield the task's rows in file order, from the file's row `from_row` on."""
        if task.data_file.record_count == 0:
            return  # writers have listed empty files that they never wrote
        deletes = self._loader.load(task)
        row_filter = RowFilter.of(task.residual, self._schema, deletes)
        with open_rows(
            self._storage, task.data_file, mapping=self._mapping, verify_crc=self._verify_crc
        ) as rows:
            self._check(task.data_file, rows)
            yield from self._read_rows(task, from_row, rows, row_filter)

    def _read_rows(
        self, task: FileScanTask, from_row: int, rows: StoredFile, row_filter: RowFilter
    ) -> Iterator[KeptRows]:
        file = task.data_file
        resolver = Resolver(file.location, identity_values(self._metadata, file))
        output = OutputColumns(
            self._projection,
            self.arrow_schema,
            MetadataColumns(file, self._metadata.format_version),
        )
        groups = [row_filter.columns, output.stored_fields]
        leaves, [filter_sources, output_sources] = bind(groups, resolver, rows)
        assembler = Assembler(file.location, resolver.corrupt)
        share = Share(task.start, task.length, from_row)
        for chunk in rows.chunks(leaves, share):
            columns = assembler.project(filter_sources, chunk.rows)
            keep = row_filter.keep(chunk.first_row, len(chunk.rows), columns)
            yield output.keep(chunk, keep, assembler, output_sources)

    def _check(self, file: DataFile, rows: StoredFile) -> None:
        if rows.num_rows is not None and rows.num_rows != file.record_count:
            raise CorruptDataFile(
                f"{file.location} holds {rows.num_rows} rows; its manifest says {file.record_count}"
            )
        if self._mapping is None and not has_field_ids(rows.columns):
            logger.warning(
                "data file without field ids and table without a name mapping: no column is known",
                extra={"location": file.location},
            )


class OutputColumns:
    """The columns of the answer: some projected from the file, some that tell of the file."""

    def __init__(
        self, projection: Schema, schema: pa.Schema, metadata_columns: MetadataColumns
    ) -> None:
        self._fields = projection.fields
        self._schema = schema
        self._metadata_columns = metadata_columns
        self.stored_fields: list[NestedField] = []
        self._places: list[int | None] = []
        for field in self._fields:
            part = stored_part(field) if is_metadata_column(field) else field
            self._places.append(len(self.stored_fields) if part is not None else None)
            if part is not None:
                self.stored_fields.append(part)

    def keep(
        self, chunk: Chunk, keep: Mask | None, assembler: Assembler, sources: Sequence[Source]
    ) -> KeptRows:
        """Return the kept rows of `chunk`, projected by the `sources` of `stored_fields`."""
        rows = chunk.rows if keep is None else chunk.rows.filter(pa.array(keep))
        stored = assembler.project(sources, rows)
        assembler.check_required(sources, stored)
        positions = _positions(chunk.first_row, len(rows), keep)
        arrays = [
            self._array(field, stored[place] if place is not None else None, positions)
            for field, place in zip(self._fields, self._places, strict=True)
        ]
        next_row = None if chunk.is_last else chunk.first_row + len(chunk.rows)
        return KeptRows(
            _record_batch(arrays, self._schema, len(rows)), chunk.first_row, keep, next_row
        )

    def _array(
        self, field: NestedField, stored: ArrowArray | None, positions: npt.NDArray[np.int64]
    ) -> ArrowArray:
        if is_metadata_column(field):
            return self._metadata_columns.array(field, positions, stored)
        assert stored is not None, "every other column is projected"
        return stored


def _record_batch(arrays: Sequence[ArrowArray], schema: pa.Schema, num_rows: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    # the only way to a batch that has rows and no columns
    return pa.RecordBatch.from_struct_array(rows_without_columns(num_rows))
