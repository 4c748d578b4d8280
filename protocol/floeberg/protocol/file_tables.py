"""Files of many segments as few tables: what a ticket says of data files and of delete files.

Rows of segments that have the same kind of partition tuples are put together, whatever manifest
they come from: a ticket of a thousand small manifests has as few columns as one of a large one.
Statistics are left out, and key metadata, which is secret and travels apart: a table says only
which files have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from floeberg.protocol.column_codec import (
    AnyColumn,
    MalformedColumns,
    NumberColumn,
    Table,
    TextColumn,
    repeated,
    table_of,
)
from floeberg.protocol.files import ManifestContent, ManifestFile
from floeberg.protocol.manifests import Numbers, PartitionKind, Segment, Strings
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Bytes, Int64s, Mask, Packer
from floeberg.protocol.manifests.packing import pack_lists, segment_facts
from floeberg.protocol.manifests.segment import as_arrow
from floeberg.protocol.types import Json

_REQUIRED: Final = (s.FORMAT, s.RECORD_COUNT, s.SIZE_BYTES, s.SEQUENCE_NUMBER)
_SCALES: Final = range(-(1 << 10), 1 << 10)


class _Fields(NamedTuple):
    """The entries' own columns that are taken, by their kind."""

    required: tuple[int, ...]
    numbers: tuple[int, ...]
    texts: tuple[int, ...]
    lists: tuple[int, ...]


_FIELDS: Final = {
    ManifestContent.DATA: _Fields(
        _REQUIRED,
        (s.FILE_SEQUENCE_NUMBER, s.FIRST_ROW_ID, s.SORT_ORDER_ID, s.HAS_NO_PARTITION),
        (),
        (s.SPLIT_OFFSETS,),
    ),
    ManifestContent.DELETES: _Fields(
        (*_REQUIRED, s.CONTENT),
        (s.CONTENT_OFFSET, s.CONTENT_SIZE_BYTES, s.HAS_NO_PARTITION),
        (s.REFERENCED_DATA_FILE,),
        (s.EQUALITY_IDS,),
    ),
}


class Layout(NamedTuple):
    """What partition tuples look like: their spec, and (field id, kind, scale, is text) of each."""

    spec_id: int
    fields: tuple[tuple[int, PartitionKind, int, bool], ...]

    @classmethod
    def of(cls, segment: Segment) -> Layout:
        fields = (
            (c.field_id, c.kind, c.scale, isinstance(c.column, Strings))
            for c in segment.partition.values()
        )
        return cls(segment.spec_id, tuple(fields))

    def to_json(self) -> Json:
        return [self.spec_id, *([i, str(kind), scale] for i, kind, scale, _ in self.fields)]


@dataclass(frozen=True, slots=True)
class FileTable:
    """Files of one layout, and the key metadata of those that have some, in their order."""

    layout: Json
    table: Table
    keys: list[bytes]


class Gathered(NamedTuple):
    """Tables, and the number of each file that was gathered, counted through the tables' rows."""

    tables: tuple[FileTable, ...]
    numbers: Int64s


def gather(
    parts: Sequence[tuple[Segment, Int64s]], content: ManifestContent, *, keep_order: bool = False
) -> Gathered:
    """Return what `parts`, segments and rows of each, have of files.

    A table a layout; or, to `keep_order` through all tables, one each time that the layout changes.
    """
    by_layout: dict[tuple[Layout, int], list[int]] = {}
    last, run = None, 0
    for i, (segment, _) in enumerate(parts):
        layout = Layout.of(segment)
        run += keep_order and layout != last
        last = layout
        by_layout.setdefault((layout, run), []).append(i)
    firsts = np.zeros(len(parts), dtype=np.int64)
    tables = []
    total = 0
    for (layout, _), members in by_layout.items():
        for i in members:
            firsts[i] = total
            total += len(parts[i][1])
        tables.append(_table(layout, [parts[i] for i in members], content))
    if len(by_layout) < 2:  # mostly
        return Gathered(tuple(tables), np.arange(total))
    numbers = [f + np.arange(len(rows)) for f, (_, rows) in zip(firsts, parts, strict=True)]
    return Gathered(tuple(tables), np.concatenate(numbers))


