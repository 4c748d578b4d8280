"""Which partition a row belongs to, for sources at any depth and columns that the file leaves out.

Spec: "Partition Transforms", "Column Projection".
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tests.fuzz.cases import Append, Row
from tests.fuzz.evolution import Inapplicable
from tests.support.lake.partitions import apply, result_type, source_type
from tests.support.lake.schemas import decimal_of, walk
from tests.support.plain import Json, Plain, from_json


def partition_of(
    row: Row, schema: Json, spec: Json, schemas: Sequence[Json], append: Append
) -> dict[str, Plain]:
    """Return a row's partition values by name.

    The values of a source that the file lacks are what a reader will put in its place.
    """
    identities = {f["source-id"] for f in spec["fields"] if f["transform"] == "identity"}
    return {
        f["name"]: transformed(
            f["transform"],
            source_type(schemas, f["source-id"]),
            _source_value(row, f["source-id"], schema, schemas, append, identities),
        )
        for f in spec["fields"]
    }


def _source_value(
    row: Row,
    source: int,
    schema: Json,
    schemas: Sequence[Json],
    append: Append,
    identities: set[int],
) -> Plain:
    path = path_to(schema["fields"], source)
    if path is not None and path[0] not in append.omit:
        value: Plain = row
        for field_id in path:
            value = None if value is None else value.get(field_id)
        return value
    newest = next(f for s in reversed(schemas) for f in walk(s) if f["id"] == source)
    is_column = any(f["id"] == source for s in schemas for f in s["fields"])
    if source in identities and is_column:
        return append.constants.get(source)
    default = newest.get("initial-default")
    if default is not None and not is_column:
        raise Inapplicable("below a null struct there is no default")
    return from_json(newest["type"], default)


def path_to(fields: Sequence[Json], field_id: int) -> list[int] | None:
    """Return the ids from a column down to a field that structs lead to."""
    for field in fields:
        if field["id"] == field_id:
            return [field_id]
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            below = path_to(field["type"]["fields"], field_id)
            if below is not None:
                return [field["id"], *below]
    return None


def transformed(transform: str, type_: Json, value: Plain) -> Plain:
    """Return a partition value; raise `Inapplicable` when its type doesn't hold it."""
    try:
        result = apply(transform, type_, value)
    except (OverflowError, ValueError) as reason:
        raise Inapplicable(f"{transform} of {value!r}: {reason}") from reason
    kind = result_type(transform, type_)
    if result is not None and not _holds(kind, result):
        raise Inapplicable(f"{transform} of {value!r} is beyond {kind}")
    return result


_DAYS = range(-719162, 2932897)
_MICROS_A_DAY = 86_400_000_000


def _holds(type_: str, value: Plain) -> bool:
    """Say whether a manifest holds a partition value; of times, those that Python's hold."""
    if decimal := decimal_of(type_):
        return bool(abs(value) < Decimal(10) ** (decimal[0] - decimal[1]))
    match type_:
        case "int":
            return bool(-(2**31) <= value < 2**31)
        case "long":
            return bool(-(2**63) <= value < 2**63)
        case "date":
            return value in _DAYS
        case "timestamp" | "timestamptz":
            return value // _MICROS_A_DAY in _DAYS
        case _:
            return True
