"""Statistics rule out equality deletes as the plain rule does, and none that matches a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.files import (
    Content,
    DataFile,
    DeleteFile,
    FileFormat,
    ManifestContent,
    ManifestFile,
    Metrics,
)
from floeberg.protocol.manifests import EntryStatus, ManifestEntry, Segment
from floeberg.protocol.manifests.packing import pack_entries
from floeberg.protocol.partitioning import UNPARTITIONED
from floeberg.protocol.planned import DeleteFiles
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    IntType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
)
from floeberg.protocol.values import to_bytes
from floeberg.server.planning.vectorised import SegmentDeletes
from tests.support.plain_planner.equality_pruning import may_match_a_row

COLUMNS: dict[int, tuple[PrimitiveType, list[Any]]] = {
    1: (LongType(), [None, -1, 0, 1, 2**40]),
    2: (StringType(), [None, "", "a", "abcdef", "abcxyz", "ü", "\U0010ffff"]),
    3: (DoubleType(), [None, 0.0, -0.0, float("nan"), 1.0]),
    4: (DecimalType(9, 2), [None, Decimal("-1.00"), Decimal("0.01"), Decimal("655.36")]),
    5: (DecimalType(38, 2), [None, Decimal(2**70), Decimal("0.00"), Decimal(-(2**70))]),
    6: (BooleanType(), [None, False, True]),
    7: (TimestampType(), [None, -5, 0, 5, 10**15]),
    9: (IntType(), [None, 1, 2]),
}
FIELDS = [NestedField(i, f"c{i}", type_) for i, (type_, _) in COLUMNS.items() if i != 9]
SCHEMA = Schema((*FIELDS, NestedField(8, "s", StructType((NestedField(9, "c9", IntType()),)))))
Row = dict[int, Any]


def random_rows(random: Random, columns: Sequence[int]) -> list[Row]:
    # of few values each, so that files often have nothing in common
    pools = {i: random.sample(COLUMNS[i][1], random.randint(1, 2)) for i in columns}
    return [
        {i: random.choice(pool) for i, pool in pools.items()} for _ in range(random.randint(1, 4))
    ]


def metrics_of(random: Random, rows: Sequence[Row]) -> Metrics:
    """Return true statistics, some of them left out, with bounds of text cut as writers do."""
    found = Metrics()
    for i in rows[0]:
        values = [row[i] for row in rows]
        known = [v for v in values if v is not None and v == v]
        maps: dict[str, Any] = {
            "value_counts": len(values),
            "null_value_counts": sum(v is None for v in values),
        }
        if known:
            maps["lower_bounds"] = bound(i, min(known), random, is_lower=True)
            maps["upper_bounds"] = bound(i, max(known), random, is_lower=False)
        for name, value in maps.items():
            if value is not None and random.randrange(8):
                getattr(found, name)[i] = value
    return found


def bound(column: int, value: Any, random: Random, *, is_lower: bool) -> bytes | None:
    type_ = COLUMNS[column][0]
    if isinstance(value, str) and len(value) > 3 and random.randrange(2):
        value = value[:3] if is_lower else value[:2] + chr(ord(value[2]) + 1)
    if isinstance(type_, LongType) and abs(value) < 2**31 and random.randrange(2):
        type_ = IntType()  # which it was then
    return to_bytes(type_, value)


def data_file(number: int, rows: Sequence[Row], metrics: Metrics) -> DataFile:
    return DataFile(
        f"data-{number}",
        FileFormat.PARQUET,
        len(rows),
        1,
        0,
        data_sequence_number=1,
        metrics=metrics,
    )


def delete_file(
    number: int, ids: Sequence[int], rows: Sequence[Row], metrics: Metrics
) -> DeleteFile:
    return DeleteFile(
        f"delete-{number}",
        Content.EQUALITY_DELETES,
        FileFormat.PARQUET,
        len(rows),
        1,
        0,
        data_sequence_number=2,
        equality_ids=tuple(ids),
        metrics=metrics,
    )


def pack(files: Sequence[DataFile | DeleteFile], content: ManifestContent) -> Segment:
    entries = [ManifestEntry(EntryStatus.ADDED, None, f) for f in files]
    return pack_entries(entries, ManifestFile("m.avro", 1, 0, content))


def kept(
    parts: Sequence[Sequence[DeleteFile]], files: Sequence[DataFile], **options: Any
) -> list[list[str]]:
    segments = [pack(part, ManifestContent.DELETES) for part in parts]
    deletes = DeleteFiles([(segment, np.arange(len(segment))) for segment in segments])
    index = SegmentDeletes(deletes, lambda _: UNPARTITIONED, SCHEMA, **options)
    segment = pack(files, ManifestContent.DATA)
    lists = index.applying_to(segment, np.arange(len(files)))
    return [[d.location for d in deletes.files(numbers)] for numbers in lists]


def is_equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(one == other) or (one != one and other != other)


@given(seed=st.integers(0, 2**32), may_be_imported=st.booleans())
@settings(max_examples=300)
def test_what_is_ruled_out_matches_no_row(seed, may_be_imported):
    random = Random(seed)
    data = [random_rows(random, list(COLUMNS)) for _ in range(random.randint(1, 4))]
    files = [data_file(i, rows, metrics_of(random, rows)) for i, rows in enumerate(data)]
    parts: list[list[DeleteFile]] = []
    deleted: dict[str, list[Row]] = {}
    for _ in range(random.randint(1, 2)):
        part = []
        for _ in range(random.randint(1, 4)):
            ids = random.sample(list(COLUMNS), random.randint(1, 2))
            rows = random_rows(random, ids)
            part.append(delete_file(len(deleted), ids, rows, metrics_of(random, rows)))
            deleted[part[-1].location] = rows
        parts.append(part)

    found = kept(parts, files, may_be_imported=may_be_imported)

    every = [d for part in parts for d in part]
    for file, rows, names in zip(files, data, found, strict=True):
        assert names == [
            d.location
            for d in every
            if may_match_a_row(d, file, SCHEMA, may_be_imported=may_be_imported)
        ]
        for name in deleted.keys() - set(names):
            for deleted_row in deleted[name]:
                assert not any(
                    all(is_equal(row[i], v) for i, v in deleted_row.items()) for row in rows
                )


def statistics(value: int, nulls: int | None = 0) -> Metrics:
    raw = to_bytes(LongType(), value)
    counts = {} if nulls is None else {1: nulls}
    return Metrics(
        value_counts={1: 4}, null_value_counts=counts, lower_bounds={1: raw}, upper_bounds={1: raw}
    )


FOUR: list[Row] = [{}] * 4


@pytest.mark.parametrize(
    ("delete", "data", "stays"),
    [
        (statistics(1), statistics(2), False),
        (statistics(1), statistics(1), True),
        (statistics(1, 1), statistics(2), False),
        (statistics(1), statistics(2, 1), False),
        (statistics(1, 1), statistics(2, 1), True),  # a null matches a null
        (statistics(1, None), statistics(2, None), True),
        (Metrics(value_counts={1: 4}, null_value_counts={1: 4}), statistics(1), False),
        (statistics(1), Metrics(value_counts={1: 4}, null_value_counts={1: 4}), False),
        (Metrics(), statistics(1), True),
    ],
)
def test_one_column_decides(delete, data, stays):
    found = kept([[delete_file(0, [1], FOUR, delete)]], [data_file(0, FOUR, data)])

    assert bool(found[0]) is stays


def test_files_without_an_excluded_delete_go_on_sharing():
    wide = replace(statistics(0), upper_bounds={1: to_bytes(LongType(), 100)})
    deletes = [delete_file(i, [1], FOUR, wide if i else statistics(7)) for i in range(50)]
    files = [data_file(i, FOUR, statistics(7 if i else 8)) for i in range(50)]
    segment = pack(deletes, ManifestContent.DELETES)
    index = SegmentDeletes(DeleteFiles([(segment, np.arange(50))]), lambda _: UNPARTITIONED, SCHEMA)

    lists = index.applying_to(pack(files, ManifestContent.DATA), np.arange(50))

    assert lists[0].tolist() == list(range(1, 50))
    assert lists[1].tolist() == list(range(50))
    assert len(lists.numbers) == 50 + 49


def test_very_many_pairs_are_not_compared():
    deletes = [delete_file(i, [1], FOUR, statistics(1)) for i in range(5)]
    files = [data_file(i, FOUR, statistics(2)) for i in range(5)]

    assert kept([deletes], files) == [[]] * 5
    assert kept([deletes], files, most_pairs=24) == [[d.location for d in deletes]] * 5