def _table(
    layout: Layout, parts: Sequence[tuple[Segment, Int64s]], content: ManifestContent
) -> FileTable:
    fields = _FIELDS[content]
    rows = sum(len(rows) for _, rows in parts)
    numbers = [
        ((s.OWN, i), _numbers([(segment.numbers(i), rows) for segment, rows in parts]))
        for i in (*fields.required, *fields.numbers)
    ]
    texts = [
        ((s.OWN, i), _texts([(segment.strings(i), rows) for segment, rows in parts]))
        for i in (s.LOCATION, *fields.texts)
    ]
    keys = _texts([(segment.strings(s.KEY_METADATA), rows) for segment, rows in parts])
    partition = [
        ((s.PARTITION, i), _column([(seg.partition[i].column, rows) for seg, rows in parts]))
        for i, *_ in layout.fields
    ]
    lists = [pair for i in fields.lists for pair in _lists(parts, i)]
    has_key = None
    if keys is not None:
        has_key = NumberColumn(np.zeros(rows, dtype=np.int64), keys.valid)
    table = table_of(
        rows, [*numbers, *texts, ((s.OWN, s.KEY_METADATA), has_key), *lists, *partition]
    )
    return FileTable(layout.to_json(), table, _present(keys))


def _present(column: TextColumn | None) -> list[bytes]:
    if column is None:
        return []
    chosen = range(len(column.lengths)) if column.valid is None else np.flatnonzero(column.valid)
    starts, ends = column.starts().tolist(), np.cumsum(column.lengths).tolist()
    return [column.data[starts[i] : ends[i]].tobytes() for i in chosen]


def _column(pieces: Sequence[tuple[Numbers | Strings | None, Int64s]]) -> AnyColumn | None:
    numbers = [(c, rows) for c, rows in pieces if not isinstance(c, Strings)]
    if len(numbers) == len(pieces):
        return _numbers(numbers)
    return _texts([(c, rows) for c, rows in pieces if not isinstance(c, Numbers)])


def _numbers(pieces: Sequence[tuple[Numbers | None, Int64s]]) -> NumberColumn | None:
    if all(column is None for column, _ in pieces):
        return None
    if (value := _only_value([column for column, _ in pieces])) is not None:
        return NumberColumn(repeated(value, sum(len(rows) for _, rows in pieces)))
    values = [
        np.zeros(len(rows), dtype=np.int64)
        if column is None
        else column.values[rows].astype(np.int64, copy=False)
        for column, rows in pieces
    ]
    return NumberColumn(np.concatenate(values), _valid(pieces))


def _only_value(columns: Sequence[Numbers | None]) -> int | None:
    """Return the value that all rows have, where columns are known to have one each."""
    first: int | None = None
    for column in columns:
        if column is None or column.valid is not None or not column.is_constant:
            return None
        value = int(column.values[0])
        if first is None:
            first = value
        elif value != first:
            return None
    return first


def _texts(pieces: Sequence[tuple[Strings | None, Int64s]]) -> TextColumn | None:
    if all(column is None for column, _ in pieces):
        return None
    taken = [
        (np.zeros(len(rows), dtype=np.int64), np.zeros(0, dtype=np.uint8))
        if column is None
        else _taken(column, rows)
        for column, rows in pieces
    ]
    lengths, data = zip(*taken, strict=True)
    return TextColumn(np.concatenate(lengths), np.concatenate(data), _valid(pieces))


