"""Parquet files: footer, row groups and columns, through pyarrow.

Columns are addressed by leaf number and not by path: a path is ambiguous once a name holds a dot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from types import TracebackType

import pyarrow.parquet as pq

from floeberg.protocol.errors import CorruptDataFile, CorruptTable, Unsupported
from floeberg.protocol.name_mapping import NameMapping
from floeberg.protocol.storage import Storage
from floeberg.worker.arrow import ArrowField
from floeberg.worker.files.decoding import decoding
from floeberg.worker.files.rows import (
    CHUNK_BYTES,
    MAX_CHUNK_ROWS,
    WHOLE_FILE,
    Chunk,
    LeafStatistics,
    MayMatch,
    Share,
)
from floeberg.worker.files.stored import StoredField, prune, stored_fields

_FIELD_ID = b"PARQUET:field_id"


class ParquetRows:
    """An open Parquet file; implements `StoredFile`."""

    def __init__(
        self,
        storage: Storage,
        location: str,
        *,
        mapping: NameMapping | None = None,
        verify_crc: bool = True,
        corrupt: type[CorruptTable] = CorruptDataFile,
    ) -> None:
        self._location = location
        self._corrupt = corrupt
        self._source = storage.open(location)
        try:
            with decoding(location, corrupt):
                self._file = pq.ParquetFile(
                    self._source,
                    pre_buffer=False,
                    # at ns, times after 2262 would overflow
                    coerce_int96_timestamp_unit="us",
                    page_checksum_verification=verify_crc,
                )
                self._metadata = self._file.metadata
                self.columns = stored_fields(self._file.schema_arrow, _field_id, mapping)
            self._check_leaves()
        except BaseException:
            self._source.close()
            raise

    def _check_leaves(self) -> None:
        found = sum(column.leaf_count for column in self.columns)
        if found != self._metadata.num_columns:
            raise Unsupported(
                f"{self._location} has {self._metadata.num_columns} leaf columns,"
                f" of which pyarrow shows {found}"
            )

    @property
    def num_rows(self) -> int:
        return self._metadata.num_rows

    def decoded(self, leaves: Set[int]) -> tuple[StoredField, ...]:
        return prune(self.columns, leaves)

    def chunks(
        self, leaves: Set[int], share: Share = WHOLE_FILE, may_match: MayMatch | None = None
    ) -> Iterator[Chunk]:
        runs = _runs(self._wanted_groups(share, may_match))
        for run in runs:
            is_last_run = run is runs[-1]
            yield from self._run_chunks(run, sorted(leaves), share.from_row, is_last_run)

    def _wanted_groups(self, share: Share, may_match: MayMatch | None) -> list[RowGroup]:
        return [
            group
            for group in self._row_groups()
            if share.holds(group.start_byte)
            and group.end_row > share.from_row
            and group.num_rows
            and (may_match is None or may_match(group))
        ]

    def _row_groups(self) -> Iterator[RowGroup]:
        first_row = 0
        for index in range(self._metadata.num_row_groups):
            with decoding(self._location, self._corrupt):
                group = RowGroup(self._metadata.row_group(index), index, first_row)
            yield group
            first_row = group.end_row

    def _run_chunks(
        self, run: Sequence[RowGroup], leaves: Sequence[int], from_row: int, is_last_run: bool
    ) -> Iterator[Chunk]:
        """Yield the rows of consecutive row groups; a chunk may reach over a border between two."""
        next_row = run[0].first_row
        batches = self._file.reader.iter_batches(
            _chunk_rows(run, leaves),
            row_groups=[group.index for group in run],
            column_indices=list(leaves),
            use_threads=False,
        )
        while next_row < run[-1].end_row:
            with decoding(self._location, self._corrupt):
                batch = next(batches, None)
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
        self._file.close()
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


class RowGroup:
    """One row group as the footer describes it; implements `RowGroupStatistics`."""

    def __init__(self, metadata: pq.RowGroupMetaData, index: int, first_row: int) -> None:
        self._metadata = metadata
        self.index = index
        self.first_row = first_row
        self.num_rows: int = metadata.num_rows
        self.end_row = first_row + self.num_rows

    @property
    def start_byte(self) -> int:
        """The place of the row group's first page: what a writer records in `split_offsets`."""
        if self._metadata.num_columns == 0:
            return 0
        column = self._metadata.column(0)
        pages = (column.dictionary_page_offset, column.data_page_offset)
        return min(offset for offset in pages if offset)

    def decoded_bytes(self, leaves: Sequence[int]) -> int:
        """Return the size of the columns before compression, still encoded."""
        return sum(self._metadata.column(leaf).total_uncompressed_size for leaf in leaves)

    def leaf(self, index: int) -> LeafStatistics | None:
        statistics = self._metadata.column(index).statistics
        if statistics is None:
            return None
        has_bounds = statistics.has_min_max
        has_null_count: bool = statistics.has_null_count  # type: ignore[attr-defined]  # not in the stubs
        return LeafStatistics(
            statistics.min if has_bounds else None,
            statistics.max if has_bounds else None,
            statistics.null_count if has_null_count else None,
        )


def _runs(groups: Sequence[RowGroup]) -> list[list[RowGroup]]:
    """Return the groups as lists of neighbours: within a list, rows are consecutive in the file."""
    runs: list[list[RowGroup]] = []
    for group in groups:
        if runs and runs[-1][-1].index + 1 == group.index:
            runs[-1].append(group)
        else:
            runs.append([group])
    return runs


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
