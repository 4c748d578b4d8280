from __future__ import annotations

import pickle
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from floeberg.protocol.files import (
    Content,
    DataFile,
    DeleteFile,
    FileFormat,
    ManifestContent,
    ManifestFile,
    Metrics,
)
from floeberg.protocol.manifests import EntryStatus, ManifestEntry
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import DamagedBuffer
from floeberg.protocol.manifests.packing import pack_entries
from floeberg.protocol.manifests.segment import PartitionKind, Segment

MANIFEST = ManifestFile("s3://b/m.avro", 100, 3)


def data_file(number: int, **facts: Any) -> DataFile:
    given: dict[str, Any] = {"data_sequence_number": 4, "file_sequence_number": 5, **facts}
    return DataFile(f"s3://b/{number}.parquet", FileFormat.PARQUET, 10 + number, 1000, 3, **given)


def segment_of(*files: DataFile | DeleteFile) -> Segment:
    is_data = isinstance(files[0], DataFile) if files else True
    content = ManifestContent.DATA if is_data else ManifestContent.DELETES
    manifest = ManifestFile("s3://b/m.avro", 100, 3, content)
    return pack_entries([ManifestEntry(EntryStatus.ADDED, 7, f) for f in files], manifest)


def test_a_segment_has_its_files_in_order():
    files = [
        data_file(0, split_offsets=(4, 500), key_metadata=b"k", first_row_id=100),
        data_file(1, sort_order_id=1, metrics=Metrics(value_counts={1: 3})),
    ]

    segment = segment_of(*files)

    assert len(segment) == 2
    assert segment.entry(1) == ManifestEntry(EntryStatus.ADDED, 7, files[1])
    assert [e.file for e in segment.entries([1, 0, 1])] == [files[1], files[0], files[1]]
    assert (segment.location, segment.spec_id) == ("s3://b/m.avro", 3)


def test_delete_files_come_back():
    vector = DeleteFile(
        "s3://b/v.puffin",
        Content.POSITION_DELETES,
        FileFormat.PUFFIN,
        5,
        60,
        3,
        referenced_data_file="s3://b/0.parquet",
        content_offset=4,
        content_size_bytes=40,
    )
    equality = DeleteFile(
        "s3://b/e.parquet", Content.EQUALITY_DELETES, FileFormat.PARQUET, 5, 60, 3, {}, 9, (1, 2)
    )

    segment = segment_of(vector, equality)

    assert [e.file for e in segment.entries()] == [vector, equality]
    assert segment.content is ManifestContent.DELETES


def test_columns_are_there_to_compute_with():
    segment = segment_of(*(data_file(i) for i in range(3)))

    counts = segment.numbers(s.RECORD_COUNT)
    assert counts is not None
    assert (counts.values > 10).tolist() == [False, True, True]
    assert segment.locations().to_pylist() == [f"s3://b/{i}.parquet" for i in range(3)]
    assert segment.numbers(s.SORT_ORDER_ID) is None


def test_bounds_are_columns_by_id():
    bounds = [{1: struct.pack("<q", 5), 2: b"abc"}, {1: struct.pack("<q", 9)}]
    segment = segment_of(
        *(data_file(i, metrics=Metrics(lower_bounds=b)) for i, b in enumerate(bounds))
    )

    assert segment.column_ids(s.LOWER_BOUNDS) == (1, 2)
    longs = segment.bounds(s.LOWER_BOUNDS, 1)
    assert longs is not None
    assert longs.width == 8
    assert longs.data.view("<i8").ravel().tolist() == [5, 9]
    texts = segment.bounds(s.LOWER_BOUNDS, 2)
    assert texts is not None
    assert texts.to_list() == [b"abc", None]
    assert segment.bounds(s.UPPER_BOUNDS, 1) is None


def test_lists_are_starts_counts_and_items():
    files = [data_file(0, split_offsets=(4, 9)), data_file(1), data_file(2, split_offsets=(5,))]

    starts, counts, items = segment_of(*files).lists(s.SPLIT_OFFSETS)

    assert (starts.tolist(), counts.tolist(), items.tolist()) == ([0, 2, 2], [2, 0, 1], [4, 9, 5])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, -(1 << 63)], PartitionKind.INTEGER),
        ([True, False], PartitionKind.BOOLEAN),
        ([1.5, -0.0, None, float("inf")], PartitionKind.FLOAT),
        (["ü", "", None], PartitionKind.TEXT),
        ([b"\x00", b"", None], PartitionKind.BYTES),
        ([Decimal("1.20"), None, Decimal("-3.00")], PartitionKind.DECIMAL),
        ([Decimal("12345678901234567890123.45"), Decimal("0.00")], PartitionKind.DECIMAL),
        ([None, None], PartitionKind.NULL),
    ],
)
def test_partition_values_keep_their_kind(values, kind):
    segment = segment_of(*(data_file(i, partition={1000: v}) for i, v in enumerate(values)))

    assert segment.partition[1000].kind is kind
    found = [e.file.partition[1000] for e in segment.entries()]
    assert list(map(repr, found)) == list(map(repr, values))


def test_a_missing_partition_tuple_is_not_one_of_nulls():
    files = [data_file(0, partition={1000: None}), data_file(1)]

    assert [e.file.partition for e in segment_of(*files).entries()] == [{1000: None}, {}]


def test_a_segment_without_entries():
    segment = segment_of()

    assert len(segment) == 0
    assert segment.entries() == []
    assert segment.locations().to_pylist() == []
    assert [a.tolist() for a in segment.lists(s.SPLIT_OFFSETS)] == [[], [], []]


def test_a_segment_travels_as_its_buffer():
    segment = segment_of(data_file(0, partition={1000: "eu"}))

    for copy in (Segment(bytes(segment.buffer)), pickle.loads(pickle.dumps(segment))):
        assert copy.entries() == segment.entries()
    with pytest.raises(DamagedBuffer):
        Segment(segment.buffer[:-1])


def test_an_entry_takes_less_than_700_bytes_with_statistics_of_ten_columns():
    rows, random = 2000, np.random.default_rng(1)

    def metrics(row: int) -> Metrics:
        ids, low = range(1, 11), random.integers(0, 1 << 40, 10).tolist()
        return Metrics(
            {i: low[i - 1] % 100_000 for i in ids},
            dict.fromkeys(ids, 10 + row),
            {i: row % i for i in ids},
            {1: 0},
            {i: struct.pack("<q", low[i - 1]) if i < 8 else b"customer-%d" % row for i in ids},
            {i: struct.pack("<q", low[i - 1] + 9) if i < 8 else b"zebra-%d" % row for i in ids},
        )

    files = [data_file(i, metrics=metrics(i), partition={1000: i % 30}) for i in range(rows)]

    assert segment_of(*files).size_bytes / rows < 700
