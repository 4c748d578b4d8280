"""Tasks as JSON in which nothing stands twice: what a ticket says of the files to read.

Splits share their data file, data files their deletes, directory and partition, and most tasks
have the same residual. So a document holds tables, whose rows refer to one another by number:

    directories   locations up to their last slash
    partitions    [spec id, [field id, value], …]
    residuals     bound filters, by field id
    deletes       delete files
    files         data files
    tasks         file, byte range, deletes, residual

The last three are written by column, and a column without values is left out: less JSON, and what
is alike stands together for the compression.

Everything of a task comes back but its files' metrics: a worker prunes by what the file itself
says, and counts and bounds would be the larger part of a ticket. (A position delete file of a
single data file is known by `referenced_data_file`, not by its bounds.) The key metadata of
encrypted files is not in the document either: its rows refer to a list that travels apart, see
`plan_codec`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Hashable, Iterator, Sequence
from decimal import Decimal
from itertools import repeat
from typing import Generic, NamedTuple, TypeVar

from floeberg.protocol.expressions.json_form import bound_from_json, bound_to_json
from floeberg.protocol.expressions.model import BoundExpression
from floeberg.protocol.files import Content, DataFile, DeleteFile, FileFormat
from floeberg.protocol.schema import Schema
from floeberg.protocol.tasks import FileScanTask
from floeberg.protocol.types import Json, Value


class MalformedTasks(ValueError):
    """A document that `encode_tasks` did not write."""


def encode_tasks(tasks: Sequence[FileScanTask]) -> tuple[Json, list[bytes]]:
    """Return the document of `tasks`, in their order, and the key metadata that it refers to."""
    encoder = _Encoder()
    return encoder.document(tasks), encoder.keys


def decode_tasks(document: Json, keys: Sequence[bytes], schema: Schema) -> tuple[FileScanTask, ...]:
    """Return the tasks of a document; `schema` is the one that their residuals are bound to.

    Tasks share the files that they shared. Raises `MalformedTasks`.
    """
    try:
        return _decode(document, keys, schema)
    except MalformedTasks:
        raise
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError, AttributeError) as exc:
        raise MalformedTasks(f"tasks that can't be decoded: {exc}") from exc


# --- partition values ----------------------------------------------------------------------------


def encode_value(value: Value | None) -> Json:
    """Return a partition value as JSON that says itself what it is.

    Appendix D's form needs the value's type, which an unknown transform or a dropped source column
    takes away; this one doesn't. What JSON has no exact form for stands in an object with one key.

    >>> encode_value(7), encode_value(Decimal("1.50")), encode_value(b"ab"), encode_value(0.5)
    (7, {'decimal': '1.50'}, {'bytes': 'YWI='}, {'float': '0.5'})
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"float": repr(value)}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}


def decode_value(raw: Json) -> Value | None:
    """Return the value that `encode_value` was given. Raises `ValueError`."""
    match raw:
        case None | bool() | int() | str():
            return raw
        case {"float": str(text), **rest} if not rest:
            return float(text)
        case {"decimal": str(text), **rest} if not rest:
            return Decimal(text)
        case {"bytes": str(text), **rest} if not rest:
            return base64.b64decode(text, validate=True)
        case _:
            raise ValueError("a partition value of no known kind")


# --- encoding ------------------------------------------------------------------------------------

_FILE = (
    *("directory", "name", "format", "records", "bytes", "partition", "sequence"),
    *("file_sequence", "first_row_id", "split_offsets", "sort_order", "key"),
)
_DELETE = (
    *("directory", "name", "content", "format", "records", "bytes", "partition", "sequence"),
    *("equality_ids", "referenced_directory", "referenced_name"),
    *("blob_offset", "blob_bytes", "key"),
)
_TASK = ("file", "start", "length", "deletes", "residual")


