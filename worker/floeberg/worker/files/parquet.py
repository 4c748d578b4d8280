"""Parquet files: footer, row groups and columns, through pyarrow.

Columns are addressed by leaf number and not by path: a path is ambiguous once a name holds a dot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import partial
from types import TracebackType

import pyarrow.parquet as pq

from floeberg.protocol.errors import CorruptDataFile, CorruptTable, Unsupported
from floeberg.protocol.name_mapping import NameMapping
from floeberg.worker.arrow import ArrowField
from floeberg.worker.files.decoding import decoding
from floeberg.worker.files.later_units import LaterUnits
from floeberg.worker.files.parquet_columns import ParquetColumns, ParquetFooter
from floeberg.worker.files.ranges import RangeFile
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
    Later,
    MayMatch,
    Share,
)
from floeberg.worker.files.stored import StoredField, prune, stored_fields
from floeberg.worker.files.views import schema_without_views

_FIELD_ID = b"PARQUET:field_id"

_TRAILER_BYTES = 8
"""The length of the footer and the magic number, at the end."""


class ParquetRows:
    """An open Parquet file; implements `StoredFile`."""

    def __init__(
        self,
        source: RangeFile,
        location: str,
        *,
        mapping: NameMapping | None = None,
        verify_crc: bool = True,
        corrupt: type[CorruptTable] = CorruptDataFile,
    ) -> None:
        self._location = location
        self._corrupt = corrupt
        self._source = source
        with decoding(location, corrupt):
            footer = self._read_footer()
            metadata = pq.read_metadata(source.for_arrow())
            as_written = metadata.schema.to_arrow_schema()
            schema = schema_without_views(as_written)
            self.columns = stored_fields(schema, _field_id, mapping)
            self._row_groups = read_row_groups(footer, source.size(), metadata.num_columns)
        self._check_leaves(metadata.num_columns)
        self._footer = ParquetFooter(location, corrupt, metadata, schema != as_written, verify_crc)

    def _read_footer(self) -> bytes:
        size = self._source.size()
        self._source.seek(max(size - _TRAILER_BYTES, 0))
        trailer = self._source.read(_TRAILER_BYTES)
        length, magic = int.from_bytes(trailer[:4], "little"), trailer[4:]
        if magic == b"PARE":
            raise Unsupported(f"{self._location} is encrypted, its footer too: its key is needed")
        if magic != b"PAR1" or length > size - 2 * _TRAILER_BYTES:
            raise ValueError("it does not end as a Parquet file does")
        self._source.seek(size - _TRAILER_BYTES - length)
        return self._source.read(length)

    def _check_leaves(self, num_columns: int) -> None:
        found = sum(column.leaf_count for column in self.columns)
        if found != num_columns:
            raise Unsupported(
                f"{self._location} has {num_columns} leaf columns, of which pyarrow shows {found}"
            )

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
        if later.leaves:
            return self._chunks_in_phases(groups, leaves, share.from_row, later)
        return self._chunks_at_once(groups, leaves, share.from_row)

    def _chunks_at_once(
        self, groups: Sequence[RowGroup], leaves: Set[int], from_row: int
    ) -> Iterator[Chunk]:
        columns = ParquetColumns(self._footer, self._source, groups, leaves)
        columns.expect(groups)
        for run in consecutive_runs(groups):
            batch_rows = chunk_rows(run, columns.leaves)
            for first_row, rows in columns.batches(run, batch_rows, from_row):
                yield Chunk(first_row, rows, first_row + len(rows) == groups[-1].end_row)

    def _chunks_in_phases(
        self, groups: Sequence[RowGroup], leaves: Set[int], from_row: int, later: Later
    ) -> Iterator[Chunk]:
        both = sorted(leaves | later.leaves)
        units = skippable_units(groups, both)
        columns = ParquetColumns(self._footer, self._source, groups, leaves)
        with self._source.beside() as source:
            later_columns = ParquetColumns(self._footer, source, groups, later.leaves)
            later_units = LaterUnits(later_columns, units, later.demand)
            columns.expect(groups)
            for index, unit in enumerate(units):
                batch_rows = chunk_rows(unit, both)
                later_unit = later_units.begin(index, batch_rows)
                for first_row, rows in columns.batches(unit, batch_rows, from_row):
                    end_row = first_row + len(rows)
                    yield Chunk(
                        first_row,
                        rows,
                        end_row == groups[-1].end_row,
                        partial(later_unit.rows, first_row, end_row),
                    )
                later_units.end(index, later_unit)

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


def _field_id(field: ArrowField) -> int | None:
    raw = (field.metadata or {}).get(_FIELD_ID)
    if raw is None:
        return None
    # pyarrow once numbered fields of files without ids by itself, from -1 down
    return int(raw) if int(raw) >= 0 else None