def _valid(pieces: Sequence[tuple[Numbers | Strings | None, Int64s]]) -> Mask | None:
    """Say which rows have a value, None where all do."""
    if all(column is not None and column.valid is None for column, _ in pieces):
        return None
    masks = [
        np.full(len(rows), column is not None)
        if column is None or column.valid is None
        else column.valid[rows]
        for column, rows in pieces
    ]
    valid = np.concatenate(masks)
    return None if valid.all() else valid


def _taken(column: Strings, rows: Int64s) -> tuple[Int64s, Bytes]:
    """Return the lengths of some rows' values, and these one after the other."""
    lengths = column.lengths_of(rows)
    if column.offsets is None:
        matrix = column.data[rows]
        if column.valid is not None:
            matrix = matrix[column.valid[rows]]
        return lengths, matrix.reshape(-1)
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:  # ascending, so without gaps
        return lengths, column.data[column.offsets[rows[0]] : column.offsets[rows[-1] + 1]]
    # Any: a buffer of pyarrow is one of Python and the other way round, which its stubs do not know
    whole: Any = np.ascontiguousarray(rows)
    # not by pyarrow's own conversion, which imports pandas where that is installed
    indices = pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(whole)])
    taken = as_arrow(Strings(column.data, column.offsets), len(column)).take(indices)
    data: Any = taken.buffers()[2]
    return lengths, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def _lists(
    parts: Sequence[tuple[Segment, Int64s]], field_id: int
) -> list[tuple[tuple[int, int], NumberColumn]]:
    counts, items = [], []
    for segment, rows in parts:
        size, values = segment.lists_of(field_id, rows)
        counts.append(size)
        items.append(values.astype(np.int64, copy=False))
    if not sum(map(len, items)):
        return []
    return [
        ((s.OWN, field_id), NumberColumn(np.concatenate(counts))),
        ((s.ITEMS, field_id), NumberColumn(np.concatenate(items))),
    ]


def without_metrics(segment: Segment) -> Segment:
    """Return a segment without statistics, which are most of it."""
    (file_table,) = gather([(segment, np.arange(len(segment)))], segment.content).tables
    return segment_of(file_table, segment.content, segment.location)


# --- back -----------------------------------------------------------------------------------------


def segment_of(file_table: FileTable, content: ManifestContent, location: str) -> Segment:
    """Return a segment of a table's files; `location` stands for where it comes from.

    Raises `MalformedColumns` for what `gather` did not give.
    """
    table, fields = file_table.table, _FIELDS[content]
    spec_id, partition = _layout(file_table.layout)
    manifest = ManifestFile(location, 0, spec_id, content)
    packer = Packer(table.rows, segment_facts(manifest, partition))
    columns = dict(table.columns)
    if table.rows:
        _check(table, fields, content)
    if keys_in(table) != len(file_table.keys):
        raise MalformedColumns("more or fewer keys than encrypted files")
    _pack_keys(packer, table.rows, columns.pop((s.OWN, s.KEY_METADATA), None), file_table.keys)
    for field_id in (*fields.required, *fields.numbers):
        column = columns.pop((s.OWN, field_id), None)
        if column is not None:
            _pack_numbers(packer, (s.OWN, field_id), column)
    for field_id in (s.LOCATION, *fields.texts):
        column = columns.pop((s.OWN, field_id), None)
        if column is not None:
            _pack_text(packer, (s.OWN, field_id), column, is_text=True)
    for field_id in fields.lists:
        counts, items = table.lists((s.OWN, field_id))
        pack_lists(packer, field_id, counts, items)
        columns.pop((s.OWN, field_id), None)
        columns.pop((s.ITEMS, field_id), None)
    for field_id, kind, _ in partition:
        column = columns.pop((s.PARTITION, field_id), None)
        if column is not None:
            _pack_partition(packer, field_id, PartitionKind(kind), column)
    if columns:
        raise MalformedColumns(f"unknown columns {sorted(columns)}")
    return Segment(packer.finish())


