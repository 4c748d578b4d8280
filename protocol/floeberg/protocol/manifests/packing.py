"""Put decoded entries into a segment.

This is the plain way, from the objects that `read_manifest` gives. `manifests.walked` takes the
same columns from what a walker leaves: the same entries give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

import numpy as np

from floeberg.protocol.errors import CorruptManifest
from floeberg.protocol.files import DataFile, DeleteFile, ManifestContent, ManifestFile, Metrics
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Bytes, Int64s, Mask, Packer, Placed
from floeberg.protocol.manifests.reading import ManifestEntry
from floeberg.protocol.manifests.segment import PartitionKind, Segment
from floeberg.protocol.types import Json, Value
from floeberg.protocol.values import minimal_big_endian, unscaled_of

T = TypeVar("T")

_NAN_BITS = int(np.array(np.nan).view(np.int64))
_INT64 = np.iinfo(np.int64)


def pack_entries(entries: Sequence[ManifestEntry], manifest: ManifestFile) -> Segment:
    """Return a segment of the live `entries` of `manifest`, all of its content.

    Raises `CorruptManifest` for numbers that 64 bits do not hold.
    """
    try:
        return Segment(_packed(entries, manifest))
    except (OverflowError, TypeError) as exc:
        raise CorruptManifest(
            f"manifest {manifest.location}: a number is none that a column can hold: {exc}"
        ) from exc


def segment_facts(manifest: ManifestFile, partition: Iterable[tuple[int, str, int]]) -> Json:
    """Return what a segment knows besides its columns."""
    return {
        "location": manifest.location,
        "spec_id": manifest.spec_id,
        "content": int(manifest.content),
        "partition": [list(field) for field in partition],
    }


def _packed(entries: Sequence[ManifestEntry], manifest: ManifestFile) -> memoryview:
    files = [e.file for e in entries]
    tuples = [f.partition for f in files]
    kinds = [(i, *partition_kind(t.get(i) for t in tuples)) for i in _ids(tuples)]
    packer = Packer(len(entries), segment_facts(manifest, kinds))
    own = _Own(packer)
    own.numbers(s.STATUS, [int(e.status) for e in entries])
    own.numbers(s.SNAPSHOT_ID, [e.snapshot_id for e in entries])
    own.numbers(s.SEQUENCE_NUMBER, [f.data_sequence_number for f in files])
    own.strings(s.LOCATION, [f.location.encode() for f in files])
    own.numbers(s.FORMAT, [s.FORMATS.index(f.format) for f in files])
    own.numbers(s.SIZE_BYTES, [f.size_bytes for f in files])
    own.strings(s.KEY_METADATA, [f.key_metadata for f in files])
    counts = own.numbers(s.RECORD_COUNT, [f.record_count for f in files])
    if manifest.content is ManifestContent.DATA:
        _data_files(own, [f for f in files if isinstance(f, DataFile)])
    else:
        _delete_files(own, [f for f in files if isinstance(f, DeleteFile)])
    for field_id, kind, scale in kinds:
        values = [t.get(field_id) for t in tuples]
        _partition(packer, field_id, PartitionKind(kind), scale, values)
    if kinds and not all(tuples):
        missing = [int(not t) for t in tuples]
        packer.numbers((s.OWN, s.HAS_NO_PARTITION), np.array(missing, dtype=np.int64))
    _metrics(packer, [f.metrics for f in files], counts)
    return packer.finish()


def _data_files(own: _Own, files: Sequence[DataFile]) -> None:
    own.numbers(s.CONTENT, [0 for _ in files])
    own.numbers(s.FILE_SEQUENCE_NUMBER, [f.file_sequence_number for f in files])
    own.numbers(s.SORT_ORDER_ID, [f.sort_order_id for f in files])
    own.numbers(s.FIRST_ROW_ID, [f.first_row_id for f in files])
    own.lists(s.SPLIT_OFFSETS, [f.split_offsets for f in files])


def _delete_files(own: _Own, files: Sequence[DeleteFile]) -> None:
    own.numbers(s.CONTENT, [int(f.content) for f in files])
    own.numbers(s.CONTENT_OFFSET, [f.content_offset for f in files])
    own.numbers(s.CONTENT_SIZE_BYTES, [f.content_size_bytes for f in files])
    names = [f.referenced_data_file for f in files]
    own.strings(s.REFERENCED_DATA_FILE, [None if n is None else n.encode() for n in names])
    own.lists(s.EQUALITY_IDS, [f.equality_ids for f in files])


class _Own:
    """The columns of the entries' own fields."""

    def __init__(self, packer: Packer) -> None:
        self._packer = packer

    def numbers(self, field_id: int, values: Sequence[int | None]) -> Placed:
        return self._packer.numbers((s.OWN, field_id), *_numbers(values))

    def strings(self, field_id: int, values: Sequence[bytes | None]) -> None:
        self._packer.strings((s.OWN, field_id), *_strings(values))

    def lists(self, field_id: int, values: Sequence[Sequence[int]]) -> None:
        counts = np.array([len(v) for v in values], dtype=np.int64)
        items = np.array([i for v in values for i in v], dtype=np.int64)
        pack_lists(self._packer, field_id, counts, items)


