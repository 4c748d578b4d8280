"""Values of a partition tuple, from what Avro stores to what Iceberg means.

Most are the same thing. What differs is said by the writer's schema and not by the partition spec,
whose types may have moved on since: a decimal's scale, a uuid as text, times in milliseconds. Spec:
Appendix A, "Avro".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from floeberg.protocol.manifests.avro import branch, record_fields
from floeberg.protocol.types import Json, Value
from floeberg.protocol.values import decimal_of

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
            return lambda raw: decimal_of(int.from_bytes(raw, "big", signed=True), scale)
        case "uuid", "string":
            return lambda raw: UUID(raw).bytes
        case "time-millis" | "timestamp-millis" | "local-timestamp-millis", _:
            return lambda raw: int(raw) * 1000
        case _:
            return None
