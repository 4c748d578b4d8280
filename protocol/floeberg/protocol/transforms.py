"""Partition transforms: from a column's value to a partition's.

Spec: "Partition Transforms".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from floeberg.protocol.types import DateType, IntType, Type, UnknownType


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
