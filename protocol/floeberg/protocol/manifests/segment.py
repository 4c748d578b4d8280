"""A manifest's live entries as columns: decoded once, immutable, one flat buffer.

A segment holds all that `read_manifest` gives, after inheritance, in the order of the file. Who
evaluates filters or joins deletes uses its columns, of which row `i` is entry `i`; who needs single
files gets them as the same objects that `read_manifest` makes. A field that no entry has is no
column: None. The buffer may be memory or a mapped file; columns are views into it.

Sections of columns, see `manifests.columns`: the entries' own (ids are the spec's field ids), the
items of their lists, their partition (ids are partition field ids), and each map of statistics (ids
are those of the table's columns).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from floeberg.protocol.files import (
    Content,
    DataFile,
    DeleteFile,
    FileFormat,
    ManifestContent,
    Metrics,
)
from floeberg.protocol.manifests.columns import Buffer, Int64s, Ints, Numbers, Packed, Strings
from floeberg.protocol.manifests.reading import EntryStatus, ManifestEntry
from floeberg.protocol.types import Value
from floeberg.protocol.values import decimal_of

OWN: Final = 0
ITEMS: Final = 1
PARTITION: Final = 102

STATUS, SNAPSHOT_ID, SEQUENCE_NUMBER, FILE_SEQUENCE_NUMBER = 0, 1, 3, 4
CONTENT, LOCATION, FORMAT, RECORD_COUNT, SIZE_BYTES = 134, 100, 101, 103, 104
KEY_METADATA, SPLIT_OFFSETS, EQUALITY_IDS, SORT_ORDER_ID = 131, 132, 135, 140
FIRST_ROW_ID, REFERENCED_DATA_FILE, CONTENT_OFFSET, CONTENT_SIZE_BYTES = 142, 143, 144, 145
HAS_NO_PARTITION = 102
"""Of `OWN`: 1 for an entry whose partition tuple is missing altogether."""

COLUMN_SIZES, VALUE_COUNTS, NULL_VALUE_COUNTS, NAN_VALUE_COUNTS = 108, 109, 110, 137
LOWER_BOUNDS, UPPER_BOUNDS = 125, 128
COUNTS: Final = (COLUMN_SIZES, VALUE_COUNTS, NULL_VALUE_COUNTS, NAN_VALUE_COUNTS)
BOUNDS: Final = (LOWER_BOUNDS, UPPER_BOUNDS)

FORMATS: Final = tuple(FileFormat)
"""File formats by their number in a segment."""

_OBJECT_BYTES = 3000  # measured in CPython 3.11


class PartitionKind(StrEnum):
    """What the values of a partition column are, as the manifest stores them.

    It says less than the partition spec, whose type may be a later one: an INTEGER may be a date, a
    time or a bucket.
    """

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    TEXT = "text"
    BYTES = "bytes"
    DECIMAL = "decimal"


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One field of the partition tuples.

    `column` is None where all are null. Booleans are 0 and 1; floats are their 64 bits, and all NaN
    are one; decimals are units of 10 to the power of minus `scale`, as numbers or, where 64 bits do
    not hold them all, as big-endian bytes.
    """

    field_id: int
    kind: PartitionKind
    scale: int
    column: Numbers | Strings | None

    def take(self, rows: Int64s) -> PartitionColumn:
        """Return the values of `rows`, in their order."""
        return replace(self, column=None if self.column is None else self.column.take(rows))

    def floats(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """Return a FLOAT column's values; 0.0 stands where there is none."""
        assert self.kind is PartitionKind.FLOAT
        assert isinstance(self.column, Numbers)
        return self.column.values.astype(np.int64).view(np.float64)

    def to_list(self, rows: Int64s) -> list[Value | None]:
        """Return the values of the entries that `rows` names, as `DataFile.partition` has them."""
        if self.column is None:
            return [None] * len(rows)
        listed: list[Value | None] = list(self.column.to_list(rows))
        match self.kind:
            case PartitionKind.BOOLEAN:
                return [None if v is None else bool(v) for v in listed]
            case PartitionKind.TEXT:
                return [v.decode() if isinstance(v, bytes) else None for v in listed]
            case PartitionKind.FLOAT:
                floats: list[float] = self.floats()[rows].tolist()
                return [None if v is None else f for v, f in zip(listed, floats, strict=True)]
            case PartitionKind.DECIMAL:
                return [self._decimal(v) for v in listed]
            case _:
                return listed

    def _decimal(self, stored: Value | None) -> Value | None:
        if isinstance(stored, bytes):
            stored = int.from_bytes(stored, "big", signed=True)
        return decimal_of(stored, self.scale) if isinstance(stored, int) else None


class Segment:
    """The live entries of one manifest. Never changes; safe to share between threads.

    It is of one manifest as one manifest list knows it: entries have inherited from that.
    """

    def __init__(self, buffer: Buffer) -> None:
        """Use a buffer that `buffer` of another segment was copied from.

        Raises `DamagedBuffer` when it is not exactly that.
        """
        self._packed = Packed(buffer)
        facts = self._packed.facts
        self.location: str = facts["location"]
        self.spec_id: int = facts["spec_id"]
        self.content = ManifestContent(facts["content"])
        self.partition_fields: Sequence[tuple[int, str, int]] = facts["partition"]
        """The partition's fields: id, kind, and scale of decimals."""
        self.known: dict[Hashable, bool] = {}
        """What planning found of the columns, which stays true: all that is ever added."""

    def __len__(self) -> int:
        return self._packed.rows

    @property
    def buffer(self) -> memoryview:
        """The segment as flat bytes: write them to a file, map it, and make a segment of it."""
        return self._packed.buffer

    @property
    def packed(self) -> Packed:
        """The columns by their keys, for what makes other segments of them."""
        return self._packed

    @property
    def size_bytes(self) -> int:
        return len(self._packed.buffer)

    @property
    def memory_bytes(self) -> int:
        """About what it costs to keep: the buffer, and the objects around it."""
        return self.size_bytes + _OBJECT_BYTES

    # --- columns ----------------------------------------------------------------------------------

    def numbers(self, field_id: int) -> Numbers | None:
        """Return a column of the entries' own numbers, None when no entry has one.

        STATUS, CONTENT (0 where a manifest does not say), FORMAT (an index into `FORMATS`),
        SEQUENCE_NUMBER, RECORD_COUNT and SIZE_BYTES have a value in every row of a segment that has
        rows. FILE_SEQUENCE_NUMBER, SORT_ORDER_ID and FIRST_ROW_ID are data files' alone.
        """
        return self._packed.numbers((OWN, field_id))

    def strings(self, field_id: int) -> Strings | None:
        """Return LOCATION (UTF-8, one a row), REFERENCED_DATA_FILE or KEY_METADATA."""
        return self._packed.strings((OWN, field_id))

    def locations(self) -> pa.StringArray:
        """Return the files' paths as an Arrow array, mostly without copying them."""
        return as_arrow(self.strings(LOCATION), len(self))

    def lists(self, field_id: int) -> tuple[Int64s, Int64s, Ints]:
        """Return SPLIT_OFFSETS or EQUALITY_IDS: starts, counts and items.

        The list of entry `i` is `items[starts[i] : starts[i] + counts[i]]`; one that is absent is
        empty.
        """
        counts = self.numbers(field_id)
        items = self._packed.numbers((ITEMS, field_id))
        if counts is None or items is None:
            zeros = np.zeros(len(self), dtype=np.int64)
            return zeros, zeros, np.zeros(0, dtype=np.int64)
        sizes = counts.values.astype(np.int64)
        return np.cumsum(sizes) - sizes, sizes, items.values

    def lists_of(self, field_id: int, rows: Int64s) -> tuple[Int64s, Ints]:
        """Return the lists of `rows`, see `lists`: their counts, and their items one by one."""
        counts = self.numbers(field_id)
        items = self._packed.numbers((ITEMS, field_id))
        if counts is None or items is None:
            return np.zeros(len(rows), dtype=np.int64), np.zeros(0, dtype=np.int64)
        if counts.is_constant:  # all are as long: nothing has to be added up
            length = int(counts.values[0])
            places = (rows[:, None] * length + np.arange(length)).ravel()
            return np.full(len(rows), length, dtype=np.int64), items.values[places]
        size = counts.values[rows].astype(np.int64, copy=False)
        ends = np.cumsum(counts.values, dtype=np.int64)[rows]
        upto = np.cumsum(size)
        places = np.repeat(ends - upto, size) + np.arange(upto[-1] if len(upto) else 0)
        return size, items.values[places]

    @cached_property
    def partition(self) -> Mapping[int, PartitionColumn]:
        """The fields of the partition tuples by id, in the order of the manifest's schema.

        The values of a row that `HAS_NO_PARTITION` are neither null nor anything else, although
        the columns have them as null.
        """
        found = {}
        for field_id, kind, scale in self.partition_fields:
            column = self._packed.column((PARTITION, field_id))
            found[field_id] = PartitionColumn(field_id, PartitionKind(kind), scale, column)
        return found

    def column_ids(self, metric: int) -> tuple[int, ...]:
        """Return the columns that any entry has `metric` of, ascending. One of COUNTS or BOUNDS."""
        return self._packed.ids.get(metric, ())

    def counts(self, metric: int, column_id: int) -> Numbers | None:
        """Return one of `COUNTS` for one column of the table, None when no entry has it."""
        return self._packed.numbers((metric, column_id))

    def bounds(self, metric: int, column_id: int) -> Strings | None:
        """Return one of `BOUNDS` for one column of the table, None when no entry has it.

        They are Appendix D's bytes of the type that the column had when the file was written, so
        one column may have several widths.
        """
        return self._packed.strings((metric, column_id))

    # --- single entries ---------------------------------------------------------------------------

    def entry(self, row: int) -> ManifestEntry:
        return self.entries([row])[0]

    def entries(
        self, rows: Sequence[int] | Int64s | None = None, *, with_metrics: bool = True
    ) -> list[ManifestEntry]:
        """Return the entries that `rows` names, or all: equal to what `read_manifest` gives, but
        for the metrics where those are left out.

        It costs about as much an entry as a Python object with many statistics does: do it late,
        for few, and for all of them at once.
        """
        places = np.arange(len(self)) if rows is None else np.asarray(rows, dtype=np.int64)
        if not len(places):
            return []
        values = _Values(self, places, with_metrics)
        if self.content is ManifestContent.DATA:
            files: Iterator[DataFile | DeleteFile] = values.data_files()
        else:
            files = values.delete_files()
        statuses, snapshots = values.required(STATUS), values.numbers(SNAPSHOT_ID)
        return [
            ManifestEntry(EntryStatus(status), snapshot, file)
            for status, snapshot, file in zip(statuses, snapshots, files, strict=True)
        ]

    def __reduce__(self) -> tuple[type[Segment], tuple[bytes]]:
        return Segment, (bytes(self.buffer),)


class _Values:
    """The columns of some rows as Python values."""

    def __init__(self, segment: Segment, rows: Int64s, with_metrics: bool) -> None:
        self._segment = segment
        self._rows = rows
        self._with_metrics = with_metrics

    def numbers(self, field_id: int) -> list[int | None]:
        column = self._segment.numbers(field_id)
        return [None] * len(self._rows) if column is None else column.to_list(self._rows)

    def required(self, field_id: int) -> list[int]:
        return [0 if v is None else v for v in self.numbers(field_id)]

    def _strings(self, field_id: int) -> list[bytes | None]:
        column = self._segment.strings(field_id)
        return [None] * len(self._rows) if column is None else column.to_list(self._rows)

    def _texts(self, field_id: int) -> list[str | None]:
        return [None if v is None else v.decode() for v in self._strings(field_id)]

    def _locations(self) -> list[str]:
        return [v or "" for v in self._texts(LOCATION)]

    def _formats(self) -> list[FileFormat]:
        return [FORMATS[i] for i in self.required(FORMAT)]

    def _lists(self, field_id: int) -> list[tuple[int, ...]]:
        starts, counts, items = self._segment.lists(field_id)
        size = counts[self._rows]
        first = np.cumsum(size) - size
        # of these rows alone: there may be few of very many
        places = np.repeat(starts[self._rows] - first, size) + np.arange(size.sum())
        listed = items[places].tolist()
        pairs = zip(first.tolist(), size.tolist(), strict=True)
        return [tuple(listed[at : at + count]) for at, count in pairs]

    def _partitions(self) -> list[Mapping[int, Value | None]]:
        columns = self._segment.partition
        values = [c.to_list(self._rows) for c in columns.values()]
        if not values:
            return [{} for _ in self._rows]
        tuples = [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
        return [
            {} if missing else partition
            for partition, missing in zip(tuples, self.numbers(HAS_NO_PARTITION), strict=True)
        ]

    def _metrics(self) -> list[Metrics]:
        if not self._with_metrics:
            return [Metrics()] * len(self._rows)
        counts = [self._by_column(m) for m in COUNTS]
        bounds = [self._bounds_by_column(m) for m in BOUNDS]
        return [Metrics(*maps) for maps in zip(*counts, *bounds, strict=True)]

    def _by_column(self, metric: int) -> list[dict[int, int]]:
        ids = self._segment.column_ids(metric)
        found: list[dict[int, int]] = [{} for _ in self._rows]
        for column_id in ids:
            column = self._segment.counts(metric, column_id)
            assert column is not None
            for by_id, value in zip(found, column.to_list(self._rows), strict=True):
                if value is not None:
                    by_id[column_id] = value
        return found

    def _bounds_by_column(self, metric: int) -> list[dict[int, bytes]]:
        found: list[dict[int, bytes]] = [{} for _ in self._rows]
        for column_id in self._segment.column_ids(metric):
            column = self._segment.bounds(metric, column_id)
            assert column is not None
            for by_id, value in zip(found, column.to_list(self._rows), strict=True):
                if value is not None:
                    by_id[column_id] = value
        return found

    def data_files(self) -> Iterator[DataFile]:
        return map(
            DataFile,
            self._locations(),
            self._formats(),
            self.required(RECORD_COUNT),
            self.required(SIZE_BYTES),
            [self._segment.spec_id] * len(self._rows),
            self._partitions(),
            self.required(SEQUENCE_NUMBER),
            self.numbers(FILE_SEQUENCE_NUMBER),
            self.numbers(FIRST_ROW_ID),
            self._lists(SPLIT_OFFSETS),
            self.numbers(SORT_ORDER_ID),
            self._strings(KEY_METADATA),
            self._metrics(),
        )

    def delete_files(self) -> Iterator[DeleteFile]:
        return map(
            DeleteFile,
            self._locations(),
            [Content(i) for i in self.required(CONTENT)],
            self._formats(),
            self.required(RECORD_COUNT),
            self.required(SIZE_BYTES),
            [self._segment.spec_id] * len(self._rows),
            self._partitions(),
            self.required(SEQUENCE_NUMBER),
            self._lists(EQUALITY_IDS),
            self._texts(REFERENCED_DATA_FILE),
            self.numbers(CONTENT_OFFSET),
            self.numbers(CONTENT_SIZE_BYTES),
            self._strings(KEY_METADATA),
            self._metrics(),
        )


def as_arrow(column: Strings | None, rows: int) -> pa.StringArray:
    """Return a column of text as an Arrow array; one whose values differ in width is not copied."""
    if column is None:
        return pa.nulls(rows, pa.string())
    data, offsets = column.data, column.offsets
    if offsets is None:
        offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(data.shape[1])
        data = np.ascontiguousarray(data)
    valid = None
    if column.valid is not None:
        valid = _arrow_buffer(np.packbits(column.valid, bitorder="little"))
    return pa.StringArray.from_buffers(rows, _arrow_buffer(offsets), _arrow_buffer(data), valid)


def _arrow_buffer(array: npt.NDArray[Any]) -> pa.Buffer:
    # Any: an array is a buffer, which the stubs of pyarrow do not know
    whole: Any = array
    return pa.py_buffer(whole)
