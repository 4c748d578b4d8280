"""Decode some columns of a Parquet file's row groups, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow.parquet as pq
from pyarrow._parquet import ParquetReader as ArrowReader

from floeberg.protocol.errors import CorruptTable
from floeberg.worker.arrow import Rows
from floeberg.worker.files.decoding import decoding
from floeberg.worker.files.ranges import RangeFile
from floeberg.worker.files.row_groups import WINDOW_BYTES, RowGroup, fetch_windows
from floeberg.worker.files.views import without_views

_STREAM_BYTES = 256 << 10
"""How much of a column a streaming decoder takes at a time, out of what was fetched."""
_STREAMS_BYTES = 8 << 20
_LEAST_STREAM_BYTES = 32 << 10

ParquetReader: TypeAlias = Any
"""pyarrow's reader below `ParquetFile`, which takes columns by number; the stubs leave it out."""

Batch: TypeAlias = tuple[int, Rows]
"""Consecutive rows, after the place of the first one in the file."""


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """What decoding a file at `location` takes beside its bytes; `corrupt` is what it raises."""

    location: str
    corrupt: type[CorruptTable]
    metadata: pq.FileMetaData
    has_views: bool
    verify_crc: bool


class ParquetColumns:
    """Decodes `leaves` of any of the row groups `groups`, whose bytes come from `source`."""

    def __init__(
        self,
        footer: ParquetFooter,
        source: RangeFile,
        groups: Sequence[RowGroup],
        leaves: Set[int],
    ) -> None:
        self._footer = footer
        self._groups = groups
        self._source = source
        self.leaves = sorted(leaves)

    @cached_property
    def _reader(self) -> ParquetReader:
        largest = max((group.stored_bytes(self.leaves) for group in self._groups), default=0)
        reader: ParquetReader = ArrowReader()
        reader.open(
            self._source.for_arrow(),
            use_memory_map=False,
            metadata=self._footer.metadata,
            pre_buffer=False,
            buffer_size=_stream_bytes(len(self.leaves)) if largest > WINDOW_BYTES else 0,
            # at ns, times after 2262 would overflow
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=self._footer.verify_crc,
            arrow_extensions_enabled=True,
        )
        return reader

    def expect(self, groups: Sequence[RowGroup]) -> None:
        """Say which row groups will be read, in order, in place of what was said before."""
        with decoding(self._footer.location, self._footer.corrupt):
            self._source.expect(fetch_windows(groups, self.leaves))

    def batches(
        self, run: Sequence[RowGroup], batch_rows: int, from_row: int = 0
    ) -> Iterator[Batch]:
        """Yield the rows, from the file's row `from_row` on, of row groups that are neighbours.

        A batch has `batch_rows` rows, fewer at the end or where Arrow's arrays would grow too
        large; it may reach over a border between two row groups.
        """
        location, corrupt = self._footer.location, self._footer.corrupt
        next_row, end_row = run[0].first_row, run[-1].end_row
        with decoding(location, corrupt):
            batches = self._reader.iter_batches(
                batch_rows,
                row_groups=[group.index for group in run],
                column_indices=self.leaves,
                use_threads=False,
            )
        while next_row < end_row:
            with decoding(location, corrupt):
                batch = next(batches, None)
                if batch is not None and self._footer.has_views:
                    batch = without_views(batch)
            if batch is None:
                raise corrupt(f"{location} ends at row {next_row}; its footer promises {end_row}")
            first_row, next_row = next_row, next_row + batch.num_rows
            skipped = min(max(from_row - first_row, 0), batch.num_rows)
            if skipped < batch.num_rows:
                yield first_row + skipped, Rows.of_batch(batch).slice(skipped)


def _stream_bytes(num_columns: int) -> int:
    """Return how much of each column to hold beside what was fetched of it."""
    share = _STREAMS_BYTES // max(num_columns, 1)
    return max(_LEAST_STREAM_BYTES, min(_STREAM_BYTES, share))
