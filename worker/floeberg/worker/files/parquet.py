"""Parquet files: footer, row groups and columns, through pyarrow.

Columns are addressed by leaf number and not by path: a path is ambiguous once a name holds a dot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from types import TracebackType

import pyarrow.parquet as pq

from floeberg.protocol.errors import CorruptDataFile, CorruptTable, Unsupported
from floeberg.protocol.name_mapping import NameMapping
from floeberg.worker.arrow import ArrowField, Rows
from floeberg.worker.files.decoding import decoding
from floeberg.worker.files.later_units import LaterUnits
from floeberg.worker.files.parquet_columns import ParquetColumns, ParquetFooter
from floeberg.worker.files.ranges import Part, RangeFile
from floeberg.worker.files.row_groups import (
    RowGroup,
    chunk_rows,
    consecutive_runs,
    read_row_groups,
    skippable_units,
)
from floeberg.worker.files.rows import (
    NOTHING_LATER,
    WHOLE_FILE,
    Chunk,
    Demand,
    Later,
    MayMatch,
    Share,
)
from floeberg.worker.files.stored import StoredField, prune, stored_fields
from floeberg.worker.files.views import schema_without_views

_FIELD_ID = b"PARQUET:field_id"

_TRAILER_BYTES = 8
"""The length of the footer and the magic number, at the end."""

_SURE = 3
"""After later columns of so many stretches of rows were asked for on end, and to their ends, those
of the next one are decoded with the first: at most one in four is decoded in vain."""

_DECODED_FOOTER = 14
"""About how many times its size a footer takes once it is decoded: 9 as Python's objects, up to 5
as pyarrow's."""


@dataclass(frozen=True, slots=True)
class ParquetContents:
    """What a file's footer says, decoded. Safe to share between readers of the file.

    `tail` is all of a file that is no larger than a tail, and nothing of others: of those, what is
    before the footer may never be read.
    """

    tail: Part
    footer: ParquetFooter
    columns: tuple[StoredField, ...]
    row_groups: Sequence[RowGroup]
    footer_bytes: int

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        return self.tail.size + _DECODED_FOOTER * self.footer_bytes


def read_contents(
    source: RangeFile,
    location: str,
    *,
    mapping: NameMapping | None = None,
    verify_crc: bool = True,
    corrupt: type[CorruptTable] = CorruptDataFile,
) -> ParquetContents:
    """Fetch the end of a file, and decode its footer."""
    with decoding(location, corrupt):
        source.fetch_tail()
        raw = _read_footer(source, location)
        metadata = pq.read_metadata(source.for_arrow())
        as_written = metadata.schema.to_arrow_schema()
        schema = schema_without_views(as_written)
        columns = stored_fields(schema, _field_id, mapping)
        row_groups = read_row_groups(raw, source.size(), metadata.num_columns)
    found = sum(column.leaf_count for column in columns)
    if found != metadata.num_columns:
        raise Unsupported(
            f"{location} has {metadata.num_columns} leaf columns, of which pyarrow shows {found}"
        )
    footer = ParquetFooter(location, corrupt, metadata, schema != as_written, verify_crc)
    tail = source.tail if source.tail.start == 0 else Part(source.size(), b"")
    return ParquetContents(tail, footer, columns, row_groups, len(raw))


def _read_footer(source: RangeFile, location: str) -> bytes:
    size = source.size()
    source.seek(max(size - _TRAILER_BYTES, 0))
    trailer = source.read(_TRAILER_BYTES)
    length, magic = int.from_bytes(trailer[:4], "little"), trailer[4:]
    if magic == b"PARE":
        raise Unsupported(f"{location} is encrypted, its footer too: its key is needed")
    if magic != b"PAR1" or length > size - 2 * _TRAILER_BYTES:
        raise ValueError("it does not end as a Parquet file does")
    source.seek(size - _TRAILER_BYTES - length)
    return source.read(length)