class _Encoder:
    """Fills the tables with what tasks refer to."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self._directories: list[Json] = []
        self._partitions: list[Json] = []
        self._residuals: list[Json] = []
        self._deletes: list[Json] = []
        self._files: list[Json] = []
        self._numbers: dict[Hashable, int] = {}

    def document(self, tasks: Sequence[FileScanTask]) -> Json:
        # files are told apart by identity, which `tasks` keeps alive until the end
        rows = [self._task(task) for task in tasks]
        return {
            "directories": self._directories,
            "partitions": self._partitions,
            "residuals": self._residuals,
            "deletes": _columns(_DELETE, self._deletes),
            "files": _columns(_FILE, self._files),
            "tasks": _columns(_TASK, rows),
        }

    def _task(self, task: FileScanTask) -> Json:
        file = self._numbers.get(id(task.data_file))
        if file is None:
            file = self._append(self._files, id(task.data_file), self._file(task.data_file))
        deletes = [self._delete_number(delete) for delete in task.delete_files]
        residual = self._residual(task.residual)
        return (file, task.start or None, task.length or None, deletes or None, residual)

    def _delete_number(self, file: DeleteFile) -> int:
        number = self._numbers.get(id(file))
        return (
            self._append(self._deletes, id(file), self._delete(file)) if number is None else number
        )

    def _append(self, table: list[Json], key: Hashable, row: Json) -> int:
        table.append(row)
        self._numbers[key] = len(table) - 1
        return len(table) - 1

    def _distinct(self, table: list[Json], name: str, row: Json) -> int:
        # by its text, since 1, True and 1.0 would be one key
        key = (name, row if isinstance(row, str) else json.dumps(row))
        number = self._numbers.get(key)
        return self._append(table, key, row) if number is None else number

    def _file(self, file: DataFile) -> Json:
        return (
            *self._location(file.location),
            str(file.format),
            file.record_count,
            file.size_bytes,
            self._partition(file),
            file.data_sequence_number,
            file.file_sequence_number,
            file.first_row_id,
            list(file.split_offsets) or None,
            file.sort_order_id,
            self._key(file.key_metadata),
        )

    def _delete(self, file: DeleteFile) -> Json:
        referenced = file.referenced_data_file
        return (
            *self._location(file.location),
            int(file.content),
            str(file.format),
            file.record_count,
            file.size_bytes,
            self._partition(file),
            file.data_sequence_number,
            list(file.equality_ids) or None,
            *((None, None) if referenced is None else self._location(referenced)),
            file.content_offset,
            file.content_size_bytes,
            self._key(file.key_metadata),
        )

    def _location(self, location: str) -> tuple[int, str]:
        cut = location.rfind("/") + 1
        return self._distinct(self._directories, "directory", location[:cut]), location[cut:]

    def _partition(self, file: DataFile | DeleteFile) -> int:
        values = [[field_id, encode_value(v)] for field_id, v in file.partition.items()]
        return self._distinct(self._partitions, "partition", [file.spec_id, *values])

    def _residual(self, residual: BoundExpression) -> int:
        number = self._numbers.get(id(residual))
        if number is None:
            number = self._distinct(self._residuals, "residual", bound_to_json(residual))
            self._numbers[id(residual)] = number
        return number

    def _key(self, key: bytes | None) -> int | None:
        if key is None:
            return None
        self.keys.append(key)
        return len(self.keys) - 1


def _columns(names: Sequence[str], rows: Sequence[Json]) -> Json:
    """Return rows as named columns, without those that hold nothing but null."""
    out: dict[str, Json] = {"rows": len(rows)}
    for name, column in zip(names, zip(*rows, strict=True), strict=False):
        if any(value is not None for value in column):
            out[name] = column
    return out


# --- decoding ------------------------------------------------------------------------------------


def _decode(document: Json, keys: Sequence[bytes], schema: Schema) -> tuple[FileScanTask, ...]:
    shared = _Shared(
        _Rows(document["directories"]),
        _Rows([_partition(row) for row in document["partitions"]]),
        _Rows(keys),
    )
    deletes = _Rows([_delete(row, shared) for row in _rows(document["deletes"], _DELETE)])
    files = _Rows([_file(row, shared) for row in _rows(document["files"], _FILE)])
    residuals = _Rows([bound_from_json(raw, schema) for raw in document["residuals"]])
    return tuple(
        FileScanTask(
            data_file=files[file],
            delete_files=tuple(deletes[number] for number in applied or ()),
            residual=residuals[residual],
            start=_int(start or 0),
            length=_int(length or 0),
        )
        for file, start, length, applied, residual in _rows(document["tasks"], _TASK)
    )


RowT = TypeVar("RowT")


class _Rows(Generic[RowT]):
    """A table as rows refer to it: by numbers from 0, and never from its end."""

    def __init__(self, rows: Sequence[RowT]) -> None:
        self._rows = rows

    def __getitem__(self, number: Json) -> RowT:
        if _int(number) < 0:
            raise MalformedTasks("a negative row number")
        return self._rows[number]


class _Shared(NamedTuple):
    """What both kinds of files refer to."""

    directories: _Rows[str]
    partitions: _Rows[tuple[int, dict[int, Value | None]]]
    keys: _Rows[bytes]

    def location(self, directory: Json, name: Json) -> str:
        if not isinstance(name, str):
            raise MalformedTasks(f"{name!r} instead of a file's name")
        return self.directories[directory] + name

    def key(self, number: Json) -> bytes | None:
        return None if number is None else self.keys[number]


def _partition(row: Json) -> tuple[int, dict[int, Value | None]]:
    spec_id, *values = row
    return _int(spec_id), {_int(field_id): decode_value(raw) for field_id, raw in values}


def _file(row: Sequence[Json], shared: _Shared) -> DataFile:
    directory, name, format_, records, size, partition, sequence, *rest = row
    file_sequence, first_row_id, split_offsets, sort_order, key = rest
    spec_id, values = shared.partitions[partition]
    return DataFile(
        location=shared.location(directory, name),
        format=FileFormat(format_),
        record_count=_int(records),
        size_bytes=_int(size),
        spec_id=spec_id,
        partition=values,
        data_sequence_number=_int(sequence),
        file_sequence_number=_int_or_none(file_sequence),
        first_row_id=_int_or_none(first_row_id),
        split_offsets=tuple(_int(offset) for offset in split_offsets or ()),
        sort_order_id=_int_or_none(sort_order),
        key_metadata=shared.key(key),
    )


def _delete(row: Sequence[Json], shared: _Shared) -> DeleteFile:
    directory, name, content, format_, records, size, partition, sequence, *rest = row
    equality_ids, referenced_directory, referenced_name, blob_offset, blob_bytes, key = rest
    spec_id, values = shared.partitions[partition]
    return DeleteFile(
        location=shared.location(directory, name),
        content=Content(content),
        format=FileFormat(format_),
        record_count=_int(records),
        size_bytes=_int(size),
        spec_id=spec_id,
        partition=values,
        data_sequence_number=_int(sequence),
        equality_ids=tuple(_int(field_id) for field_id in equality_ids or ()),
        referenced_data_file=None
        if referenced_directory is None
        else shared.location(referenced_directory, referenced_name),
        content_offset=_int_or_none(blob_offset),
        content_size_bytes=_int_or_none(blob_bytes),
        key_metadata=shared.key(key),
    )


def _rows(table: Json, names: Sequence[str]) -> Iterator[tuple[Json, ...]]:
    """Return the rows of what `_columns` wrote. An unknown column is refused: it says something."""
    columns = dict(table)
    count = _int(columns.pop("rows"))
    if unknown := columns.keys() - set(names):
        raise MalformedTasks(f"unknown columns {', '.join(sorted(unknown))}")
    if any(len(column) != count for column in columns.values()):
        raise MalformedTasks("columns of different lengths")
    return zip(*(columns.get(name, repeat(None, count)) for name in names), strict=True)


def _int(raw: Json) -> int:
    if type(raw) is not int:
        raise MalformedTasks(f"{raw!r} instead of a whole number")
    return raw


def _int_or_none(raw: Json) -> int | None:
    return None if raw is None else _int(raw)