def pack_lists(packer: Packer, field_id: int, counts: Int64s, items: Int64s) -> None:
    """Add lists of numbers: how many each entry has, and all of them. Without any, no column."""
    if len(items):
        packer.numbers((s.OWN, field_id), counts)
        packer.numbers((s.ITEMS, field_id), items)


def _numbers(values: Sequence[int | None]) -> tuple[Int64s, Mask | None]:
    if None not in values:
        return np.array(values, dtype=np.int64), None
    valid = np.array([v is not None for v in values], dtype=np.bool_)
    return np.array([0 if v is None else v for v in values], dtype=np.int64), valid


def _strings(values: Sequence[bytes | None]) -> tuple[Int64s, Bytes, Mask | None]:
    valid = np.array([v is not None for v in values], dtype=np.bool_)
    present = [v for v in values if v is not None]
    lengths = np.array([0 if v is None else len(v) for v in values], dtype=np.int64)
    return lengths, np.frombuffer(b"".join(present), dtype=np.uint8), valid


def _metrics(packer: Packer, metrics: Sequence[Metrics], record_counts: Placed) -> None:
    counts: dict[int, Callable[[Metrics], Mapping[int, int]]] = {
        s.COLUMN_SIZES: lambda m: m.column_sizes,
        s.VALUE_COUNTS: lambda m: m.value_counts,
        s.NULL_VALUE_COUNTS: lambda m: m.null_value_counts,
        s.NAN_VALUE_COUNTS: lambda m: m.nan_value_counts,
    }
    bounds: dict[int, Callable[[Metrics], Mapping[int, bytes]]] = {
        s.LOWER_BOUNDS: lambda m: m.lower_bounds,
        s.UPPER_BOUNDS: lambda m: m.upper_bounds,
    }
    for metric in s.COUNTS:
        for column_id, numbers in _by_column([counts[metric](m) for m in metrics]):
            packer.numbers((metric, column_id), *_numbers(numbers), like=record_counts)
    for metric in s.BOUNDS:
        for column_id, strings in _by_column([bounds[metric](m) for m in metrics]):
            packer.strings((metric, column_id), *_strings(strings))


def _by_column(maps: Sequence[Mapping[int, T]]) -> Iterable[tuple[int, list[T | None]]]:
    for column_id in sorted(_ids(maps)):
        yield column_id, [by_id.get(column_id) for by_id in maps]


def _ids(maps: Iterable[Mapping[int, object]]) -> list[int]:
    """Return the keys of all maps, in the order of their appearance."""
    return list({column_id: None for by_id in maps for column_id in by_id})


# --- partition values -----------------------------------------------------------------------------


def partition_kind(values: Iterable[Value | None]) -> tuple[str, int]:
    """Return the kind of a partition column's values, and the scale of decimals (else 0).

    Raises TypeError for values of several kinds: a manifest's schema gives them one.
    """
    found = {_kind_of(v) for v in values if v is not None}
    if len(found) > 1:
        raise TypeError(f"partition values are of several kinds: {sorted(found)}")
    kind, scale = found.pop() if found else (PartitionKind.NULL, 0)
    return str(kind), scale


def _kind_of(value: Value) -> tuple[PartitionKind, int]:
    match value:
        case bool():
            return PartitionKind.BOOLEAN, 0
        case int():
            return PartitionKind.INTEGER, 0
        case float():
            return PartitionKind.FLOAT, 0
        case str():
            return PartitionKind.TEXT, 0
        case bytes():
            return PartitionKind.BYTES, 0
        case Decimal():
            exponent = value.as_tuple().exponent
            assert isinstance(exponent, int)
            return PartitionKind.DECIMAL, -exponent
    raise TypeError(f"{value!r} is no partition value")


def _partition(
    packer: Packer,
    field_id: int,
    kind: PartitionKind,
    scale: int,
    values: Sequence[Value | None],
) -> None:
    key = s.PARTITION, field_id
    if kind is PartitionKind.FLOAT:
        floats = np.array([v if isinstance(v, float) else 0.0 for v in values])
        valid = np.array([v is not None for v in values], dtype=np.bool_)
        packer.numbers(key, float_bits(floats), valid)
    elif kind is PartitionKind.DECIMAL:
        units = [unscaled_of(v, scale) if isinstance(v, Decimal) else None for v in values]
        pack_decimals(packer, field_id, units)
    elif kind in (PartitionKind.TEXT, PartitionKind.BYTES):
        encoded = [v.encode() if isinstance(v, str) else v for v in values]
        packer.strings(key, *_strings([v if isinstance(v, bytes) else None for v in encoded]))
    elif kind is not PartitionKind.NULL:
        packer.numbers(key, *_numbers([v if isinstance(v, int) else None for v in values]))


def float_bits(floats: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Int64s:
    """Return the bits of 64-bit floats, with every NaN made the same."""
    bits: Int64s = np.ascontiguousarray(floats, dtype=np.float64).view(np.int64)
    return np.where(np.isnan(floats), _NAN_BITS, bits)


def pack_decimals(packer: Packer, field_id: int, units: Sequence[int | None]) -> None:
    """Add a partition column of decimals by their unscaled values."""
    key = s.PARTITION, field_id
    if all(u is None or _INT64.min <= u <= _INT64.max for u in units):
        packer.numbers(key, *_numbers(units))
    else:
        packer.strings(
            key, *_strings([None if u is None else minimal_big_endian(u) for u in units])
        )
