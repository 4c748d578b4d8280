"""Whether values between two bounds may satisfy a predicate.

Bounds are outer bounds: text and bytes may have been cut and rounded outwards, so a bound need not
be a value. They leave out null and NaN. One that does not decode, is NaN, or contradicts its
partner is no bound; and what has no bound on a side may be anything on that side. Everything here
errs by saying "may". Spec: "Data File Fields", "Field-level Metrics and Statistics".
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from floeberg.protocol import values
from floeberg.protocol.expressions.model import BoundPredicate, Op
from floeberg.protocol.types import (
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    TimestampType,
    Type,
    Value,
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower and upper, both inclusive; None where nothing is known."""

    lower: Value | None = None
    upper: Value | None = None


UNBOUNDED = Bounds()


def decode_bounds(
    type_: Type, lower: bytes | None, upper: bytes | None, *, may_be_imported: bool = False
) -> Bounds:
    """Return what two bounds in Appendix D's binary form say of a column of `type_`.

    The column may have been promoted since. Geometry and geography have bounds of another kind:
    none here. Writers that import existing Parquet files copy the bounds of their timestamps as the
    file has them, which may be in milliseconds: with `may_be_imported`, a timestamp's bounds allow
    for either unit.
    """
    low, high = _decode(type_, lower), _decode(type_, upper)
    if low is not None and high is not None and _is_greater(low, high):
        return UNBOUNDED
    if may_be_imported and isinstance(type_, TimestampType):
        return _in_either_unit(Bounds(low, high), 1_000_000 if type_.nanos else 1_000)
    return Bounds(low, high)


def _in_either_unit(bounds: Bounds, ticks_per_millisecond: int) -> Bounds:
    """Return the bounds of values of which `bounds` may count ticks or milliseconds."""
    lower, upper = bounds.lower, bounds.upper
    return Bounds(
        min(lower, lower * ticks_per_millisecond) if isinstance(lower, int) else None,
        max(upper, upper * ticks_per_millisecond) if isinstance(upper, int) else None,
    )


def _decode(type_: Type, raw: bytes | None) -> Value | None:
    if raw is None or isinstance(type_, GeometryType | GeographyType):
        return None
    if isinstance(type_, FixedType):
        return raw if len(raw) <= type_.length else None  # it may have been cut
    try:
        value = values.from_bytes(type_, raw)
    except ValueError:
        return None
    return None if value != value else value


def _is_greater(one: Any, other: Any) -> bool:
    # Any: both have the column's type
    return bool(one > other)


def may_match(predicate: BoundPredicate, bounds: Bounds) -> bool:
    """Say whether a value that is neither null nor NaN, within `bounds`, may satisfy a comparison.

    `predicate` is not a test for null or NaN. For floats, the answer to `!=` and not-in is always
    yes.
    """
    lower: Any = bounds.lower
    upper: Any = bounds.upper  # Any: both have the predicate's type, as its literals have
    literals: tuple[Any, ...] = predicate.literals
    match predicate.op:
        case Op.EQ | Op.IN:
            first = 0 if lower is None else bisect_left(literals, lower)
            return first < len(literals) and (upper is None or literals[first] <= upper)
        case Op.LT:
            return lower is None or lower < literals[0]
        case Op.LE:
            return lower is None or lower <= literals[0]
        case Op.GT:
            return upper is None or upper > literals[0]
        case Op.GE:
            return upper is None or upper >= literals[0]
        case Op.NE | Op.NOT_IN:
            return not _is_one_of(predicate, bounds)
        case Op.STARTS_WITH:
            prefix = literals[0]
            above = lower is not None and lower[: len(prefix)] > prefix
            return not above and (upper is None or upper >= prefix)
        case Op.NOT_STARTS_WITH:
            # what lies between two values with the prefix has it too
            return (
                lower is None
                or upper is None
                or not (lower.startswith(literals[0]) and upper.startswith(literals[0]))
            )
        case _:
            return True


def _is_one_of(predicate: BoundPredicate, bounds: Bounds) -> bool:
    """Say whether every value is the same, and one of the literals.

    Only numbers' bounds are trusted to be that exact: text may have been cut without being rounded,
    and a float may be NaN beside its bounds.
    """
    if isinstance(predicate.type, FloatType | DoubleType) or not isinstance(bounds.lower, int):
        return False
    return bounds.lower == bounds.upper and bounds.lower in predicate.literals
