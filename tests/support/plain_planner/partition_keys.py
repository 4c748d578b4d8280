"""Partition tuples as keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.types import Value
from floeberg.server.planning.partition_keys import normalised

PartitionKey: TypeAlias = tuple[int, tuple[Value | None, ...]]
"""A spec's id and the values of its fields: hashable, and equal when the partitions are."""


def partition_key(spec: PartitionSpec, partition: Mapping[int, Value | None]) -> PartitionKey:
    """Return what two files of one partition have in common.

    Values of unknown transforms take part. Tuples of different specs are never equal.
    """
    return spec.spec_id, tuple(normalised(partition.get(f.field_id)) for f in spec.fields)
