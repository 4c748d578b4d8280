"""Avro data files and delete files: blocks of rows, decoded by fastavro.

The blocks are found by walking their headers, so that each block's first row is known before any is
decoded, and a file that was cut short is told from a whole one.
Spec: the Avro specification, "Object Container Files".
"""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from types import TracebackType
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader
from fastavro.schema import SchemaParseException

from floeberg.protocol.avro_codecs import CODECS
from floeberg.protocol.errors import CorruptDataFile, CorruptTable, Unsupported
from floeberg.protocol.name_mapping import MappedField, NameMapping
from floeberg.worker.arrow import ArrowArray, Rows
from floeberg.worker.files.avro_types import AvroField, AvroType, place_name, read_schema
from floeberg.worker.files.decoding import decoding
from floeberg.worker.files.ranges import RangeFile
from floeberg.worker.files.rows import (
    CHUNK_BYTES,
    MAX_CHUNK_ROWS,
    NOTHING_LATER,
    WHOLE_FILE,
    Chunk,
    Later,
    MayMatch,
    Share,
)
from floeberg.worker.files.stored import StoredField, number_leaves

_HEADER = parse_schema(
    {
        "type": "record",
        "name": "header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
        ],
    }
)
# what fastavro and the codecs raise for damaged bytes, beside ValueError and EOFError
_DAMAGE = (
    zlib.error,
    lzma.LZMAError,
    SchemaParseException,
    IndexError,
    TypeError,
    AttributeError,
    MemoryError,
    RecursionError,
    StopIteration,
)
_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_LONGEST_BLOCK_HEADER = 20


@dataclass(frozen=True, slots=True)
class _Block:
    """`num_rows` rows from the file's row `first_row` on, in `size` bytes from `data_start` on."""

    start: int
    data_start: int
    size: int
    first_row: int
    num_rows: int

    @property
    def end_row(self) -> int:
        return self.first_row + self.num_rows


