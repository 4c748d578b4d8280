"""Put what a walker found into a segment, a column at a time.

All that `read_manifest` checks and fills in is checked and filled in here, for whole columns. What
fails a check is left to that one, by saying that the walker strayed. The same entries give the same
bytes as `manifests.packing` gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from floeberg.protocol.files import Content, FileFormat, ManifestContent, ManifestFile
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.avro import AvroFile
from floeberg.protocol.manifests.columns import Bytes, Int64s, Mask, Packer, Placed
from floeberg.protocol.manifests.found import Strayed, Walk
from floeberg.protocol.manifests.kernel import LENGTH_BITS, LONG, NONE, SCALARS
from floeberg.protocol.manifests.packing import (
    float_bits,
    pack_decimals,
    pack_lists,
    segment_facts,
)
from floeberg.protocol.manifests.reading import EntryStatus, partition_schema, sequence_rules
from floeberg.protocol.manifests.segment import PartitionKind, Segment
from floeberg.protocol.manifests.values import DecimalBytes, Stored, partition_conversions

# Row ids and microseconds beyond it may not fit into 64 bits.
_SAFE = 1 << 52


def pack_walk(walk: Walk, file: AvroFile, manifest: ManifestFile) -> Segment:
    """Return a segment of the live entries that `walk` found in `file`.

    Raises `Strayed` for whatever `read_manifest` refuses, and for a few things more.
    """
    try:
        return Segment(_Walked(walk, file, manifest).packed())
    except OverflowError as exc:
        raise Strayed(str(exc)) from exc


def _require(holds: Mask) -> None:
    if not holds.all():
        raise Strayed("an entry is not as it must be")


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of cells: `heap` is where text and bytes of more than 8 bytes lie."""

    numbers: Int64s
    sizes: Bytes
    heap: Bytes

    def valid(self) -> Mask:
        valid: Mask = self.sizes != NONE
        return valid

    def lists(self) -> tuple[Int64s, Int64s]:
        """Return where the lists begin in the heap of items, and the counts of their items."""
        is_list = self.sizes == LONG
        return _starts(self.numbers) * is_list, _lengths(self.numbers) * is_list

    def strings(self) -> tuple[Int64s, Bytes, Mask | None]:
        """Return the lengths of the values, 0 for none, and their bytes without gaps."""
        valid = self.valid()
        if valid.all():
            lengths, data = _gathered(self.numbers, self.sizes, self.heap)
            return lengths, data, None
        lengths = np.zeros(len(valid), dtype=np.int64)
        lengths[valid], data = _gathered(self.numbers[valid], self.sizes[valid], self.heap)
        return lengths, data, valid


def _starts(numbers: Int64s) -> Int64s:
    return numbers >> LENGTH_BITS


def _lengths(numbers: Int64s) -> Int64s:
    return numbers & ((1 << LENGTH_BITS) - 1)


def _gathered(numbers: Int64s, sizes: Bytes, heap: Bytes) -> tuple[Int64s, Bytes]:
    """Return the lengths of cells that have a value, and their bytes one after the other."""
    lengths = sizes.astype(np.int64)
    is_long = sizes == LONG
    if not is_long.any():
        short = np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, 8)
        width = int(sizes[0]) if len(sizes) else 0
        if (sizes == width).all():
            return lengths, short[:, :width].reshape(-1)
        return lengths, short[np.arange(8) < sizes[:, None]]
    if is_long.all():
        lengths, starts = _lengths(numbers), _starts(numbers)
        width = int(lengths[0])
        if (lengths == width).all():
            # a view of the heap in which every place begins a value of that width
            places = (len(heap) - width + 1,)
            values = np.ndarray(places, dtype=f"V{width}", buffer=heap, strides=(1,))
            return lengths, values[starts].view(np.uint8)
        return lengths, heap[_ranges(starts, lengths)]
    lengths[is_long] = _lengths(numbers[is_long])
    is_short = ~is_long
    starts = _starts(numbers)
    starts[is_short] = len(heap) + 8 * np.arange(np.count_nonzero(is_short))
    source = np.concatenate([heap, numbers[is_short].view(np.uint8)])
    return lengths, source[_ranges(starts, lengths)]


