"""A Parquet file's row groups as its footer describes them: which to read, and which bytes that
takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq

from floeberg.worker.files.ranges import Range
from floeberg.worker.files.rows import LeafStatistics

WINDOW_BYTES = 32 << 20
"""How much of a file is fetched at a time. A row group that needs more is streamed, a piece of each
column at a time: memory follows this and not the file."""


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
        return self._range(self._metadata.column(0))[0]

    def ranges(self, leaves: Sequence[int]) -> list[Range]:
        """Return where the columns lie in the file."""
        return [self._range(self._metadata.column(leaf)) for leaf in leaves]

    @staticmethod
    def _range(column: pq.ColumnChunkMetaData) -> Range:
        pages = (column.dictionary_page_offset, column.data_page_offset)
        return min(offset for offset in pages if offset), column.total_compressed_size

    def stored_bytes(self, leaves: Sequence[int]) -> int:
        return sum(length for _, length in self.ranges(leaves))

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
            statistics.min_raw if has_bounds else None,
            statistics.max_raw if has_bounds else None,
            statistics.null_count if has_null_count else None,
        )


def consecutive_runs(groups: Sequence[RowGroup]) -> list[list[RowGroup]]:
    """Return the groups as lists of neighbours: within a list, rows are consecutive in the file."""
    runs: list[list[RowGroup]] = []
    for group in groups:
        if runs and runs[-1][-1].index + 1 == group.index:
            runs[-1].append(group)
        else:
            runs.append([group])
    return runs


def fetch_windows(groups: Sequence[RowGroup], leaves: Sequence[int]) -> list[list[Range]]:
    """Return what to fetch at a time: row groups up to `WINDOW_BYTES`; a larger one is streamed."""
    windows: list[list[Range]] = []
    room = 0
    for group in groups:
        size = group.stored_bytes(leaves)
        if size > WINDOW_BYTES:
            room = 0
            continue
        if not windows or size > room:
            windows.append([])
            room = WINDOW_BYTES
        windows[-1].extend(group.ranges(leaves))
        room -= size
    return [window for window in windows if window]