class AvroRows:
    """An open Avro file; implements `StoredFile`.

    Nothing is pruned below a top-level column: a row is decoded whole in any case.
    """

    def __init__(
        self,
        source: RangeFile,
        location: str,
        *,
        mapping: NameMapping | None = None,
        corrupt: type[CorruptTable] = CorruptDataFile,
    ) -> None:
        self._location = location
        self._corrupt = corrupt
        self._source = source
        with self._decoding():
            self._open(mapping)

    def _open(self, mapping: NameMapping | None) -> None:
        stream: Any = self._source  # a file, but not one of typing's
        header: Any = schemaless_reader(stream, _HEADER, None)
        if header["magic"] != _MAGIC:
            raise ValueError("it does not start as an Avro file does")
        self._sync: bytes = header["sync"]
        codec = header["meta"].get("avro.codec", b"null").decode()
        if codec not in CODECS:
            raise Unsupported(f"{self._location} is compressed with {codec!r}, no codec of Avro's")
        self._inflate = CODECS[codec]
        self._type = read_schema(json.loads(header["meta"]["avro.schema"]))
        self._layout = parse_schema(self._type.layout)
        self._blocks = list(self._find_blocks(self._source.tell()))
        self.columns = number_leaves(_stored_fields(self._type, mapping))

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        with decoding(self._location, self._corrupt):
            try:
                yield
            except _DAMAGE as exc:
                raise ValueError(str(exc) or type(exc).__name__) from exc

    def _find_blocks(self, start: int) -> Iterator[_Block]:
        first_row = 0
        end = self._source.size()
        while start < end:
            self._source.seek(start)
            header = BytesIO(self._source.read(_LONGEST_BLOCK_HEADER))
            num_rows, size = _long(header), _long(header)
            data_start = start + header.tell()
            if num_rows < 0 or size < 0 or data_start + size + _SYNC_BYTES > end:
                raise EOFError(f"its block at byte {start} is cut short")
            yield _Block(start, data_start, size, first_row, num_rows)
            first_row += num_rows
            start = data_start + size + _SYNC_BYTES

    @property
    def num_rows(self) -> int:
        return self._blocks[-1].end_row if self._blocks else 0

    def decoded(self, leaves: Set[int]) -> tuple[StoredField, ...]:
        return tuple(column for column in self.columns if not leaves.isdisjoint(column.leaves))

    def chunks(
        self,
        leaves: Set[int],
        share: Share = WHOLE_FILE,
        may_match: MayMatch | None = None,
        later: Later = NOTHING_LATER,
    ) -> Iterator[Chunk]:
        groups = _grouped(
            [
                block
                for block in self._blocks
                if share.holds(block.start) and block.num_rows and block.end_row > share.from_row
            ]
        )
        for group in groups:
            with self._decoding():
                records = [record for block in group for record in self._records(block)]
            skipped = max(share.from_row - group[0].first_row, 0)
            records = records[skipped:]
            yield Chunk(
                group[0].first_row + skipped,
                self._rows(records, leaves),
                group is groups[-1],
                partial(self._later_rows, records, later.leaves),
            )

    def _rows(self, records: list[dict[str, Any]], leaves: Set[int]) -> Rows:
        wanted = [i for i, c in enumerate(self.columns) if not leaves.isdisjoint(c.leaves)]
        with self._decoding():
            return _rows_of(records, self._type.children, wanted)

    def _later_rows(self, records: list[dict[str, Any]], leaves: Set[int]) -> Iterator[Rows]:
        yield self._rows(records, leaves)

    def _records(self, block: _Block) -> Iterator[dict[str, Any]]:
        self._source.seek(block.data_start)
        raw = self._source.read(block.size + _SYNC_BYTES)
        if raw[block.size :] != self._sync:
            raise ValueError(f"the mark after its block at byte {block.start} is wrong")
        stream = BytesIO(self._inflate(raw[: block.size]))
        for _ in range(block.num_rows):
            record: Any = schemaless_reader(stream, self._layout, None)
            yield record
        if stream.read(1):
            raise ValueError(f"its block at byte {block.start} holds more than it says")

    @property
    def unread_bytes(self) -> int:
        return self._source.unread_bytes

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> AvroRows:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _long(stream: BytesIO) -> int:
    value: Any = schemaless_reader(stream, "long", None)
    return int(value)


def _grouped(blocks: Sequence[_Block]) -> list[list[_Block]]:
    """Return neighbouring blocks together, as many as make a chunk: a block is often a few KB."""
    groups: list[list[_Block]] = []
    room_bytes = room_rows = 0
    for block in blocks:
        room_bytes -= block.size
        room_rows -= block.num_rows
        if (
            not groups
            or min(room_bytes, room_rows) < 0
            or groups[-1][-1].end_row != block.first_row
        ):
            groups.append([])
            room_bytes = CHUNK_BYTES - block.size
            room_rows = MAX_CHUNK_ROWS - block.num_rows
        groups[-1].append(block)
    return groups


def _rows_of(
    records: list[dict[str, Any]], fields: Sequence[AvroField], wanted: Sequence[int]
) -> Rows:
    columns: list[ArrowArray] = []
    for i in wanted:
        name = place_name(i)
        columns.append(_column([record[name] for record in records], fields[i].type))
    return Rows(columns, len(records))


def _column(values: list[Any], type_: AvroType) -> ArrowArray:
    if type_.convert is not None:
        convert = type_.convert
        values = [None if v is None else convert(v) for v in values]
    return pa.array(values, type_.arrow)


def _stored_fields(type_: AvroType, mapping: NameMapping | MappedField | None) -> list[StoredField]:
    fields: list[StoredField] = []
    for field in type_.children:
        mapped = mapping.child(field.name) if mapping is not None else None
        fields.append(
            StoredField.of(
                field.name,
                field.type.arrow,
                field.field_id,
                mapped,
                _stored_fields(field.type, mapped),
            )
        )
    return fields
