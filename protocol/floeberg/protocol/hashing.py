"""The 32-bit hash that buckets are made of.

It depends on the value and not on its type's width, scale or unit, so that a promoted column's rows
stay in their buckets. Spec: Appendix B.
"""

from __future__ import annotations

import math
import struct

import mmh3

from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    LongType,
    StringType,
    TimestampType,
    TimeType,
    Type,
    UuidType,
    Value,
)
from floeberg.protocol.values import minimal_big_endian, unscaled_of

_LONG = struct.Struct("<q")
_DOUBLE = struct.Struct("<d")


def bucket_hash(type_: Type, value: Value) -> int:
    """Return the signed 32-bit hash of a value of `type_`.

    ValueError for types that have no hash (nested ones, variant, unknown, geometry and geography)
    and for a value that is not of the type.

    >>> from decimal import Decimal
    >>> bucket_hash(IntType(), 34), bucket_hash(DecimalType(9, 2), Decimal("14.20"))
    (2017239379, -500754589)
    """
    return mmh3.hash(_hashed_bytes(type_, value), 0, signed=True)


def _hashed_bytes(type_: Type, value: Value) -> bytes:
    match type_, value:
        case BooleanType(), bool():
            return _LONG.pack(value)  # the spec says hashInt, and its example is this one's
        case ((IntType() | LongType() | DateType() | TimeType()), int()):
            return _LONG.pack(value)
        case TimestampType(nanos=nanos), int():
            return _LONG.pack(value // 1000 if nanos else value)
        case DecimalType(), _ if not isinstance(value, bool | int | float | str | bytes):
            return minimal_big_endian(unscaled_of(value, type_.scale))
        case StringType(), str():
            return value.encode("utf-8")
        case ((UuidType() | FixedType() | BinaryType()), bytes()):
            return value
        case ((FloatType() | DoubleType()), float()):
            # one zero and one NaN
            return _DOUBLE.pack(math.nan if math.isnan(value) else value + 0.0)
        case _:
            raise ValueError(f"{value!r} has no hash as a {type_}")
