"""Literals, with the type that DuckDB gives them.

A number without a point is an integer, one with a point a decimal with just these digits, and only
one with an exponent a double. Text in quotes has no type until it meets one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.protocol.values import to_float32, uuid_from_text
from floeberg.server.sql.instants import Zone, parse_clock, parse_moment

MAX_DIGITS = 38
"""What DuckDB's decimals have at most."""

_INTEGER = re.compile(r"\d{1,38}", re.ASCII)
_DECIMAL = re.compile(r"(\d*)\.(\d*)", re.ASCII)
_DOUBLE = re.compile(r"(?:\d+\.?\d*|\.\d+)[eE][+-]?\d{1,3}", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_BLOB = re.compile(r"(?:[ -\[\]-~]|\\x[0-9a-fA-F]{2})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Null:
    pass


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool


@dataclass(frozen=True, slots=True)
class Number:
    """An integer or decimal; `whole` and `scale` are how many digits DuckDB gives it before and
    behind the point."""

    value: int | Decimal
    whole: int
    scale: int

    def decimal_whole(self) -> int:
        """Return how many digits DuckDB gives it before the point where it meets a decimal: an
        integer is as wide as its type."""
        if self.scale:
            return self.whole
        return 10 if -(1 << 31) <= self.value < 1 << 31 else 19 if self.whole < 19 else MAX_DIGITS


@dataclass(frozen=True, slots=True)
class Float:
    """A double, or a `single`, whose value then is one of them."""

    value: float
    single: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Text in quotes; `typed` when a cast made it VARCHAR, so that it becomes nothing else."""

    value: str
    typed: bool = False


@dataclass(frozen=True, slots=True)
class Day:
    """Days since the epoch."""

    days: int


@dataclass(frozen=True, slots=True)
class Time:
    """Microseconds since midnight."""

    micros: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """A timestamp in nanoseconds since the epoch: in UTC where it is `zoned`. `nanos` says that its
    type counts them, rather than microseconds."""

    value: int
    zoned: bool
    nanos: bool = False


@dataclass(frozen=True, slots=True)
class Bytes:
    value: bytes


@dataclass(frozen=True, slots=True)
class Uuid:
    value: str


Constant: TypeAlias = Null | Truth | Number | Float | Text | Day | Time | Stamp | Bytes | Uuid


def literal_constant(node: Node) -> Constant | None:
    """Return the constant that a literal is, or None for anything else."""
    match node:
        case exp.Null():
            return Null()
        case exp.Boolean():
            return Truth(bool(node.this))
        case exp.Literal(is_string=True):
            return Text(str(node.this))
        case exp.Literal():
            return _number(str(node.this))
        case _:
            return None


def _number(text: str) -> Constant | None:
    if _INTEGER.fullmatch(text):
        value = int(text)
        # beyond 128 bits it is of types that are not looked at here
        return Number(value, len(str(value)), 0) if value < 1 << 127 else None
    if (found := _DECIMAL.fullmatch(text)) is not None:
        before, behind = found.groups()
        before = before.lstrip("0")
        if not 0 < len(before) + len(behind) <= MAX_DIGITS:
            return None
        return Number(Decimal(f"{before or 0}.{behind or 0}"), len(before), len(behind))
    if _DOUBLE.fullmatch(text):
        return Float(float(text))
    return None


def negated(constant: Constant | None) -> Constant | None:
    """Return minus a number, or None for what has no minus here."""
    match constant:
        case Number(value, whole, scale):
            # a decimal's own minus sign would round it to 28 digits
            negative = value.copy_negate() if isinstance(value, Decimal) else -value
            return Number(negative, whole, scale)
        case Float(value, single):
            return Float(-value, single)
        case Null():
            return constant
        case _:
            return None


_INTEGERS = {
    exp.DType.TINYINT: (7, 3),
    exp.DType.SMALLINT: (15, 5),
    exp.DType.INT: (31, 10),
    exp.DType.BIGINT: (63, 19),
}


def cast(constant: Constant, to: exp.DataType, zone: Zone) -> Constant | None:
    """Return what a constant becomes as type `to`, or None where that is not sure to be exact."""
    kind = to.this
    if isinstance(constant, Null):
        return constant
    if to.expressions and kind != exp.DType.DECIMAL:
        return None  # digits of a second, to which DuckDB rounds
    if kind in _INTEGERS:
        bits, digits = _INTEGERS[kind]
        whole = _whole_number(constant)
        if whole is None or not -(1 << bits) <= whole < 1 << bits:
            return None
        return Number(whole, digits, 0)
    match kind, constant:
        case exp.DType.BOOLEAN, Truth():
            return constant
        case exp.DType.TEXT | exp.DType.VARCHAR, Text():
            return Text(constant.value, typed=True)
        case exp.DType.DOUBLE, _:
            return as_double(constant)
        case exp.DType.FLOAT, _:
            return as_single(constant)
        case exp.DType.DATE, Text(typed=False):
            return as_day(constant)
        case exp.DType.TIME, Text(typed=False):
            return as_time(constant)
        case ((exp.DType.TIMESTAMP | exp.DType.TIMESTAMPNTZ), (Text(typed=False) | Day())):
            return as_stamp(constant, zone, zoned=False, nanos=False)
        case exp.DType.TIMESTAMP_NS, (Text(typed=False) | Day()):
            return as_stamp(constant, zone, zoned=False, nanos=True)
        case exp.DType.TIMESTAMPTZ, (Text(typed=False) | Day() | Stamp()):
            return as_stamp(constant, zone, zoned=True, nanos=False)
        case exp.DType.UUID, Text(typed=False):
            return as_uuid(constant)
        case exp.DType.VARBINARY, Text(typed=False):
            return as_bytes(constant)
        case exp.DType.DECIMAL, Number():
            return _decimal(constant, to)
        case _:
            return None


def _whole_number(constant: Constant) -> int | None:
    match constant:
        case Number(value, _, 0):
            return int(value)
        case Text(text, typed=False) if re.fullmatch(r"-?\d{1,19}", text, re.ASCII):
            return int(text)
        case _:
            return None


def _decimal(number: Number, to: exp.DataType) -> Constant | None:
    try:
        precision, scale = (int(str(p.this.this)) for p in to.expressions)
    except (AttributeError, ValueError):
        return None
    if number.scale > scale or number.whole + scale > precision or precision > MAX_DIGITS:
        return None
    return Number(number.value, precision - scale, scale)


# --- what a constant becomes when it meets another type -------------------------------------------

# Up to here a number is a double (or a single) times or through another that is exact, so that one
# rounding gives the nearest, in DuckDB as here
_DOUBLE_DIGITS, _DOUBLE_SCALE = 1 << 53, 22
_SINGLE_DIGITS, _SINGLE_SCALE = 1 << 24, 7


def as_double(constant: Constant) -> Float | None:
    """Return the double that a constant becomes, or None where the engines may round otherwise."""
    match constant:
        case Float(value):
            return Float(value)
        case Number(value, _, scale):
            digits = abs(int(value.scaleb(scale)) if isinstance(value, Decimal) else value)
            if digits > _DOUBLE_DIGITS or scale > _DOUBLE_SCALE:
                return None
            return Float(float(value))
        case Text(typed=False):
            return _float_of(constant.value)
        case _:
            return None


def as_single(constant: Constant) -> Float | None:
    """Return the 32-bit float that a constant becomes, or None where engines may round otherwise,
    and for a double, which does not become one."""
    match constant:
        case Float(single=True):
            return constant
        case Number(value, _, scale):
            digits = abs(int(value.scaleb(scale)) if isinstance(value, Decimal) else value)
            if digits > _SINGLE_DIGITS or scale > _SINGLE_SCALE:
                return None
            return Float(to_float32(float(value)), single=True)
        case Text(typed=False):
            inner = _float_of(constant.value)
            if inner is None:
                return None
            try:
                rounded = to_float32(inner.value)
            except OverflowError:
                return None
            # exact, or NaN or infinite; what is rounded twice may differ
            is_same = rounded == inner.value or inner.value != inner.value
            return Float(rounded, single=True) if is_same else None
        case _:
            return None


_FLOATS = {"nan": "nan", "inf": "inf", "infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}


def _float_of(text: str) -> Float | None:
    if (named := _FLOATS.get(text.lower())) is not None:
        return Float(float(named))
    if re.fullmatch(r"-?\d{1,15}(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?", text, re.ASCII):
        return Float(float(text))
    return None


def as_day(constant: Constant) -> Day | None:
    match constant:
        case Day():
            return constant
        case Text(text, typed=False):
            moment = parse_moment(text)
            if moment is None or not moment.is_date:
                return None
            return Day(moment.nanos // _NANOS_PER_DAY)
        case _:
            return None


def as_time(constant: Constant) -> Time | None:
    match constant:
        case Time():
            return constant
        case Text(text, typed=False):
            nanos = parse_clock(text)
            return None if nanos is None or nanos % 1000 else Time(nanos // 1000)
        case _:
            return None


_NANOS_PER_DAY = 86_400 * 10**9
_LONG_MAX = (1 << 63) - 1


def as_stamp(constant: Constant, zone: Zone, *, zoned: bool, nanos: bool) -> Stamp | None:
    """Return the timestamp that a constant becomes, or None where it is not exactly one, or not
    surely the same to all."""
    match constant:
        case Stamp():
            value, is_utc = constant.value, constant.zoned
        case Day(days):
            value, is_utc = days * _NANOS_PER_DAY, False
        case Text(text, typed=False):
            moment = parse_moment(text)
            if moment is None or (moment.zoned and not zoned):
                return None
            value, is_utc = moment.nanos, moment.zoned
        case _:
            return None
    if is_utc and not zoned:
        return None
    if zoned and not is_utc:
        local = zone.utc(value)
        if local is None:
            return None
        value = local
    if value % 1000 and not nanos:
        return None
    # DuckDB fails where a type's range ends
    if abs(value) > (_LONG_MAX if nanos else _LONG_MAX * 1000):
        return None
    return Stamp(value, zoned, nanos)


def as_uuid(constant: Constant) -> Uuid | None:
    match constant:
        case Uuid():
            return constant
        case Text(text, typed=False) if _UUID.fullmatch(text):
            assert uuid_from_text(text)
            return Uuid(text)
        case _:
            return None


def as_bytes(constant: Constant) -> Bytes | None:
    match constant:
        case Bytes():
            return constant
        case Text(text, typed=False) if _BLOB.fullmatch(text):
            # in quotes, \x and two digits are a byte, and other signs are their own
            return Bytes(
                re.sub(
                    rb"\\x([0-9a-fA-F]{2})",
                    lambda found: bytes.fromhex(found[1].decode()),
                    text.encode("ascii"),
                )
            )
        case _:
            return None
