from __future__ import annotations

import pytest

from floeberg.protocol.errors import CorruptMetadata
from floeberg.protocol.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.protocol.transforms import Bucket, Day, Identity, UnknownTransform, Void
from floeberg.protocol.types import (
    DateType,
    IntType,
    NestedField,
    StringType,
    TimestampType,
    UnknownType,
)

SCHEMA = Schema((NestedField(1, "ts", TimestampType()), NestedField(2, "region", StringType())))
RAW = {
    "spec-id": 4,
    "fields": [
        {"source-id": 1, "field-id": 1000, "name": "ts_day", "transform": "day"},
        {"source-id": 2, "field-id": 1001, "name": "b", "transform": "bucket[16]", "x": 1},
        {"source-ids": [1, 2], "field-id": 1002, "name": "z", "transform": "zorder[4]"},
        {"source-id": 99, "field-id": 1003, "name": "gone", "transform": "identity"},
    ],
    "y": None,
}


def test_json_comes_back():
    spec = PartitionSpec.from_json(RAW)

    assert spec.fields == (
        PartitionField((1,), 1000, "ts_day", Day()),
        PartitionField((2,), 1001, "b", Bucket(16)),
        PartitionField((1, 2), 1002, "z", UnknownTransform("zorder[4]")),
        PartitionField((99,), 1003, "gone", Identity()),
    )
    assert spec.to_json() == RAW


def test_the_partition_type_is_unknown_where_it_cannot_be_told():
    partition = PartitionSpec.from_json(RAW).partition_type(SCHEMA)

    assert [(f.field_id, f.name, f.type, f.required) for f in partition.fields] == [
        (1000, "ts_day", DateType(), False),
        (1001, "b", IntType(), False),
        (1002, "z", UnknownType(), False),
        (1003, "gone", UnknownType(), False),
    ]


def test_v1s_bare_list_gets_ids_from_1000_on():
    fields = [
        {"source-id": 2, "name": "region", "transform": "identity"},
        {"source-id": 1, "name": "ts_day", "transform": "day"},
    ]

    spec = PartitionSpec.from_json(fields)

    assert (spec.spec_id, [f.field_id for f in spec.fields]) == (0, [1000, 1001])


def test_fields_are_found_by_source_when_they_have_one():
    by_source = PartitionSpec.from_json(RAW).by_source

    assert {source: [f.name for f in fields] for source, fields in by_source.items()} == {
        1: ["ts_day"],
        2: ["b"],
        99: ["gone"],
    }


def test_void_fields_do_not_partition():
    assert UNPARTITIONED.is_unpartitioned
    assert PartitionSpec(1, (PartitionField((1,), 1000, "a", Void()),)).is_unpartitioned
    assert not PartitionSpec.from_json(RAW).is_unpartitioned


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {},
        {"fields": 5},
        {"fields": [5]},
        {"fields": [{"source-id": 1, "name": "a"}]},
        {"fields": [{"source-ids": [], "name": "a", "transform": "day"}]},
        {"fields": [{"source-ids": 5, "name": "a", "transform": "day"}]},
        {"fields": [{"source-id": "1", "name": "a", "transform": "day"}]},
        {"fields": [], "spec-id": "x"},
    ],
)
def test_another_shape_is_corrupt(raw):
    with pytest.raises(CorruptMetadata, match="partition"):
        PartitionSpec.from_json(raw)
