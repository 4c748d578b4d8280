"""Equality of partition tuples.

Spec: "Scan Planning", note 3: floats are equal when their bits are, with every NaN made the same.
So -0.0 and 0.0 are two partitions, and NaN is one; Python's own equality says the opposite.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TypeAlias

from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.types import Value

PartitionKey: TypeAlias = tuple[int, tuple[Value | None, ...]]
"""A spec's id and the values of its fields: hashable, and equal when the partitions are."""


def partition_key(spec: PartitionSpec, partition: Mapping[int, Value | None]) -> PartitionKey:
    """Return what two files of one partition have in common.

    Values of unknown transforms take part. Tuples of different specs are never equal.
    """
    return spec.spec_id, tuple(normalised(partition.get(f.field_id)) for f in spec.fields)


def normalised(value: Value | None) -> Value | None:
    """Return what is equal, and hashes alike, for values that make partitions equal."""
    if not isinstance(value, float):
        return value
    if value != value:
        return "NaN"  # a float field holds no text, so nothing else is equal to it
    return struct.pack("<d", value)