def _layout(raw: Json) -> tuple[int, list[tuple[int, str, int]]]:
    try:
        spec_id, *fields = raw
        partition = [(i, str(PartitionKind(kind)), scale) for i, kind, scale in fields]
    except (TypeError, ValueError) as exc:
        raise MalformedColumns("partitions of no known form") from exc
    numbers = [spec_id, *(n for i, _, scale in partition for n in (i, scale))]
    if any(type(n) is not int for n in numbers):
        raise MalformedColumns("partitions of no known form")
    if len({i for i, *_ in partition}) < len(partition):
        raise MalformedColumns("a partition field that stands twice")
    if any(scale not in _SCALES for *_, scale in partition):
        raise MalformedColumns("a decimal of too many digits")
    return spec_id, partition


def _check(table: Table, fields: _Fields, content: ManifestContent) -> None:
    """Refuse what no entry could have: readers of a segment take it for checked."""
    for field_id in fields.required:
        table.numbers((s.OWN, field_id))
    location = table.columns.get((s.OWN, s.LOCATION))
    if location is None or location.valid is not None:
        raise MalformedColumns("a file without location")
    bounds = [(s.FORMAT, 0, len(s.FORMATS) - 1)]
    if content is ManifestContent.DELETES:
        bounds.append((s.CONTENT, 1, 2))
    for field_id, least, most in bounds:
        values = table.numbers((s.OWN, field_id))
        if values.min() < least or values.max() > most:
            raise MalformedColumns(f"a file whose field {field_id} has no such value")


def _pack_numbers(packer: Packer, key: tuple[int, int], column: AnyColumn) -> None:
    if not isinstance(column, NumberColumn):
        raise MalformedColumns(f"text instead of the numbers of {key}")
    packer.numbers(key, column.values, column.valid)


def _pack_text(packer: Packer, key: tuple[int, int], column: AnyColumn, *, is_text: bool) -> None:
    if not isinstance(column, TextColumn):
        raise MalformedColumns(f"numbers instead of the text of {key}")
    if is_text:
        _check_utf8(column)
    packer.strings(key, column.lengths, column.data, column.valid)


def _check_utf8(column: TextColumn) -> None:
    try:
        column.data.tobytes().decode()
    except UnicodeDecodeError as exc:
        raise MalformedColumns("text that is not UTF-8") from exc
    firsts = column.starts()[column.lengths > 0]
    if ((column.data[firsts] & 0xC0) == 0x80).any():
        raise MalformedColumns("text that begins within a character")


def _pack_partition(packer: Packer, field_id: int, kind: PartitionKind, column: AnyColumn) -> None:
    key = s.PARTITION, field_id
    match kind:
        case PartitionKind.NULL:
            raise MalformedColumns("values where all are null")
        case PartitionKind.TEXT | PartitionKind.BYTES:
            _pack_text(packer, key, column, is_text=kind is PartitionKind.TEXT)
        case PartitionKind.DECIMAL if isinstance(column, TextColumn):
            _pack_text(packer, key, column, is_text=False)
        case _:
            _pack_numbers(packer, key, column)


def _pack_keys(packer: Packer, rows: int, has_key: AnyColumn | None, keys: Sequence[bytes]) -> None:
    if has_key is None:
        return
    lengths = np.zeros(rows, dtype=np.int64)
    lengths[slice(None) if has_key.valid is None else has_key.valid] = list(map(len, keys))
    data = np.frombuffer(b"".join(keys), dtype=np.uint8)
    packer.strings((s.OWN, s.KEY_METADATA), lengths, data, has_key.valid)


def keys_in(table: Table, rows: slice = slice(None)) -> int:
    """Return how many of a table's files, or of some of them, have key metadata."""
    column = table.columns.get((s.OWN, s.KEY_METADATA))
    if column is None:
        return 0
    has_key = np.ones(table.rows, dtype=np.bool_) if column.valid is None else column.valid
    return int(np.count_nonzero(has_key[rows]))