def _ranges(starts: Int64s, sizes: Int64s) -> Int64s:
    """Return the numbers of all ranges, one after the other."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - sizes), sizes) + np.arange(total)


def _distinct(numbers: Int64s) -> list[int]:
    # there is mostly one, and sorting takes its time
    is_one = bool((numbers == numbers[:1]).all())
    distinct: list[int] = (numbers[:1] if is_one else np.unique(numbers)).tolist()
    return distinct


def _are_texts(lengths: Int64s, data: Bytes) -> bool:
    raw, at = data.tobytes(), 0
    try:
        for size in lengths.tolist():
            raw[at : at + size].decode()
            at += size
    except UnicodeDecodeError:
        return False
    return True


class _Walked:
    """A walk on its way into a segment."""

    def __init__(self, walk: Walk, file: AvroFile, manifest: ManifestFile) -> None:
        self._file = file
        self._manifest = manifest
        self._walk = walk
        try:
            self._conversions = partition_conversions(partition_schema(file))
        except ValueError as exc:
            raise Strayed(str(exc)) from exc
        status = self._own(s.STATUS)
        _require(status.valid())
        known = (status.numbers == EntryStatus.EXISTING) | (status.numbers == EntryStatus.ADDED)
        _require(known)
        self._check_texts()
        self._rows = len(status.numbers)

    def _own(self, field_id: int) -> _Column:
        cells, column = self._walk.scalars, SCALARS.index(field_id)
        return _Column(cells.numbers[column], cells.sizes[column], self._walk.heap)

    def _check_texts(self) -> None:
        """Make sure that text is text, which a walker doesn't know of what is not ASCII."""
        paths = self._own(s.LOCATION)
        _require(paths.valid())
        if self._walk.is_ascii:
            return
        if not _are_texts(paths.numbers, self._walk.paths):
            raise Strayed("a path that is no text")
        columns = [self._own(s.REFERENCED_DATA_FILE)]
        for i, (_, kind) in enumerate(self._walk.partition):
            if kind == "string":
                columns.append(self._partition_column(i))
        for column in columns:
            if column.valid().any():
                lengths, data, _ = column.strings()
                if not _are_texts(lengths, data):
                    raise Strayed("a text that is none")

    def _partition_column(self, index: int) -> _Column:
        cells, column = self._walk.scalars, len(SCALARS) + index
        return _Column(cells.numbers[column], cells.sizes[column], self._walk.heap)

    def packed(self) -> memoryview:
        kinds = []
        partition = []
        for i, (field_id, avro_type) in enumerate(self._walk.partition if self._rows else ()):
            column = self._partition_column(i)
            kind, scale = self._kind(field_id, avro_type)
            kind = kind if column.valid().any() else PartitionKind.NULL
            scale = scale if kind is PartitionKind.DECIMAL else 0
            kinds.append((field_id, str(kind), scale))
            partition.append((field_id, avro_type, kind, column))
        packer = Packer(self._rows, segment_facts(self._manifest, kinds))
        counts = self._pack_own(packer)
        for field in partition:
            self._pack_partition(packer, *field)
        for metric in s.COUNTS:
            for column_id, column in self._by_column(metric):
                packer.numbers((metric, column_id), column.numbers, column.valid(), like=counts)
        for metric in s.BOUNDS:
            for column_id, column in self._by_column(metric):
                packer.strings((metric, column_id), *column.strings())
        return packer.finish()

    def _by_column(self, metric: int) -> list[tuple[int, _Column]]:
        keys, cells = self._walk.maps[metric]
        return [
            (int(keys[i]), _Column(cells.numbers[i], cells.sizes[i], self._walk.heap))
            for i in np.argsort(keys).tolist()
        ]

    # --- the entries' own -------------------------------------------------------------------------

    def _pack_own(self, packer: Packer) -> Placed:
        status = self._own(s.STATUS).numbers
        own = s.OWN
        packer.numbers((own, s.STATUS), status)
        packer.numbers((own, s.SNAPSHOT_ID), *self._or_else(s.SNAPSHOT_ID, self._added_in()))
        packer.numbers((own, s.SEQUENCE_NUMBER), self._sequence_numbers(status))
        packer.strings((own, s.LOCATION), self._own(s.LOCATION).numbers, self._walk.paths)
        formats = self._formats()
        packer.numbers((own, s.FORMAT), formats)
        packer.numbers((own, s.SIZE_BYTES), self._required(s.SIZE_BYTES))
        packer.strings((own, s.KEY_METADATA), *self._own(s.KEY_METADATA).strings())
        record_counts = self._required(s.RECORD_COUNT)
        counts = packer.numbers((own, s.RECORD_COUNT), record_counts)
        content, _ = self._or_else(s.CONTENT, 0)
        if self._manifest.content is ManifestContent.DATA:
            _require(content == Content.DATA)
            self._pack_data_files(packer, status, content, record_counts)
        else:
            _require((content == Content.POSITION_DELETES) | (content == Content.EQUALITY_DELETES))
            self._pack_delete_files(packer, content, formats)
        return counts

    def _pack_data_files(
        self, packer: Packer, status: Int64s, content: Int64s, record_counts: Int64s
    ) -> None:
        packer.numbers((s.OWN, s.CONTENT), content)
        packer.numbers((s.OWN, s.FILE_SEQUENCE_NUMBER), *self._file_sequence_numbers(status))
        packer.numbers((s.OWN, s.SORT_ORDER_ID), *self._numbers(s.SORT_ORDER_ID))
        packer.numbers((s.OWN, s.FIRST_ROW_ID), *self._first_row_ids(record_counts))
        self._pack_list(packer, s.SPLIT_OFFSETS)

    def _pack_delete_files(self, packer: Packer, content: Int64s, formats: Int64s) -> None:
        has_ids = self._own(s.EQUALITY_IDS).lists()[1] > 0
        _require(has_ids | (content != Content.EQUALITY_DELETES))
        is_vector = formats == s.FORMATS.index(FileFormat.PUFFIN)
        for field_id in (s.REFERENCED_DATA_FILE, s.CONTENT_OFFSET, s.CONTENT_SIZE_BYTES):
            _require(self._own(field_id).valid() | ~is_vector)
        packer.numbers((s.OWN, s.CONTENT), content)
        packer.numbers((s.OWN, s.CONTENT_OFFSET), *self._numbers(s.CONTENT_OFFSET))
        packer.numbers((s.OWN, s.CONTENT_SIZE_BYTES), *self._numbers(s.CONTENT_SIZE_BYTES))
        names = self._own(s.REFERENCED_DATA_FILE)
        packer.strings((s.OWN, s.REFERENCED_DATA_FILE), *names.strings())
        self._pack_list(packer, s.EQUALITY_IDS)

    def _numbers(self, field_id: int) -> tuple[Int64s, Mask]:
        column = self._own(field_id)
        return column.numbers, column.valid()

    def _required(self, field_id: int) -> Int64s:
        column = self._own(field_id)
        _require(column.valid())
        return column.numbers

    def _or_else(self, field_id: int, default: int | None) -> tuple[Int64s, Mask | None]:
        values, valid = self._numbers(field_id)
        return (values, valid) if default is None else (np.where(valid, values, default), None)

    def _added_in(self) -> int | None:
        return self._manifest.added_snapshot_id

    def _formats(self) -> Int64s:
        column = self._own(s.FORMAT)
        _require(column.valid())
        _require(column.sizes <= 8)
        # a format's name is short enough to be a number
        formats = np.full(self._rows, -1, dtype=np.int64)
        for number in _distinct(column.numbers):
            name = number.to_bytes(8, "little", signed=True).rstrip(b"\0").decode("latin-1").lower()
            if name in s.FORMATS:
                is_it = (column.numbers == number) & (column.sizes == len(name))
                formats[is_it] = s.FORMATS.index(FileFormat(name))
        _require(formats >= 0)
        return formats

    def _sequence_numbers(self, status: Int64s) -> Int64s:
        numbers, valid = self._inherited(s.SEQUENCE_NUMBER, status)
        if valid is not None:
            _require(valid)
        return numbers

    def _file_sequence_numbers(self, status: Int64s) -> tuple[Int64s, Mask | None]:
        return self._inherited(s.FILE_SEQUENCE_NUMBER, status)

    def _inherited(self, field_id: int, status: Int64s) -> tuple[Int64s, Mask | None]:
        """Return sequence numbers after inheritance; see `manifests.reading`, which explains."""
        values, valid = self._numbers(field_id)
        if valid.all():
            return values, None
        has_sequence, is_v1 = sequence_rules(self._file)
        if is_v1:
            return np.where(valid, values, 0), None
        is_added = status == EntryStatus.ADDED
        values = np.where(valid, values, np.where(is_added, self._manifest.sequence_number, 0))
        is_old = self._manifest.sequence_number == 0 or not has_sequence
        return values, None if is_old else valid | is_added

    def _first_row_ids(self, record_counts: Int64s) -> tuple[Int64s, Mask | None]:
        values, valid = self._numbers(s.FIRST_ROW_ID)
        first = self._manifest.first_row_id
        if first is None:
            return values, np.zeros(self._rows, dtype=np.bool_)
        rows = np.where(valid, 0, np.maximum(record_counts, 0))
        if first + float(rows.sum(dtype=np.float64)) > _SAFE:
            raise Strayed("row ids beyond 64 bits, or near it")
        return np.where(valid, values, first + np.cumsum(rows) - rows), None

    def _pack_list(self, packer: Packer, field_id: int) -> None:
        starts, counts = self._own(field_id).lists()
        items = self._walk.items[_ranges(starts, counts)]
        pack_lists(packer, field_id, counts, items)

    # --- partitions -------------------------------------------------------------------------------

    def _kind(self, field_id: int, avro_type: str) -> tuple[PartitionKind, int]:
        match avro_type, self._conversion(field_id):
            case (("bytes" | "fixed"), DecimalBytes(scale)):
                return PartitionKind.DECIMAL, scale
            case (("int" | "long"), (None | Stored.MILLISECONDS)):
                return PartitionKind.INTEGER, 0
            case "boolean", None:
                return PartitionKind.BOOLEAN, 0
            case (("float" | "double"), None):
                return PartitionKind.FLOAT, 0
            case "string", None:
                return PartitionKind.TEXT, 0
            case (("bytes" | "fixed"), None):
                return PartitionKind.BYTES, 0
            case _:
                raise Strayed(f"a partition value stored as {avro_type}")

    def _conversion(self, field_id: int) -> DecimalBytes | Stored | None:
        return self._conversions[field_id]

    def _pack_partition(
        self,
        packer: Packer,
        field_id: int,
        avro_type: str,
        kind: PartitionKind,
        column: _Column,
    ) -> None:
        key, valid = (s.PARTITION, field_id), column.valid()
        match kind:
            case PartitionKind.NULL:
                pass
            case PartitionKind.INTEGER:
                numbers = column.numbers
                if self._conversion(field_id) is Stored.MILLISECONDS:
                    _require(~valid | (np.abs(numbers) <= _SAFE))
                    numbers = np.where(valid, numbers, 0) * 1000
                packer.numbers(key, numbers, valid)
            case PartitionKind.BOOLEAN:
                packer.numbers(key, column.numbers, valid)
            case PartitionKind.FLOAT:
                floats = column.numbers.view(np.float64)
                if avro_type == "float":
                    bits = np.where(valid, column.numbers, 0).astype(np.uint32)
                    floats = bits.view(np.float32).astype(np.float64)
                packer.numbers(key, float_bits(floats), valid)
            case PartitionKind.TEXT | PartitionKind.BYTES:
                packer.strings(key, *column.strings())
            case PartitionKind.DECIMAL:
                pack_decimals(packer, field_id, _units(column))


def _units(column: _Column) -> list[int | None]:
    """Return the unscaled values of a column of decimals."""
    lengths, data, _ = column.strings()
    ends = np.cumsum(lengths).tolist()
    raw = data.tobytes()
    units: list[int | None] = []
    for end, size, is_valid in zip(ends, lengths.tolist(), column.valid().tolist(), strict=True):
        value = int.from_bytes(raw[end - size : end], "big", signed=True)
        units.append(value if is_valid else None)
    return units
