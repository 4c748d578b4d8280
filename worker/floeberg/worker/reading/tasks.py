"""Read one task: open, decode, decide which rows are kept, project those.

Nothing here knows of other tasks, of limits or of the wire.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack

from floeberg.process.storage.ranges import Range
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.expressions.model import TRUE
from floeberg.protocol.files import DataFile
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.name_mapping import NameMapping
from floeberg.protocol.schema import Schema
from floeberg.protocol.storage import Storage
from floeberg.protocol.tasks import FileScanTask
from floeberg.worker.deletes.loading import DeleteLoader, TaskDeletes
from floeberg.worker.files.footers import Footers
from floeberg.worker.files.opening import first_range, open_rows
from floeberg.worker.files.rows import Chunk, Demand, Later, MayMatch, Share, StoredFile
from floeberg.worker.files.stored import has_field_ids
from floeberg.worker.files.windows import Ahead
from floeberg.worker.projection.assembly import Assembler
from floeberg.worker.projection.partition_values import identity_values
from floeberg.worker.projection.resolution import Resolver
from floeberg.worker.reading.metadata_columns import MetadataColumns
from floeberg.worker.reading.output import KeptRows, OutputColumns
from floeberg.worker.reading.phases import Phases
from floeberg.worker.reading.pruning import row_group_test
from floeberg.worker.reading.row_filter import Residual, RowFilter

logger = logging.getLogger(__name__)


class OpenTask:
    """A task whose file is open, to be read once: its rows in file order, those that are kept."""

    def __init__(self, file: StoredFile | None, rows: Iterator[KeptRows]) -> None:
        self._file = file
        self._rows = rows

    def __iter__(self) -> Iterator[KeptRows]:
        return self._rows

    @property
    def unread_bytes(self) -> int:
        """Bytes that are still to be read, as far as is known: fetched already, or not."""
        return self._file.unread_bytes if self._file is not None else 0

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class TaskReader:
    """Reads the tasks of one plan, to batches of one Arrow schema. Safe to use from several
    threads, each with a task of its own.
    """

    def __init__(
        self,
        storage: Storage,
        metadata: TableMetadata,
        schema: Schema,
        projection: Schema,
        loader: DeleteLoader,
        footers: Footers,
        *,
        verify_crc: bool,
        prune: bool,
    ) -> None:
        self._storage = storage
        self._metadata = metadata
        self._schema = schema
        self._projection = projection
        self._mapping: NameMapping | None = metadata.name_mapping()
        self._loader = loader
        self._verify_crc = verify_crc
        self._prune = prune
        self._demand = Demand()
        self._last_residual: Residual | None = None
        self._footers = footers
        self.arrow_schema = arrow_schema(projection)

    def load_deletes(self, task: FileScanTask) -> TaskDeletes:
        """Return the task's deletes."""
        return self._loader.load(task)

    def first_ranges(self, task: FileScanTask) -> list[tuple[str, Range]]:
        """Return what opening the task and loading its deletes fetches before all else, of files of
        which nothing is known yet."""
        file, parts = task.data_file, self._loader.first_ranges(task)
        part = first_range(file) if file.record_count else None
        if part is not None and not self._footers.holds(file):
            parts.append((file.location, part))
        return parts

    def open(
        self,
        task: FileScanTask,
        deletes: TaskDeletes,
        *,
        from_row: int = 0,
        ahead: Ahead | None = None,
    ) -> OpenTask:
        """Open the task, from the file's row `from_row` on; the caller closes it.

        With `ahead`, the first bytes to decode are on their way when it returns.
        """
        if task.data_file.record_count == 0:
            # writers have listed empty files that they never wrote
            return OpenTask(None, iter(()))
        rows = open_rows(
            self._storage,
            task.data_file,
            mapping=self._mapping,
            verify_crc=self._verify_crc,
            ahead=ahead,
            footers=self._footers,
        )
        with ExitStack() as on_error:
            on_error.callback(rows.close)
            self._warn_of_unknown_columns(task.data_file, rows)
            row_filter = RowFilter.of(self._residual_of(task), deletes)
            kept = self._read_rows(task, from_row, rows, row_filter)
            on_error.pop_all()
        return OpenTask(rows, kept)

    def _residual_of(self, task: FileScanTask) -> Residual:
        # most tasks of a plan have one and the same
        last = self._last_residual
        if last is None or last.expression != task.residual:
            last = self._last_residual = Residual.of(task.residual, self._schema)
        return last

    def forget(self, task: FileScanTask) -> None:
        """Keep nothing of the task's data file, which may be damaged."""
        self._footers.forget(task.data_file)

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
        phases = Phases.of(
            row_filter.columns, output.stored_fields, resolver, rows, at_once=not self._prune
        )
        chunks = rows.chunks(
            phases.first,
            share_of(task, from_row),
            self._row_group_test(task, rows, row_filter, resolver),
            Later(phases.later, self._demand),
        )
        assembler = Assembler(file.location, resolver.corrupt)
        return _kept_rows(chunks, phases, row_filter, output, assembler)

    def _row_group_test(
        self, task: FileScanTask, rows: StoredFile, row_filter: RowFilter, resolver: Resolver
    ) -> MayMatch | None:
        if not self._prune:
            return None
        if task.residual == TRUE:
            return row_filter.may_keep
        sources = resolver.resolve(row_filter.columns, rows.columns)
        may_match = row_group_test(
            task.residual, self._schema, row_filter.fields, sources, rows.columns
        )
        return lambda group: row_filter.may_keep(group) and may_match(group)

    def _warn_of_unknown_columns(self, file: DataFile, rows: StoredFile) -> None:
        if self._mapping is None and not has_field_ids(rows.columns):
            logger.warning(
                "data file without field ids and table without a name mapping: no column is known",
                extra={"location": file.location},
            )


def share_of(task: FileScanTask, from_row: int = 0) -> Share:
    """Return the rows of its file that `task` stands for, from the file's row `from_row` on.

    The last split of a file goes on to the end, wherever that is: manifests may state another size
    than the file has.
    """
    is_last = task.start + task.length >= task.data_file.size_bytes
    return Share(task.start, 0 if is_last else task.length, from_row)


def _kept_rows(
    chunks: Iterator[Chunk],
    phases: Phases,
    row_filter: RowFilter,
    output: OutputColumns,
    assembler: Assembler,
) -> Iterator[KeptRows]:
    for chunk in chunks:
        columns = assembler.project(phases.filter_sources, chunk.rows)
        keep = row_filter.keep(chunk.first_row, len(chunk.rows), columns)
        if keep is not None and not keep.true_count:
            yield output.keep_none(chunk)
            continue
        for part in phases.output_chunks(chunk):
            start = part.first_row - chunk.first_row
            kept = None if keep is None else keep.slice(start, len(part.rows))
            yield output.keep(part, kept, assembler, phases.output_sources)