class ParquetRows:
    """An open Parquet file; implements `StoredFile`."""

    def __init__(self, source: RangeFile, contents: ParquetContents) -> None:
        if not source.tail.size:  # else it has just been fetched
            source.tail = contents.tail
        self._source = source
        self._footer = contents.footer
        self._location = contents.footer.location
        self._corrupt = contents.footer.corrupt
        self._row_groups = contents.row_groups
        self.columns = contents.columns

    @property
    def num_rows(self) -> int:
        return self._row_groups[-1].end_row if self._row_groups else 0

    def decoded(self, leaves: Set[int]) -> tuple[StoredField, ...]:
        return prune(self.columns, leaves)

    def chunks(
        self,
        leaves: Set[int],
        share: Share = WHOLE_FILE,
        may_match: MayMatch | None = None,
        later: Later = NOTHING_LATER,
    ) -> Iterator[Chunk]:
        groups = self._wanted_groups(share, may_match)
        if any(group.is_encrypted(leaves | later.leaves) for group in groups):
            raise Unsupported(f"{self._location} has encrypted columns: their keys are needed")
        both = sorted(leaves | later.leaves)
        units = skippable_units(groups, both)
        if len(units) == 1 and later.demand.whole_streak >= _SURE:
            parts = _parts(self.decoded(leaves), self.decoded(later.leaves))
            if parts is not None:
                columns = ParquetColumns(self._footer, self._source, groups, set(both))
                columns.expect(groups)
                return _chunks_together(columns, units[0], parts, later.demand, share.from_row)
        columns = ParquetColumns(self._footer, self._source, groups, leaves)
        columns.expect(groups)
        if not later.leaves:
            return _chunks_at_once(columns, groups, share.from_row)
        source = self._source.beside()
        later_columns = ParquetColumns(self._footer, source, groups, later.leaves)
        later_units = LaterUnits(later_columns, units, later.demand)
        return _chunks_in_phases(columns, units, later_units, both, share.from_row)

    def _wanted_groups(self, share: Share, may_match: MayMatch | None) -> list[RowGroup]:
        with decoding(self._location, self._corrupt):
            groups = [group for group in self._row_groups if share.holds(group.start_byte)]
        return [
            group
            for group in groups
            if group.end_row > share.from_row
            and group.num_rows
            and (may_match is None or may_match(group))
        ]

    @property
    def unread_bytes(self) -> int:
        return self._source.unread_bytes

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> ParquetRows:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _chunks_at_once(
    columns: ParquetColumns, groups: Sequence[RowGroup], from_row: int
) -> Iterator[Chunk]:
    for run in consecutive_runs(groups):
        batch_rows = chunk_rows(run, columns.leaves)
        for first_row, rows in columns.batches(run, batch_rows, from_row):
            yield Chunk(first_row, rows, first_row + len(rows) == groups[-1].end_row)


def _parts(
    first: Sequence[StoredField], later: Sequence[StoredField]
) -> tuple[Sequence[int], Sequence[int]] | None:
    """Return where `first` and `later` are among the columns of both; None where they share one."""
    leaves = [(column.first_leaf, kind) for kind in (0, 1) for column in (first, later)[kind]]
    if len({leaf for leaf, _ in leaves}) < len(leaves):
        return None
    kinds = [kind for _, kind in sorted(leaves)]
    return (
        [i for i, kind in enumerate(kinds) if kind == 0],
        [i for i, kind in enumerate(kinds) if kind == 1],
    )


def _chunks_together(
    columns: ParquetColumns,
    unit: Sequence[RowGroup],
    parts: tuple[Sequence[int], Sequence[int]],
    demand: Demand,
    from_row: int,
) -> Iterator[Chunk]:
    """Yield what `_chunks_in_phases` does for a file of one unit, all columns decoded at once: a
    second reader and its batches cost more than they save where every chunk keeps some rows."""
    first, later = parts
    asked_to_row = 0

    def later_rows(rows: Rows, end_row: int) -> Iterator[Rows]:
        nonlocal asked_to_row
        asked_to_row = end_row
        yield Rows([rows.columns[i] for i in later], len(rows))

    unit_end = unit[-1].end_row
    for first_row, rows in columns.batches(unit, chunk_rows(unit, columns.leaves), from_row):
        end_row = first_row + len(rows)
        yield Chunk(
            first_row,
            Rows([rows.columns[i] for i in first], len(rows)),
            end_row == unit_end,
            partial(later_rows, rows, end_row),
        )
    demand.learn(was_asked_for=asked_to_row > 0, to_the_end=asked_to_row == unit_end)


def _chunks_in_phases(
    columns: ParquetColumns,
    units: Sequence[Sequence[RowGroup]],
    later_units: LaterUnits,
    both: Sequence[int],
    from_row: int,
) -> Iterator[Chunk]:
    for index, unit in enumerate(units):
        batch_rows = chunk_rows(unit, both)
        later_unit = later_units.begin(index, batch_rows)
        for first_row, rows in columns.batches(unit, batch_rows, from_row):
            end_row = first_row + len(rows)
            yield Chunk(
                first_row,
                rows,
                end_row == units[-1][-1].end_row,
                partial(later_unit.rows, first_row, end_row),
            )
        later_units.end(index, later_unit)


def _field_id(field: ArrowField) -> int | None:
    raw = (field.metadata or {}).get(_FIELD_ID)
    if raw is None:
        return None
    # pyarrow once numbered fields of files without ids by itself, from -1 down
    return int(raw) if int(raw) >= 0 else None
