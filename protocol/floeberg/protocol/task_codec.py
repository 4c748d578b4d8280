"""Tasks as columns in a document: what a ticket says of the files to read.

The tables of a document, see `column_codec`, one after the other:

    data files     one table for each kind of partition tuples, see `file_tables`
    delete files   likewise
    kept files     of each data file, through the tables: its residual, and its deletes by number
    tasks          file, byte range

Splits share their data file, and data files their deletes and residuals, by number. Residuals and
what partition tuples look like are JSON beside the tables; key metadata travels apart, see
`plan_codec`.

Everything of a task comes back but its files' metrics: a worker prunes by what the file itself
says, and counts and bounds would be the larger part of a ticket. (A position delete file of a
single data file is known by `referenced_data_file`, not by its bounds.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from floeberg.protocol.column_codec import (
    MalformedColumns,
    NumberColumn,
    PackedTable,
    Reader,
    Table,
    Writer,
    table_of,
)
from floeberg.protocol.expressions.json_form import bound_from_json
from floeberg.protocol.expressions.model import BoundExpression
from floeberg.protocol.file_tables import FileTable, gather, keys_in, segment_of
from floeberg.protocol.files import ManifestContent
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import ColumnKey, Int64s
from floeberg.protocol.planned import DeleteFiles, PlannedFiles, References
from floeberg.protocol.planned_tasks import PlannedTasks, follow_one_another
from floeberg.protocol.residual_table import ResidualTable
from floeberg.protocol.schema import Schema
from floeberg.protocol.splitting import Ranges
from floeberg.protocol.types import Json

RESIDUAL: ColumnKey = (s.OWN, 1)
DELETES: ColumnKey = (s.OWN, 2)
_FILE, _START, _REST = (s.OWN, 1), (s.OWN, 2), (s.OWN, 3)


@dataclass(frozen=True, slots=True)
class EncodedTasks:
    """`described` is JSON; `keys` is the key metadata that the tables refer to, in their order."""

    described: dict[str, Json]
    tables: bytes
    keys: list[bytes]


def encode_tasks(tasks: PlannedTasks) -> EncodedTasks:
    """Return a document of `tasks`, in their order. Only files that they are of are in it."""
    return TaskEncoder(tasks).encode(0, len(tasks))


class TaskEncoder:
    """Encodes `tasks` run by run: files are gathered once, and each run takes a slice of them."""

    def __init__(self, tasks: PlannedTasks) -> None:
        self._tasks = tasks
        used = tasks.used_files
        data = gather(
            [(part.segment, part.rows[places]) for part, places in used.parts], ManifestContent.DATA
        )
        self._task_files = used.task_files
        self._files = len(data.numbers)
        self._tables = [_PackedFiles(file_table) for file_table in data.tables]
        self._sizes = _sizes(data.tables)
        residuals = ResidualTable()
        self._residual_of = residuals.numbers(used.parts)
        self._residuals = residuals.listed
        self._applied = References.joined([part.deletes.of(places) for part, places in used.parts])
        # the tables of files and tasks, where those of a run are a slice of them
        self._kept: PackedTable | None = None
        self._ranges: PackedTable | None = None
        self._row_of: Int64s | None = None
        self._in_order = follow_one_another(self._task_files)
        if len(data.tables) > 1:  # from the plan's order to that of the tables
            order = np.argsort(data.numbers)
            self._residual_of, self._applied = self._residual_of[order], self._applied.of(order)
            self._row_of = data.numbers
            return
        if len(self._residuals) == 1 and not len(self._applied.numbers):
            self._kept = PackedTable(kept_table(self._residual_of, self._applied))
        if self._in_order:
            table = _task_table(tasks.ranges, self._task_files, self._sizes)
            self._ranges = PackedTable(table)

    def encode(self, first: int, stop: int) -> EncodedTasks:
        """Return a document of the tasks from `first` up to `stop`, in their order.

        Only files that they are of are in it.
        """
        files = self._task_files[first:stop]
        if stop - first == len(self._tasks):
            low, high = 0, self._files
        elif self._in_order and stop > first:
            low, high = int(files[0]), int(files[-1]) + 1
        else:
            return encode_tasks(self._tasks[first:stop])
        rows: slice | Int64s = slice(low, high)
        numbers = files - low
        if self._row_of is not None:
            rows = np.sort(self._row_of[low:high])
            numbers = np.searchsorted(rows, self._row_of[files])
        data = list(self._runs_of_tables(rows))
        writer = Writer()
        for run in data:
            writer.rows(run.files.packed, run.first, run.stop)
        residuals, deletes = self._write_kept(writer, rows)
        begins_a_file = first == 0 or self._task_files[first - 1] < low
        if self._ranges is not None and begins_a_file:
            writer.rows(self._ranges, first, stop)
        else:
            ranges = Ranges(*(column[first:stop] for column in self._tasks.ranges))
            writer.table(_task_table(ranges, numbers, self._sizes[rows]))
        return EncodedTasks(
            {
                "data": [run.files.layout for run in data],
                "deletes": [file_table.layout for file_table in deletes],
                "residuals": residuals,
            },
            writer.finish(),
            [
                *(key for run in data for key in run.files.keys_of(run.first, run.stop)),
                *(key for file_table in deletes for key in file_table.keys),
            ],
        )

    def _write_kept(
        self, writer: Writer, rows: slice | Int64s
    ) -> tuple[list[Json], Sequence[FileTable]]:
        """Write the deletes and the table of kept files; return the residuals and the deletes."""
        if self._kept is not None and isinstance(rows, slice):
            writer.rows(self._kept, rows.start, rows.stop)
            return self._residuals, ()
        used, residual_of = np.unique(self._residual_of[rows], return_inverse=True)
        deletes, applied = gather_deletes(self._tasks.deletes, self._applied.of(rows))
        for file_table in deletes:
            writer.table(file_table.table)
        writer.table(kept_table(residual_of, applied))
        return [self._residuals[i] for i in used.tolist()], deletes

    def _runs_of_tables(self, rows: slice | Int64s) -> Iterator[_Run]:
        """Yield which rows of each table are among `rows`, for those that have any.

        They follow one another, since a table has its files in the order of the plan.
        """
        first = 0
        for files in self._tables:
            if isinstance(rows, slice):
                yield _Run(files, rows.start, rows.stop)
                continue
            begin, end = np.searchsorted(rows, (first, first + files.rows)).tolist()
            if begin < end:
                at = int(rows[begin]) - first
                yield _Run(files, at, at + end - begin)
            first += files.rows


class _PackedFiles:
    """A table of files of which runs are taken."""

    def __init__(self, file_table: FileTable) -> None:
        self._file_table = file_table
        self.layout = file_table.layout
        self.rows = file_table.table.rows
        self.packed = PackedTable(file_table.table)

    def keys_of(self, first: int, stop: int) -> Sequence[bytes]:
        """Return the key metadata of the files from `first` up to `stop` that have some."""
        keys, table = self._file_table.keys, self._file_table.table
        if not keys:
            return ()
        before = keys_in(table, slice(first))
        return keys[before : before + keys_in(table, slice(first, stop))]


class _Run(NamedTuple):
    files: _PackedFiles
    first: int
    stop: int


def gather_deletes(
    deletes: DeleteFiles, applied: References
) -> tuple[tuple[FileTable, ...], References]:
    """Return the tables of the deletes that are referred to, and the references by row of these."""
    if not len(applied.numbers):  # as of most tables
        return (), applied
    starts, numbers = applied.flat()
    used, which = np.unique(numbers, return_inverse=True)
    found = gather(deletes.rows_of(used), ManifestContent.DELETES, keep_order=True)
    return found.tables, References.of_flat(starts, which)


def kept_table(residual_of: Int64s, applied: References) -> Table:
    columns = [(RESIDUAL, NumberColumn(residual_of))]
    if len(applied.numbers):
        columns.append((DELETES, NumberColumn(applied.counts())))
        columns.append(((s.ITEMS, DELETES[1]), NumberColumn(applied.numbers)))
    return table_of(len(residual_of), columns)


def _task_table(ranges: Ranges, files: Int64s, file_sizes: Int64s) -> Table:
    """Return files and ranges as what they differ by from the usual: whole files, one by one."""
    sizes = file_sizes[files]
    start, rest = ranges.starts, sizes - ranges.starts - ranges.lengths
    columns = [
        (_FILE, np.diff(files, prepend=-1)),
        (_START, start - _expected_starts(files, sizes - rest)),
        (_REST, rest),
    ]
    return table_of(len(files), [(key, NumberColumn(values)) for key, values in columns])


def _sizes(tables: Sequence[FileTable]) -> Int64s:
    sizes = [file_table.table.numbers((s.OWN, s.SIZE_BYTES)) for file_table in tables]
    return np.concatenate([np.zeros(0, dtype=np.int64), *sizes])


def _expected_starts(files: Int64s, ends: Int64s) -> Int64s:
    """Return where ranges begin that follow one another within their file."""
    starts = np.zeros(len(files), dtype=np.int64)
    goes_on = np.flatnonzero(files[1:] == files[:-1])
    starts[goes_on + 1] = ends[goes_on]
    return starts


# --- back -----------------------------------------------------------------------------------------


def decode_tasks(
    described: Json, tables: memoryview, keys: Sequence[bytes], schema: Schema
) -> PlannedTasks:
    """Return the tasks of a document; `schema` is the one that their residuals are bound to.

    What refers to something is checked, so that making tasks raises nothing. Raises
    `MalformedColumns`, and what `bound_from_json` raises.
    """
    reader, rest = Reader(tables), iter(keys)
    data = [_file_table(layout, reader, rest) for layout in described["data"]]
    deletes = read_deletes(described["deletes"], reader, rest)
    segments = [segment_of(table, ManifestContent.DATA, "ticket") for table in data]
    residuals = tuple(bound_from_json(raw, schema) for raw in described["residuals"])
    files = sum(map(len, segments))
    residual_of, applied = read_kept(reader.table(), files, len(residuals), len(deletes))
    ranges = _ranges(reader.table(), _sizes(data))
    reader.end()
    if next(rest, None) is not None:
        raise MalformedColumns("more keys than encrypted files")
    parts = _parts(segments, residuals, residual_of, applied)
    return PlannedTasks.of_ranges(parts, deletes, ranges)


def _parts(
    segments: Sequence[Segment],
    residuals: tuple[BoundExpression, ...],
    residual_of: Int64s,
    applied: References,
) -> list[PlannedFiles]:
    parts = []
    first = 0
    for segment in segments:
        stop = first + len(segment)
        rows = np.arange(len(segment))
        lists = applied.between(first, stop)
        parts.append(PlannedFiles(segment, rows, residuals, residual_of[first:stop], lists))
        first = stop
    return parts


def _file_table(layout: Json, reader: Reader, keys: Iterator[bytes]) -> FileTable:
    table = reader.table()
    return FileTable(layout, table, list(islice(keys, keys_in(table))))


def read_deletes(layouts: Json, reader: Reader, keys: Iterator[bytes]) -> DeleteFiles:
    """Return what `gather_deletes` gave of delete files. Raises `MalformedColumns`."""
    tables = [_file_table(layout, reader, keys) for layout in layouts]
    segments = [segment_of(table, ManifestContent.DELETES, "ticket") for table in tables]
    return DeleteFiles([(segment, np.arange(len(segment))) for segment in segments])


def read_kept(table: Table, files: int, residuals: int, deletes: int) -> tuple[Int64s, References]:
    """Return the residual's number of each file, and its deletes. Raises `MalformedColumns`."""
    only(table, RESIDUAL, DELETES, (s.ITEMS, DELETES[1]))
    if table.rows != files:
        raise MalformedColumns(f"{table.rows} rows for {files} files")
    residual_of = table.numbers(RESIDUAL)
    counts, numbers = table.lists(DELETES)
    check_numbers(residual_of, residuals)
    check_numbers(numbers, deletes)
    starts = np.cumsum(np.concatenate([np.zeros(1, dtype=np.int64), counts]))
    return residual_of, References.of_flat(starts, numbers)


def only(table: Table, *keys: ColumnKey) -> None:
    """Refuse columns that are not known: they may change which rows are read."""
    if unknown := table.columns.keys() - set(keys):
        raise MalformedColumns(f"unknown columns {sorted(unknown)}")


def check_numbers(numbers: Int64s, count: int) -> None:
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < count):
        raise MalformedColumns(f"a reference to what is not among {count}")


def _ranges(table: Table, file_sizes: Int64s) -> Ranges:
    only(table, _FILE, _START, _REST)
    steps = table.numbers(_FILE)
    # not to add up to a number that only looks like one of a file
    if len(steps) and max(abs(int(steps.min())), int(steps.max())) > len(file_sizes) + 1:
        raise MalformedColumns("a task of a file that is not there")
    files = np.cumsum(steps) - 1
    check_numbers(files, len(file_sizes))
    sizes = file_sizes[files]
    ends = sizes - table.numbers(_REST)
    starts = table.numbers(_START) + _expected_starts(files, ends)
    return Ranges(files, starts, ends - starts)
