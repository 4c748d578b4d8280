"""Partition transforms: from a column's value to a partition's.

Spec: "Partition Transforms".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias, assert_never

from floeberg.protocol import civil_time
from floeberg.protocol.errors import Unsupported
from floeberg.protocol.hashing import bucket_hash
from floeberg.protocol.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IntType,
    LongType,
    StringType,
    TimestampType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
    Value,
    VariantType,
    is_nested,
)
from floeberg.protocol.values import decimal_of, unscaled_of


@dataclass(frozen=True, slots=True)
class Identity:
    def __str__(self) -> str:
        return "identity"


@dataclass(frozen=True, slots=True)
class Bucket:
    """The value's 32-bit hash, modulo `buckets` (Appendix B)."""

    buckets: int

    def __str__(self) -> str:
        return f"bucket[{self.buckets}]"


@dataclass(frozen=True, slots=True)
class Truncate:
    """Text cut to `width` code points, bytes to `width` bytes, numbers floored to a multiple of
    `width`."""

    width: int

    def __str__(self) -> str:
        return f"truncate[{self.width}]"


@dataclass(frozen=True, slots=True)
class Year:
    def __str__(self) -> str:
        return "year"


@dataclass(frozen=True, slots=True)
class Month:
    def __str__(self) -> str:
        return "month"


@dataclass(frozen=True, slots=True)
class Day:
    def __str__(self) -> str:
        return "day"


@dataclass(frozen=True, slots=True)
class Hour:
    def __str__(self) -> str:
        return "hour"


@dataclass(frozen=True, slots=True)
class Void:
    """Always null: what became of a dropped partition field in v1."""

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True)
class UnknownTransform:
    """A transform of a later spec, kept verbatim: it prunes nothing, and the table stays
    readable."""

    text: str

    def __str__(self) -> str:
        return self.text


Transform: TypeAlias = (
    Identity | Bucket | Truncate | Year | Month | Day | Hour | Void | UnknownTransform
)

_NAMED: dict[str, Transform] = {
    str(t): t for t in (Identity(), Year(), Month(), Day(), Hour(), Void())
}
_SIZED = re.compile(r"(bucket|truncate)\[(\d+)\]")


def parse_transform(text: str) -> Transform:
    """Return the transform that `text` names; what is not known comes back as `UnknownTransform`.

    >>> parse_transform("bucket[16]"), parse_transform("zorder")
    (Bucket(buckets=16), UnknownTransform(text='zorder'))
    """
    name = text.strip().lower()
    if (named := _NAMED.get(name)) is not None:
        return named
    match = _SIZED.fullmatch(name)
    if match is None or int(match[2]) == 0:
        return UnknownTransform(text)
    size = int(match[2])
    return Bucket(size) if match[1] == "bucket" else Truncate(size)


def result_type(transform: Transform, source: Type) -> Type:
    """Return the type of the partition values that `transform` makes from `source` values."""
    match transform:
        case Bucket() | Year() | Month() | Hour():
            return IntType()
        case Day():
            return DateType()
        case UnknownTransform():
            return UnknownType()
        case Identity() | Truncate() | Void():
            return source


_BUCKETED = (
    IntType
    | LongType
    | DecimalType
    | DateType
    | TimeType
    | TimestampType
    | StringType
    | UuidType
    | FixedType
    | BinaryType
)


def applies_to(transform: Transform, source: Type) -> bool:
    """Say whether the spec has `transform` for `source`, so that `apply` gives what a writer wrote.

    An unknown transform applies to nothing; void applies to everything.
    """
    match transform:
        case Identity():
            return not is_nested(source) and not isinstance(
                source, VariantType | GeometryType | GeographyType
            )
        case Void():
            return True
        case Bucket():
            return isinstance(source, _BUCKETED)
        case Truncate():
            return isinstance(source, IntType | LongType | DecimalType | StringType | BinaryType)
        case Year() | Month() | Day():
            return isinstance(source, DateType | TimestampType)
        case Hour():
            return isinstance(source, TimestampType)
        case UnknownTransform():
            return False


def apply(transform: Transform, source: Type, value: Value | None) -> Value | None:
    """Return the partition value of a `source` value; null for null.

    Floors where it makes coarser: truncating -1 to 10s gives -10, and the hour before 1970 is hour
    -1. Raises `Unsupported` for an unknown transform, and ValueError for one that `source` does not
    have.

    >>> apply(Truncate(10), IntType(), -1), apply(Month(), DateType(), -1)
    (-10, -1)
    """
    if isinstance(transform, UnknownTransform):
        raise Unsupported(f"partition transform {transform.text!r} is not known")
    if not applies_to(transform, source):
        raise ValueError(f"{transform} does not apply to {source}")
    if value is None:
        return None
    match transform:
        case Identity():
            return value
        case Bucket(buckets):
            return (bucket_hash(source, value) & 0x7FFF_FFFF) % buckets
        case Truncate(width):
            return _truncated(value, width, source)
        case Year():
            return civil_time.civil_from_days(_days(value, source))[0] - 1970
        case Month():
            year, month, _ = civil_time.civil_from_days(_days(value, source))
            return (year - 1970) * 12 + month - 1
        case Day():
            return _days(value, source)
        case Hour():
            assert isinstance(value, int)
            return value // (civil_time.MICROS_PER_HOUR * _units_per_micro(source))
        case Void():
            return None
        case _:
            assert_never(transform)


def _truncated(value: Value, width: int, source: Type) -> Value:
    match value:
        case int():
            return _wrapped(value - value % width, 64 if isinstance(source, LongType) else 32)
        case Decimal():
            assert isinstance(source, DecimalType)
            unscaled = unscaled_of(value, source.scale)
            return decimal_of(unscaled - unscaled % width, source.scale)
        case str() | bytes():
            return value[:width]  # a Python string's items are code points, as the spec wants
        case _:
            raise ValueError(f"{value!r} cannot be truncated")


def _wrapped(number: int, bits: int) -> int:
    """Return `number` as an integer of `bits` holds it.

    Truncating the smallest integers falls below them, and writers wrap around.
    """
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def _days(value: Value, source: Type) -> int:
    assert isinstance(value, int)
    if isinstance(source, DateType):
        return value
    return value // (civil_time.MICROS_PER_DAY * _units_per_micro(source))


def _units_per_micro(source: Type) -> int:
    return 1000 if isinstance(source, TimestampType) and source.nanos else 1
