"""What is constant in a statement: literals, their negation, casts and sums.

Sums are those that people write and tools make: of numbers, and of a day or a timestamp with
integers or intervals, as in `DATE '1994-01-01' + INTERVAL '3' MONTH`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import localcontext

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.protocol.civil_time import NANOS_PER_DAY
from floeberg.server.sql.constants import (
    MAX_DIGITS,
    Constant,
    Day,
    Number,
    Stamp,
    cast,
    literal_constant,
    negated,
)
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.types import is_cast


def constant_of(node: Node, zone: Zone) -> Constant | None:
    """Return the constant that `node` is, or None for anything but a literal, its negation, a cast
    of it that is sure to be exact, and a sum that is."""
    match node:
        case exp.Paren():
            return constant_of(node.this, zone)
        case exp.Neg():
            return negated(constant_of(node.this, zone))
        case exp.Add() | exp.Sub():
            return _sum(node, zone)
        case _ if is_cast(node):
            inner = constant_of(node.this, zone)
            return None if inner is None else cast(inner, node.to, zone)
        case _:
            return literal_constant(node)


def _sum(node: exp.Add | exp.Sub, zone: Zone) -> Constant | None:
    left, right = node.this, node.expression
    is_minus = isinstance(node, exp.Sub)
    if not is_minus and _interval_of(left) is not None:
        left, right = right, left
    if (interval := _interval_of(right)) is not None:
        return _later(constant_of(left, zone), interval, -1 if is_minus else 1, zone)
    one, other = constant_of(left, zone), constant_of(right, zone)
    if isinstance(one, Number) and isinstance(other, Day) and not is_minus:
        one, other = other, one
    match one, other:
        case Number(), Number():
            has_cast = left.find(exp.Cast) is not None or right.find(exp.Cast) is not None
            return _total(one, other, -1 if is_minus else 1, is_literal=not has_cast)
        case Day(days), Number(number, _, 0):
            moved = Day(days + (-1 if is_minus else 1) * int(number))
            return moved if _later(moved, _Interval(), 1, zone) is not None else None
        case _:
            return None


def _total(one: Number, other: Number, sign: int, *, is_literal: bool) -> Number | None:
    with localcontext(prec=80):
        value = one.value + sign * other.value
    if not one.scale and not other.scale:
        # what fits is an integer of 32 bits where no cast makes it another, and a sum must fit too
        fits = all(-(1 << 31) <= n < 1 << 31 for n in (one.value, other.value, value))
        return Number(int(value), 10, 0) if is_literal and fits else None
    whole = max(one.decimal_whole(), other.decimal_whole()) + 1
    scale = max(one.scale, other.scale)
    return Number(value, whole, scale) if whole + scale <= MAX_DIGITS else None


# --- days and times -------------------------------------------------------------------------------

_EPOCH = date(1970, 1, 1)
_FIRST_NANOS = (date.min - _EPOCH).days * NANOS_PER_DAY
_END_NANOS = ((date.max - _EPOCH).days + 1) * NANOS_PER_DAY


@dataclass(frozen=True, slots=True)
class _Interval:
    months: int = 0
    days: int = 0
    micros: int = 0


_UNITS = {
    "YEAR": _Interval(months=12),
    "QUARTER": _Interval(months=3),
    "MONTH": _Interval(months=1),
    "WEEK": _Interval(days=7),
    "DAY": _Interval(days=1),
    "HOUR": _Interval(micros=3_600_000_000),
    "MINUTE": _Interval(micros=60_000_000),
    "SECOND": _Interval(micros=1_000_000),
}


def _interval_of(node: Node) -> _Interval | None:
    """Return the interval that a literal is, or None for what is none, or not of one whole unit."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Interval) or not isinstance(node.args.get("unit"), exp.Var):
        return None
    count = node.this
    while isinstance(count, exp.Paren):
        count = count.this
    if not isinstance(count, exp.Literal):
        return None
    unit = _UNITS.get(str(node.args["unit"].name).upper().removesuffix("S"))
    if unit is None or not re.fullmatch(r"-?\d{1,9}", str(count.this), re.ASCII):
        return None
    number = int(str(count.this))
    return _Interval(number * unit.months, number * unit.days, number * unit.micros)


def _later(base: Constant | None, interval: _Interval, sign: int, zone: Zone) -> Stamp | None:
    """Return the timestamp that is later by an interval, or earlier, than a day's midnight or
    another timestamp: a month later is the same day of that month, or its last. Where that has a
    zone, months and days are those of the clock in `zone`.

    None for other constants, beyond the years 1 to 9999, and where the clock shows what comes out
    twice or never.
    """
    if isinstance(base, Stamp) and base.zoned:
        return _instant_later(base, interval, sign, zone)
    match base:
        case Day(number):
            days, nanos = number, 0
        case Stamp(value, zoned=False, nanos=False):
            days, nanos = divmod(value, NANOS_PER_DAY)
        case _:
            return None
    try:
        day = _months_later(_EPOCH + timedelta(days), sign * interval.months)
        day += timedelta(sign * interval.days)
        moment = (day - _EPOCH).days * NANOS_PER_DAY + nanos + sign * interval.micros * 1000
    except OverflowError:
        return None
    is_of_the_calendar = _FIRST_NANOS <= moment < _END_NANOS
    return Stamp(moment, zoned=False) if is_of_the_calendar else None


def _instant_later(base: Stamp, interval: _Interval, sign: int, zone: Zone) -> Stamp | None:
    if base.nanos:
        return None
    if not interval.months and not interval.days:
        moment: int | None = base.value + sign * interval.micros * 1000
    else:
        shown = zone.local_nanos(base.value)
        if shown is None:
            return None
        later = _later(Stamp(shown, zoned=False), interval, sign, zone)
        moment = None if later is None else zone.utc(later.value)
    if moment is None or not _FIRST_NANOS <= moment < _END_NANOS:
        return None
    return Stamp(moment, zoned=True)


def _months_later(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    year = day.year + years
    if not date.min.year <= year <= date.max.year:
        raise OverflowError(f"year {year}")
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
