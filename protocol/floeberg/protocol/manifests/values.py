"""Values of a partition tuple, from what Avro stores to what Iceberg means.

Most are the same thing. What differs is said by the writer's schema and not by the partition spec,
whose types may have moved on since: a decimal's scale, a uuid as text, times in milliseconds. Spec:
Appendix A, "Avro".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from floeberg.protocol.manifests.avro import branch, record_fields
from floeberg.protocol.types import Json, Value

Convert = Callable[[Any], Value]


def partition_converters(partition_schema: Json) -> Mapping[int, Convert | None]:
    """Return, for each field of the partition record by its id, how its non-null values convert.

    None stands for "as it is". A field without an id cannot be resolved and is left out.
    """
    return {
        f["field-id"]: _converter(branch(f["type"]))
        for f in record_fields(partition_schema)
        if isinstance(f.get("field-id"), int)
    }


def _converter(schema: Json) -> Convert | None:
    if not isinstance(schema, dict):
        return None
    match schema.get("logicalType"), schema.get("type"):
        case "decimal", _:
            scale = int(schema.get("scale", 0))
            return lambda raw: decimal_from_bytes(raw, scale)
        case "uuid", "string":
            return lambda raw: UUID(raw).bytes
        case "time-millis" | "timestamp-millis" | "local-timestamp-millis", _:
            return lambda raw: int(raw) * 1000
        case _:
            return None


def decimal_from_bytes(raw: bytes, scale: int) -> Decimal:
    """Return the decimal whose unscaled value is `raw`, big-endian two's complement.

    >>> decimal_from_bytes(bytes([0xFF, 0x38]), 2)
    Decimal('-2.00')
    """
    unscaled = int.from_bytes(raw, "big", signed=True)
    digits = tuple(int(d) for d in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -scale))
