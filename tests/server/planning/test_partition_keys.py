from __future__ import annotations

import math
import struct

from floeberg.protocol.partitioning import PartitionField, PartitionSpec
from floeberg.protocol.transforms import Identity, UnknownTransform
from tests.support.plain_planner.partition_keys import partition_key


def spec(spec_id: int = 1, *field_ids: int) -> PartitionSpec:
    fields = (PartitionField((1,), i, f"p{i}", Identity()) for i in field_ids or (1000,))
    return PartitionSpec(spec_id, tuple(fields))


def key(value: object, of: PartitionSpec | None = None) -> object:
    return partition_key(of or spec(), {1000: value})  # type: ignore[dict-item]


def test_every_nan_is_one_partition():
    other = struct.unpack("<d", struct.pack("<Q", 0xFFF0000000000001))[0]
    assert math.isnan(other)

    assert key(math.nan) == key(other)
    assert key(math.nan) != key(None)


def test_zeros_of_both_signs_are_two_partitions():
    assert key(0.0) != key(-0.0)
    assert key(0.0) == key(0.0)


def test_null_and_zero_and_empty_text_differ():
    assert len({key(None), key(0), key("")}) == 3


def test_equal_tuples_of_two_specs_differ():
    assert key(1, spec(1)) != key(1, spec(2))


def test_values_of_unknown_transforms_count():
    unknown = PartitionSpec(1, (PartitionField((1,), 1000, "z", UnknownTransform("zorder")),))

    assert key(1, unknown) != key(2, unknown)


def test_fields_go_by_id_and_not_by_order():
    assert partition_key(spec(1, 1000, 1001), {1001: "b", 1000: "a"}) == (1, ("a", "b"))
