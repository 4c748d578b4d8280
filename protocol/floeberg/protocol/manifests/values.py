"""Values of a partition tuple, from what Avro stores to what Iceberg means.

Most are the same thing. What differs is said by the writer's schema and not by the partition spec,
whose types may have moved on since: a decimal's scale, a uuid as text, times in milliseconds. Spec:
Appendix A, "Avro".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias
from uuid import UUID

from floeberg.protocol.manifests.avro import branch, record_fields
from floeberg.protocol.types import Json, Value
from floeberg.protocol.values import decimal_of

Convert = Callable[[Any], Value]


@dataclass(frozen=True, slots=True)
class DecimalBytes:
    """Big-endian bytes of an unscaled value."""

    scale: int


class Stored(Enum):
    """How else a value may differ from what Avro stores."""

    UUID_TEXT = "a uuid written as text"
    MILLISECONDS = "a time in milliseconds, which Iceberg counts in microseconds"


Conversion: TypeAlias = DecimalBytes | Stored | None


def partition_conversions(partition_schema: Json) -> Mapping[int, Conversion]:
    """Return, for each field of the partition record by its id, how its non-null values are stored.

    None stands for "as they are". A field without an id cannot be resolved and is left out.
    ValueError for a decimal whose scale is no number.
    """
    return {
        f["field-id"]: _conversion(branch(f["type"]))
        for f in record_fields(partition_schema)
        if isinstance(f.get("field-id"), int)
    }


def partition_converters(partition_schema: Json) -> Mapping[int, Convert | None]:
    """Return the same as functions of a value."""
    conversions = partition_conversions(partition_schema)
    return {field_id: _converter(c) for field_id, c in conversions.items()}


def _conversion(schema: Json) -> Conversion:
    if not isinstance(schema, dict):
        return None
    match schema.get("logicalType"), schema.get("type"):
        case "decimal", _:
            scale = schema.get("scale", 0)
            if not isinstance(scale, int):
                raise ValueError(f"a decimal has the scale {scale!r}")
            return DecimalBytes(scale)
        case "uuid", "string":
            return Stored.UUID_TEXT
        case "time-millis" | "timestamp-millis" | "local-timestamp-millis", _:
            return Stored.MILLISECONDS
        case _:
            return None


def _converter(conversion: Conversion) -> Convert | None:
    match conversion:
        case None:
            return None
        case DecimalBytes(scale):
            return lambda raw: decimal_of(int.from_bytes(raw, "big", signed=True), scale)
        case Stored.UUID_TEXT:
            return lambda raw: UUID(raw).bytes
        case Stored.MILLISECONDS:
            return lambda raw: int(raw) * 1000
