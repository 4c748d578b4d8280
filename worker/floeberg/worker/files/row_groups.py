"""A Parquet file's row groups as its footer describes them: which to read, and which bytes that
takes.

Spec: Apache Parquet, "parquet.thrift".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from floeberg.process.storage.ranges import Range
from floeberg.worker.files.rows import CHUNK_BYTES, MAX_CHUNK_ROWS, LeafStatistics
from floeberg.worker.files.thrift import Fields, Wanted, read_struct

WINDOW_BYTES = 16 << 20
"""How much of a file is fetched at a time. A row group that needs more is streamed, a piece of each
column at a time: memory follows this and not the file."""

_MOST_CHUNK_ROWS, _LEAST_CHUNK_ROWS = 1 << 17, 1 << 15
"""A chunk of narrow columns has so many rows at most: Python's part is the same for each chunk. One
of many columns has so many at least, unless they are large: the decoder has a part for each column,
too."""

_LEAST_WINDOW_BYTES = 4 << 20
_PIECE_BYTES = 1 << 20
"""What a piece of a streamed column has at least, if it may: each is a request."""

# ids of fields in parquet.thrift
_ROW_GROUPS, _COLUMN_ORDERS = 4, 7
_COLUMNS, _NUM_ROWS = 1, 3
_METADATA, _CRYPTO = 3, 8
_TYPE, _NUM_VALUES, _DECODED_BYTES, _STORED_BYTES = 1, 5, 6, 7
_DATA_PAGE, _DICTIONARY_PAGE, _STATISTICS = 9, 11, 12
_OLD_MAX, _OLD_MIN, _NULL_COUNT, _MAX_VALUE, _MIN_VALUE = 1, 2, 3, 5, 6

_BOUNDS = (_OLD_MAX, _OLD_MIN, _MAX_VALUE, _MIN_VALUE)
_NEEDED = {_TYPE, _DECODED_BYTES, _STORED_BYTES, _DATA_PAGE}
_COLUMN_METADATA: Wanted = {
    **dict.fromkeys((*_NEEDED, _NUM_VALUES, _DICTIONARY_PAGE)),
    _STATISTICS: dict.fromkeys((*_BOUNDS, _NULL_COUNT)),
}
_FILE_METADATA: Wanted = {
    _ROW_GROUPS: {_COLUMNS: {_METADATA: _COLUMN_METADATA, _CRYPTO: None}, _NUM_ROWS: None},
    _COLUMN_ORDERS: {1: None},
}

# Parquet's physical types by number, as Python's `struct` reads them
_NUMBERS: Mapping[int, str] = {0: "<?", 1: "<i", 2: "<q", 4: "<f", 5: "<d"}
_BYTES = frozenset({6, 7})
_WIDTHS: Mapping[int, int] = {0: 1, 1: 4, 2: 8, 3: 8, 4: 4, 5: 8, 6: 64, 7: 16}
"""About how many bytes a value of each type takes in Arrow, of texts and the like a guess."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group, the `index`-th of its file; implements `RowGroupStatistics`.

    `columns` are its leaf columns as the footer has them, read when they are asked for: a scan
    wants few of many.
    """

    index: int
    first_row: int
    num_rows: int
    file_bytes: int
    columns: Sequence[Fields]
    ordered_leaves: frozenset[int]

    @property
    def end_row(self) -> int:
        return self.first_row + self.num_rows

    @property
    def start_byte(self) -> int:
        """The place of the row group's first page: what a writer records in `split_offsets`.

        Raises ValueError, as `ranges` does, for a column outside of the file.
        """
        return self._range(0)[0] if self.columns else 0

    def is_encrypted(self, leaves: Iterable[int]) -> bool:
        """Say whether one of the columns takes a key to read."""
        return any(_CRYPTO in self.columns[leaf] for leaf in leaves)

    def ranges(self, leaves: Iterable[int]) -> list[Range]:
        """Return where the columns lie in the file."""
        return [self._range(leaf) for leaf in leaves]

    def _range(self, leaf: int) -> Range:
        metadata = self.columns[leaf][_METADATA]
        start, dictionary = metadata[_DATA_PAGE], metadata.get(_DICTIONARY_PAGE)
        if dictionary and dictionary < start:
            start = dictionary
        length = metadata[_STORED_BYTES]
        if not (start > 0 and 0 <= length <= self.file_bytes - start):
            raise ValueError(f"a column of {length} bytes at byte {start} is outside of the file")
        return start, length

    def stored_bytes(self, leaves: Iterable[int]) -> int:
        return sum(self.columns[leaf][_METADATA][_STORED_BYTES] for leaf in leaves)

    def decoded_bytes(self, leaves: Iterable[int]) -> int:
        """Return the size of the columns before compression, still encoded."""
        return sum(self.columns[leaf][_METADATA][_DECODED_BYTES] for leaf in leaves)

    def arrow_bytes(self, leaves: Iterable[int]) -> int:
        """Return about how large the columns are in Arrow, where no value is stored for several."""
        found = 0
        for leaf in leaves:
            metadata = self.columns[leaf][_METADATA]
            values = max(metadata.get(_NUM_VALUES, 0), self.num_rows)
            found += values * _WIDTHS.get(metadata[_TYPE], 8)
        return found

    def leaf(self, index: int) -> LeafStatistics:
        metadata = self.columns[index].get(_METADATA, {})
        raw: Fields = metadata.get(_STATISTICS, {})
        kind: int = metadata.get(_TYPE, -1)
        nulls: int | None = raw.get(_NULL_COUNT)
        if kind in _NUMBERS:
            # an older pair of fields is right for numbers, whose order was never in doubt
            smallest = _number(_NUMBERS[kind], raw.get(_MIN_VALUE, raw.get(_OLD_MIN)))
            largest = _number(_NUMBERS[kind], raw.get(_MAX_VALUE, raw.get(_OLD_MAX)))
            return LeafStatistics(smallest, largest, nulls)
        if kind in _BYTES and index in self.ordered_leaves:
            return LeafStatistics(raw.get(_MIN_VALUE), raw.get(_MAX_VALUE), nulls)
        return LeafStatistics(None, None, nulls)


def _number(layout: str, raw: bytes | None) -> object:
    if raw is None or len(raw) != struct.calcsize(layout):
        return None
    return struct.unpack(layout, raw)[0]


def read_row_groups(footer: bytes, file_bytes: int, num_columns: int) -> list[RowGroup]:
    """Return the row groups that a footer describes; the file has `num_columns` leaf columns.

    Raises ValueError for a footer that is damaged.
    """
    try:
        return list(_row_groups(footer, file_bytes, num_columns))
    except (KeyError, TypeError, AttributeError) as exc:
        raise ValueError("a part of its footer is missing or of another type") from exc


def _row_groups(footer: bytes, file_bytes: int, num_columns: int) -> Iterator[RowGroup]:
    metadata = read_struct(footer, _FILE_METADATA)
    # bounds of bytes are in the order that is meant here only where the file says so
    orders = metadata.get(_COLUMN_ORDERS, [])
    ordered = frozenset(i for i, order in enumerate(orders) if 1 in order)
    first_row = 0
    for index, raw in enumerate(metadata[_ROW_GROUPS]):
        columns, num_rows = raw[_COLUMNS], raw[_NUM_ROWS]
        if len(columns) != num_columns or num_rows < 0 or not all(map(_is_whole, columns)):
            raise ValueError(f"row group {index} contradicts the schema of its file")
        yield RowGroup(index, first_row, num_rows, file_bytes, columns, ordered)
        first_row += num_rows


def _is_whole(column: Fields) -> bool:
    """Say whether a column has what reading it needs, each field of the type that it has."""
    if _CRYPTO in column:
        return True
    metadata = column[_METADATA]
    statistics = metadata.get(_STATISTICS, {})
    return (
        all(type(metadata[field]) is int for field in _NEEDED)
        and type(metadata.get(_DICTIONARY_PAGE, 0)) is int
        and type(metadata.get(_NUM_VALUES, 0)) is int
        and type(statistics.get(_NULL_COUNT, 0)) is int
        and all(type(statistics.get(field, b"")) is bytes for field in _BOUNDS)
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


def skippable_units(groups: Sequence[RowGroup], leaves: Sequence[int]) -> list[list[RowGroup]]:
    """Return the groups as the units that are worth skipping: a row group, or small neighbours that
    make a chunk together, each of which would cost more to begin than to decode.
    """
    units: list[list[RowGroup]] = []
    room_bytes = room_rows = 0
    for group in groups:
        size = group.decoded_bytes(leaves)
        room_bytes -= size
        room_rows -= group.num_rows
        is_neighbour = bool(units) and units[-1][-1].index + 1 == group.index
        if not is_neighbour or min(room_bytes, room_rows) < 0:
            units.append([])
            room_bytes, room_rows = CHUNK_BYTES - size, MAX_CHUNK_ROWS - group.num_rows
        units[-1].append(group)
    return units


def chunk_rows(groups: Sequence[RowGroup], leaves: Sequence[int]) -> int:
    """Return how many of the groups' rows make a chunk of about `CHUNK_BYTES`."""
    encoded = sum(group.decoded_bytes(leaves) for group in groups)
    decoded = sum(group.arrow_bytes(leaves) for group in groups)
    room = sum(group.num_rows for group in groups) * CHUNK_BYTES
    most = max(_LEAST_CHUNK_ROWS, min(_MOST_CHUNK_ROWS, room // max(decoded, 1)))
    return max(1, min(most, room // max(encoded, 1)))


def fetch_windows(groups: Sequence[RowGroup], leaves: Sequence[int]) -> list[list[Range]]:
    """Return what to fetch at a time, in the order of reading: row groups up to `WINDOW_BYTES`, and
    slices of larger ones."""
    windows: list[list[Range]] = []
    room = 0
    for group in groups:
        size = group.stored_bytes(leaves)
        if size > WINDOW_BYTES:
            windows.extend(_slices(group.ranges(leaves)))
            room = 0
            continue
        if size > room:
            windows.append([])
            room = WINDOW_BYTES
        if size:
            windows[-1].extend(group.ranges(leaves))
            room -= size
    return windows


def _slices(columns: Sequence[Range]) -> list[list[Range]]:
    """Return windows over the columns of a row group, which are read side by side: each has the
    same share of every column, but for small columns, whose pieces reach over several windows."""
    size = sum(length for _, length in columns)
    window_bytes = min(WINDOW_BYTES, max(_LEAST_WINDOW_BYTES, len(columns) * _PIECE_BYTES))
    count = -(-size // window_bytes)
    slices: list[list[Range]] = [[] for _ in range(count)]
    for start, length in columns:
        pieces = min(count, -(-length // (_PIECE_BYTES // 4)))
        for k in range(pieces):
            first, end = length * k // pieces, length * (k + 1) // pieces
            slices[count * k // pieces].append((start + first, end - first))
    return slices
