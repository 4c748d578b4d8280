"""Parquet files: footer, row groups and columns, through pyarrow.

Columns are addressed by leaf number and not by path: a path is ambiguous once a name holds a dot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from types import TracebackType
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from floeberg.protocol.errors import CorruptDataFile, CorruptTable, Unsupported
from floeberg.protocol.name_mapping import NameMapping
from floeberg.worker.arrow import ArrowField
from floeberg.worker.files.decoding import decoding
from floeberg.worker.files.ranges import RangeFile
from floeberg.worker.files.row_groups import (
    WINDOW_BYTES,
    RowGroup,
    consecutive_runs,
    fetch_windows,
    read_row_groups,
)
from floeberg.worker.files.rows import (
    CHUNK_BYTES,
    MAX_CHUNK_ROWS,
    WHOLE_FILE,
    Chunk,
    MayMatch,
    Share,
)
from floeberg.worker.files.stored import StoredField, prune, stored_fields
from floeberg.worker.files.views import schema_without_views, without_views

_FIELD_ID = b"PARQUET:field_id"

_TRAILER_BYTES = 8
"""The length of the footer and the magic number, at the end."""

MIN_STREAM_BYTES = 64 << 10

ParquetReader: TypeAlias = Any
"""pyarrow's reader below `ParquetFile`, which takes columns by number; the stubs leave it out."""


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
        self._verify_crc = verify_crc
        with decoding(location, corrupt):
            source.fetch_tail()
            footer = self._read_footer()
            self._metadata = pq.read_metadata(source.for_arrow())
            as_written = self._metadata.schema.to_arrow_schema()
            schema = schema_without_views(as_written)
            self._has_views = schema != as_written
            self.columns = stored_fields(schema, _field_id, mapping)
            self._row_groups = read_row_groups(footer, source.size(), self._metadata.num_columns)
        self._check_leaves()

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

    def _check_leaves(self) -> None:
        found = sum(column.leaf_count for column in self.columns)
        if found != self._metadata.num_columns:
            raise Unsupported(
                f"{self._location} has {self._metadata.num_columns} leaf columns,"
                f" of which pyarrow shows {found}"
            )

    @property
    def num_rows(self) -> int:
        return self._row_groups[-1].end_row if self._row_groups else 0

    def decoded(self, leaves: Set[int]) -> tuple[StoredField, ...]:
        return prune(self.columns, leaves)

    def chunks(
        self, leaves: Set[int], share: Share = WHOLE_FILE, may_match: MayMatch | None = None
    ) -> Iterator[Chunk]:
        groups = self._wanted_groups(share, may_match)
        wanted = sorted(leaves)
        reader = self._reader(groups, wanted)
        runs = consecutive_runs(groups)
        for run in runs:
            is_last_run = run is runs[-1]
            yield from self._run_chunks(reader, run, wanted, share.from_row, is_last_run)

    def _reader(self, groups: Sequence[RowGroup], leaves: Sequence[int]) -> ParquetReader:
        """Return a reader for these columns of these row groups, and expect their bytes."""
        if any(group.is_encrypted(leaves) for group in groups):
            raise Unsupported(f"{self._location} has encrypted columns: their keys are needed")
        with decoding(self._location, self._corrupt):
            self._source.expect(fetch_windows(groups, leaves))
        largest = max((group.stored_bytes(leaves) for group in groups), default=0)
        with decoding(self._location, self._corrupt):
            file = pq.ParquetFile(
                self._source.for_arrow(),
                metadata=self._metadata,
                pre_buffer=False,
                buffer_size=_stream_bytes(len(leaves)) if largest > WINDOW_BYTES else 0,
                # at ns, times after 2262 would overflow
                coerce_int96_timestamp_unit="us",
                page_checksum_verification=self._verify_crc,
            )
        reader: ParquetReader = file.reader
        return reader

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

    def _run_chunks(
        self,
        reader: ParquetReader,
        run: Sequence[RowGroup],
        leaves: Sequence[int],
        from_row: int,
        is_last_run: bool,
    ) -> Iterator[Chunk]:
        """Yield the rows of consecutive row groups; a chunk may reach over a border between two."""
        next_row = run[0].first_row
        batches = reader.iter_batches(
            _chunk_rows(run, leaves),
            row_groups=[group.index for group in run],
            column_indices=list(leaves),
            use_threads=False,
        )
        while next_row < run[-1].end_row:
            with decoding(self._location, self._corrupt):
                batch = next(batches, None)
                if batch is not None and self._has_views:
                    batch = without_views(batch)
            if batch is None:
                raise self._corrupt(
                    f"{self._location} ends at row {next_row};"
                    f" its footer promises {run[-1].end_row}"
                )
            first_row, next_row = next_row, next_row + batch.num_rows
            skipped = min(max(from_row - first_row, 0), batch.num_rows)
            if skipped < batch.num_rows:
                rows = batch.to_struct_array().slice(skipped)
                is_last = is_last_run and next_row == run[-1].end_row
                yield Chunk(first_row + skipped, rows, is_last)

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


def _stream_bytes(num_columns: int) -> int:
    """Return how much of each column to read at a time: all of them together make a window."""
    return max(MIN_STREAM_BYTES, WINDOW_BYTES // max(num_columns, 1))


def _chunk_rows(run: Sequence[RowGroup], leaves: Sequence[int]) -> int:
    """Return how many rows make a chunk of about `CHUNK_BYTES`."""
    size = sum(group.decoded_bytes(leaves) for group in run)
    rows = sum(group.num_rows for group in run)
    return max(1, min(MAX_CHUNK_ROWS, rows * CHUNK_BYTES // max(size, 1)))


def _field_id(field: ArrowField) -> int | None:
    raw = (field.metadata or {}).get(_FIELD_ID)
    if raw is None:
        return None
    # pyarrow once numbered fields of files without ids by itself, from -1 down
    return int(raw) if int(raw) >= 0 else None
