"""Partition values: a transform applied to a plain value, and specs written down briefly.

Spec: "Partition Transforms", Appendix B.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Sequence
from decimal import Decimal, localcontext

from tests.support.lake.schemas import Json, decimal_of, find, walk
from tests.support.lake.values import Plain, minimal_twos_complement

_EPOCH = dt.date(1970, 1, 1)
_MICROS_AN_HOUR = 3_600_000_000


def spec_fields(schema: Json, fields: Sequence[Json], first_id: int = 1000) -> list[Json]:
    """Return partition fields in Appendix C's form.

    Each of `fields` is that form already, or `(column, transform)` or `(column, transform, name)`.
    """
    out: list[Json] = []
    for item in fields:
        if isinstance(item, dict):
            out.append(item)
            continue
        column, transform, *name = item
        default = column if transform == "identity" else f"{column}_{transform.split('[')[0]}"
        out.append(
            {
                "source-id": find(schema, column)["id"],
                "field-id": first_id,
                "name": name[0] if name else default,
                "transform": transform,
            }
        )
        first_id += 1
    return out


def source_type(schemas: Sequence[Json], source_id: int) -> Json:
    """Return the type of the column `source_id` in the newest of `schemas` that still has it."""
    for schema in reversed(schemas):
        for field in walk(schema):
            if field["id"] == source_id:
                return field["type"]
    raise KeyError(f"no schema has a field {source_id}")


def result_type(transform: str, source: Json) -> Json:
    """Return the type of a transform's values; an unknown transform's are written as text."""
    name = transform.split("[")[0]
    match name:
        case "identity" | "truncate" | "void":
            return source
        case "bucket" | "year" | "month" | "hour":
            return "int"
        case "day":
            return "date"
        case _:
            return "string"


def apply(transform: str, type_: Json, value: Plain) -> Plain:
    """Return the partition value of a plain value of type `type_`; null stays null."""
    name = transform.split("[")[0]
    if value is None or name == "void":
        return None
    with localcontext(prec=80):  # Python's own 28 digits would round
        return _applied(transform, name, type_, value)


def _applied(transform: str, name: str, type_: Json, value: Plain) -> Plain:
    size = int(m[1]) if (m := re.search(r"\[(\d+)\]", transform)) else 0
    match name:
        case "identity":
            return value
        case "bucket":
            return (bucket_hash(type_, value) & 0x7FFFFFFF) % size
        case "truncate" if isinstance(value, Decimal):
            width = Decimal(size).scaleb(value.as_tuple().exponent)  # type: ignore[arg-type]  # finite
            return value - ((value % width) + width) % width
        case "truncate":
            return value - value % size if isinstance(value, int) else value[:size]
        case "hour":
            return _micros(type_, value) // _MICROS_AN_HOUR
        case "year" | "month" | "day":
            days = value if type_ == "date" else _micros(type_, value) // (24 * _MICROS_AN_HOUR)
            day = _EPOCH + dt.timedelta(days=days)
            if name == "day":
                return days
            years = day.year - 1970
            return years if name == "year" else years * 12 + day.month - 1
        case _:
            raise ValueError(f"can't apply {transform!r}: name the partition")


def _micros(type_: Json, value: int) -> int:
    return value // 1000 if type_.endswith("_ns") else value


def bucket_hash(type_: Json, value: Plain) -> int:
    """Return Appendix B's hash of a plain value, as an unsigned number.

    >>> bucket_hash("long", 34), bucket_hash("string", "iceberg")
    (2017239379, 1210000089)
    """
    if decimal := decimal_of(type_):
        return murmur3(minimal_twos_complement(int(value.scaleb(decimal[1]))))
    match value:
        case int():
            return murmur3(struct.pack("<q", _micros(type_, value)))
        case str():
            return murmur3(value.encode())
        case _:
            return murmur3(bytes(value))


def murmur3(data: bytes) -> int:
    """Return the 32-bit x86 variant of Murmur3, seed 0."""
    mask = 0xFFFFFFFF

    def rotate(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & mask

    def mix(x: int) -> int:
        return rotate(x * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask

    whole = len(data) // 4 * 4
    h = 0
    for at in range(0, whole, 4):
        h = (
            rotate(h ^ mix(int.from_bytes(data[at : at + 4], "little")), 13) * 5 + 0xE6546B64
        ) & mask
    h ^= mix(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ (h >> 16)) * 0x85EBCA6B & mask
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & mask
    return h ^ (h >> 16)
