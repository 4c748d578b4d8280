"""Tasks as rows of manifests in a document: what a ticket says where files would be too many.

The tables of a document, see `column_codec`, one after the other:

    manifests      what decoding one takes, and which of its rows
    delete files   as `task_codec` has them
    kept files     likewise, of the rows of all manifests
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from floeberg.protocol.column_codec import (
    MAX_ROWS,
    AnyColumn,
    MalformedColumns,
    NumberColumn,
    Reader,
    Table,
    TextColumn,
    Writer,
    table_of,
)
from floeberg.protocol.expressions.json_form import bound_from_json
from floeberg.protocol.files import ManifestFile
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import ColumnKey, Int64s, Mask
from floeberg.protocol.named_tasks import NamedRows, NamedTasks, checksum_of
from floeberg.protocol.planned import References
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.residual_table import ResidualTable
from floeberg.protocol.schema import Schema
from floeberg.protocol.task_codec import (
    EncodedTasks,
    check_numbers,
    gather_deletes,
    kept_table,
    only,
    read_deletes,
    read_kept,
)
from floeberg.protocol.types import Json

MAX_MANIFEST_BYTES = 1 << 30
_MAX_MANIFESTS = 1 << 16

# ids are those of the spec's manifest lists
_LOCATION: ColumnKey = (s.OWN, 500)
_LENGTH, _SPEC_ID, _SEQUENCE_NUMBER = (s.OWN, 501), (s.OWN, 502), (s.OWN, 515)
_REQUIRED = (
    (_LENGTH, attrgetter("length")),
    (_SPEC_ID, attrgetter("spec_id")),
    (_SEQUENCE_NUMBER, attrgetter("sequence_number")),
)
_OPTIONAL = (
    ((s.OWN, 503), attrgetter("added_snapshot_id")),
    ((s.OWN, 520), attrgetter("first_row_id")),
    ((s.OWN, 504), attrgetter("added_files_count")),
    ((s.OWN, 505), attrgetter("existing_files_count")),
)
_ENTRIES, _CHECKSUM, _ROWS = (s.OWN, 1), (s.OWN, 2), (s.OWN, 3)


def can_be_named(tasks: PlannedTasks) -> bool:
    """Say whether tasks can be found again by the manifests that they come from."""
    if tasks.split_size is None:
        return False
    manifests = [part.manifest for part, _ in tasks.used_files.parts]
    return all(m is not None and m.key_metadata is None for m in manifests)


def encode_named(tasks: PlannedTasks) -> EncodedTasks:
    """Return a document of `tasks`, which `can_be_named`, in their order."""
    used = tasks.used_files
    assert tasks.split_size is not None
    named = []
    for part, places in used.parts:
        assert part.manifest is not None
        rows = part.rows[places]
        checksum = checksum_of(part.segment, rows)
        named.append(NamedRows(part.manifest, rows, len(part.segment), checksum))
    residuals = ResidualTable()
    residual_of = residuals.numbers(used.parts)
    applied = References.joined([part.deletes.of(places) for part, places in used.parts])
    deletes, applied = gather_deletes(tasks.deletes, applied)
    writer = Writer()
    writer.table(_manifest_table(named))
    for file_table in deletes:
        writer.table(file_table.table)
    writer.table(kept_table(residual_of, applied))
    described = {
        "deletes": [file_table.layout for file_table in deletes],
        "residuals": residuals.listed,
        "split_size": tasks.split_size,
        "first_task": tasks.first_of_file,
        "tasks": len(tasks),
    }
    keys = [key for file_table in deletes for key in file_table.keys]
    return EncodedTasks(described, writer.finish(), keys)


def _manifest_table(named: Sequence[NamedRows]) -> Table:
    locations = [n.manifest.location.encode() for n in named]
    text = TextColumn(
        np.array(list(map(len, locations)), dtype=np.int64),
        np.frombuffer(b"".join(locations), dtype=np.uint8),
    )
    # rows that follow one another, as they mostly do, are zeros
    facts = (*_REQUIRED, *_OPTIONAL)
    gaps = [np.diff(n.rows, prepend=-1) - 1 for n in named]
    columns: list[tuple[ColumnKey, AnyColumn | None]] = [
        (_LOCATION, text),
        *((key, _column([fact(n.manifest) for n in named])) for key, fact in facts),
        (_ENTRIES, _column([n.entries for n in named])),
        (_CHECKSUM, _column([n.checksum for n in named])),
        (_ROWS, _column([len(n.rows) for n in named])),
        ((s.ITEMS, _ROWS[1]), NumberColumn(np.concatenate([np.zeros(0, dtype=np.int64), *gaps]))),
    ]
    return table_of(len(named), columns)


def _column(values: Sequence[int | None]) -> NumberColumn:
    valid: Mask = np.array([v is not None for v in values], dtype=np.bool_)
    numbers = np.array([0 if v is None else v for v in values], dtype=np.int64)
    return NumberColumn(numbers, None if valid.all() else valid)


# --- back -----------------------------------------------------------------------------------------


def decode_named(
    described: Json, tables: memoryview, keys: Sequence[bytes], schema: Schema
) -> NamedTasks:
    """Return the tasks of a document, of which nothing is read yet.

    Raises `MalformedColumns`, and what `bound_from_json` raises.
    """
    reader, rest = Reader(tables), iter(keys)
    named = _named(reader.table())
    deletes = read_deletes(described["deletes"], reader, rest)
    residuals = tuple(bound_from_json(raw, schema) for raw in described["residuals"])
    files = sum(len(n.rows) for n in named)
    residual_of, applied = read_kept(reader.table(), files, len(residuals), len(deletes))
    reader.end()
    numbers = [described[key] for key in ("split_size", "first_task", "tasks")]
    if any(type(n) is not int or n < 0 for n in numbers) or next(rest, None) is not None:
        raise MalformedColumns("tasks of no known number")
    if (numbers[2] == 0) != (files == 0):
        raise MalformedColumns(f"{numbers[2]} tasks of {files} files")
    return NamedTasks(tuple(named), residuals, residual_of, applied, deletes, *numbers)


def _named(table: Table) -> list[NamedRows]:
    known = (_ENTRIES, _CHECKSUM, _ROWS, (s.ITEMS, _ROWS[1]))
    only(table, _LOCATION, *(key for key, _ in (*_REQUIRED, *_OPTIONAL)), *known)
    if table.rows > _MAX_MANIFESTS:
        raise MalformedColumns(f"{table.rows} manifests; at most {_MAX_MANIFESTS} are read")
    entries, checksums = table.numbers(_ENTRIES), table.numbers(_CHECKSUM)
    required = [table.numbers(key).tolist() for key in (_LENGTH, _SPEC_ID, _SEQUENCE_NUMBER)]
    optional = [_optional(table, key) for key, _ in _OPTIONAL]
    check_numbers(table.numbers(_LENGTH), MAX_MANIFEST_BYTES)
    check_numbers(entries, MAX_ROWS + 1)
    counts, gaps = table.lists(_ROWS)
    named = []
    at = 0
    for i, location in enumerate(_locations(table)):
        stop = at + int(counts[i])
        rows = _rows(gaps[at:stop], int(entries[i]))
        at = stop
        length, spec_id, sequence_number = (values[i] for values in required)
        added_snapshot_id, first_row_id, added, existing = (values[i] for values in optional)
        manifest = ManifestFile(
            location,
            length,
            spec_id,
            sequence_number=sequence_number,
            added_snapshot_id=added_snapshot_id,
            first_row_id=first_row_id,
            added_files_count=added,
            existing_files_count=existing,
        )
        named.append(NamedRows(manifest, rows, int(entries[i]), int(checksums[i])))
    return named


def _rows(gaps: Int64s, entries: int) -> Int64s:
    check_numbers(gaps, entries)
    rows = np.cumsum(gaps + 1) - 1
    if not len(rows) or rows[-1] >= entries:
        raise MalformedColumns("rows that a manifest does not have")
    return rows


def _optional(table: Table, key: ColumnKey) -> Sequence[int | None]:
    column = table.columns.get(key)
    if column is None:
        return [None] * table.rows
    if not isinstance(column, NumberColumn):
        raise MalformedColumns("text instead of a number of a manifest")
    valid = np.ones(table.rows, np.bool_) if column.valid is None else column.valid
    return [v if ok else None for v, ok in zip(column.values.tolist(), valid.tolist(), strict=True)]


def _locations(table: Table) -> list[str]:
    column = table.columns.get(_LOCATION)
    if not isinstance(column, TextColumn) or column.valid is not None:
        if not table.rows:
            return []
        raise MalformedColumns("a manifest without location")
    data = column.data.tobytes()
    places = zip(column.starts().tolist(), column.lengths.tolist(), strict=True)
    try:
        return [data[start : start + length].decode() for start, length in places]
    except UnicodeDecodeError as exc:
        raise MalformedColumns("text that is not UTF-8") from exc
