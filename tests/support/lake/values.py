"""Values on their way into a file: from natural Python to Iceberg's own units, to Arrow and to
bytes.

A *plain* value is in Iceberg's unit: date in days, time in microseconds, timestamps in micro- or
nanoseconds, uuid and binary as bytes, decimals as `Decimal` at the type's scale; a struct is a dict
by field name, a list a list, a map a list of pairs. Spec: "Primitive Types", Appendix D.
"""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from tests.support.lake.schemas import Json, arrow_field, arrow_type, children, decimal_of, fixed_of

Plain: TypeAlias = Any
"""A value as the module's docstring says; None is null."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_WIDE = Context(prec=60)


def plain(type_: Json, value: Any) -> Plain:
    """Return `value` in Iceberg's unit; one that already is passes through.

    >>> (
    ...     plain("date", dt.date(1970, 1, 3)),
    ...     plain("timestamp", dt.datetime(1969, 12, 31, 23, 59, 59)),
    ... )
    (2, -1000000)
    """
    if value is None:
        return None
    if not isinstance(type_, str):
        return _plain_nested(type_, value)
    if decimal := decimal_of(type_):
        return Decimal(value).quantize(Decimal(1).scaleb(-decimal[1]), context=_WIDE)
    match value:
        case dt.datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            micros = (aware - _EPOCH) // _MICROSECOND
            return micros * 1000 if type_.endswith("_ns") else micros
        case dt.date():
            return (value - _EPOCH.date()).days
        case dt.time():
            return (
                value.hour * 3600 + value.minute * 60 + value.second
            ) * 10**6 + value.microsecond
        case uuid.UUID():
            return value.bytes
        case int() if type_ in ("float", "double"):
            return float(value)
        case str() if type_ == "uuid":
            return uuid.UUID(value).bytes
        case _:
            return value


def _plain_nested(type_: Json, value: Any) -> Plain:
    match type_["type"]:
        case "struct":
            return {f["name"]: plain(f["type"], value.get(f["name"])) for f in children(type_)}
        case "list":
            return [plain(type_["element"], v) for v in value]
        case _:
            pairs = value.items() if isinstance(value, Mapping) else value
            return [(plain(type_["key"], k), plain(type_["value"], v)) for k, v in pairs]


def arrow_array(type_: Json, values: Sequence[Plain]) -> pa.Array[Any]:
    """Return plain values as an Arrow array of the type that files store, field ids included."""
    target = arrow_type(type_)
    if type_ == "uuid":
        storage = pa.array(list(values), pa.binary(16))
        return pa.ExtensionArray.from_storage(pa.uuid(), storage)
    if isinstance(type_, str):
        return pa.array(list(values), target)
    nulls = pa.array([v is None for v in values], pa.bool_())
    fields = [f for f in children(type_) if f["type"] != "unknown"]
    if type_["type"] == "struct":
        parts = [
            # below a null struct, a required field needs a value all the same
            arrow_array(
                f["type"],
                [
                    (_zero(f["type"]) if f["required"] else None) if v is None else v.get(f["name"])
                    for v in values
                ],
            )
            for f in fields
        ]
        if not parts:
            raise ValueError("a struct without stored fields can't be written")
        return pa.StructArray.from_arrays(
            parts, fields=[arrow_field(f) for f in fields], mask=nulls
        )
    items = [item for v in values if v is not None for item in v]
    offsets: list[int | None] = []
    at = 0
    for v in values:
        # a null offset makes the entry null
        offsets.append(None if v is None else at)
        at += len(v) if v is not None else 0
    offsets.append(at)
    if type_["type"] == "list":
        child = arrow_array(type_["element"], items)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), child, type=target)
    keys = arrow_array(type_["key"], [k for k, _ in items])
    vals = arrow_array(type_["value"], [v for _, v in items])
    at_offsets: Any = pa.array(offsets, pa.int32())  # the stubs want 64 bits, pyarrow 32
    return pa.MapArray.from_arrays(at_offsets, keys, vals, target)  # type: ignore[call-overload,no-any-return]


def _zero(type_: Json) -> Plain:
    if not isinstance(type_, str):
        if type_["type"] != "struct":
            return []
        return {f["name"]: _zero(f["type"]) if f["required"] else None for f in children(type_)}
    if (length := fixed_of(type_)) is not None:
        return bytes(length)
    if decimal := decimal_of(type_):
        return Decimal(0).scaleb(-decimal[1])
    match type_:
        case "string":
            return ""
        case "uuid":
            return bytes(16)
        case "variant":
            return {"metadata": b"\x01\x00\x00", "value": b"\x00"}
        case "float" | "double":
            return 0.0
        case "boolean":
            return False
        case _ if type_.startswith(("binary", "geo")):
            return b""
        case _:
            return 0


def to_bytes(type_: str, value: Plain) -> bytes:
    """Return Appendix D's binary form of a plain value.

    >>> to_bytes("int", 1), to_bytes("decimal(9,2)", Decimal("-1.00"))
    (b'\\x01\\x00\\x00\\x00', b'\\x9c')
    """
    if decimal := decimal_of(type_):
        return minimal_twos_complement(int(value.scaleb(decimal[1], context=_WIDE)))
    match type_:
        case "boolean":
            return b"\x01" if value else b"\x00"
        case "int" | "date":
            return struct.pack("<i", value)
        case "float":
            return struct.pack("<f", value)
        case "double":
            return struct.pack("<d", value)
        case "string":
            return str(value).encode()
        case "long" | "time" | "timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns":
            return struct.pack("<q", value)
        case _:
            return bytes(value)


def minimal_twos_complement(number: int) -> bytes:
    """Return the shortest big-endian two's complement of `number`; zero is one byte."""
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes(-(-bits // 8), "big", signed=True)


def lower_bound(values: Sequence[Plain]) -> Plain:
    """Return the least of some values, no null or NaN among them; zero becomes -0.0, the lesser."""
    least = min(values)
    return -0.0 if isinstance(least, float) and least == 0 else least


def upper_bound(values: Sequence[Plain]) -> Plain:
    """Return the greatest of some values, no null or NaN among them; zero becomes +0.0."""
    greatest = max(values)
    return 0.0 if isinstance(greatest, float) and greatest == 0 else greatest
