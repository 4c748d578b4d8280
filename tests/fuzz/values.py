"""Random values of a type, and literals near values that exist.

Values are few and often equal, so that filters and deletes hit; extremes come in between.
"""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from random import Random
from typing import Any, Literal, TypeAlias

from tests.support.lake.schemas import children, decimal_of, fixed_of
from tests.support.plain import Json, Plain, hashable, promoted

_WIDE = Context(prec=80)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROS_A_DAY = 86_400_000_000

TEXTS = (
    "",
    "a",
    "ab",
    "abc",
    "b",
    "ba",
    "A",
    " ",
    "é",
    "\ud7ff",
    "\ue000",
    "𝄞",
    "a𝄞",
    "\U0010ffff",
    "\U0010ffff" * 17,
    "abcdefghijklmnop",
    "abcdefghijklmnopq",
    "abcdefghijklmnoq",
    "a" * 40,
    "null",
    "'; --",
    "%_\\",
    "NaN",
    "\x00",
)
BYTES = (b"", b"\x00", b"\x01", b"a", b"ab", b"\x7f", b"\x80", b"\xff", b"\xff" * 17, b"abc" * 7)
_NAN = float("nan")
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, _NAN, _NAN, float("inf"), float("-inf"))
_POINT = struct.pack("<BIdd", 1, 1, 1.0, 2.0)


@dataclass(frozen=True)
class Times:
    """Which dates and timestamps a table holds.

    - `reach`: `ns` keeps dates within what nanoseconds hold, `civil` to the years that Python
      knows, `far` is everything
    - `whole_millis`: timestamps are whole milliseconds, so that files may store those
    """

    reach: Literal["ns", "civil", "far"]
    whole_millis: bool = False


CIVIL = Times("civil")

DAYS = (-719162, -141428, -1, 0, 1, 2, 18000, 19723, 106751, 2932896)
"""From year 1 to year 9999, which Python's dates hold; `_ns` times end in 2262."""


Seen: TypeAlias = Mapping[int, Sequence[tuple[str, Plain]]]
"""What was written of a field so far, and the type that the field had then."""


def value_of(
    rng: Random, type_: Json, seen: Sequence[tuple[str, Plain]] = (), times: Times = CIVIL
) -> Plain:
    """Return a value of a primitive type, never null."""
    if seen and rng.random() < 0.4:
        value = _as_type(type_, *rng.choice(seen))
        if value is not None:
            return value
    if decimal := decimal_of(type_):
        return _decimal(rng, *decimal)
    if (length := fixed_of(type_)) is not None:
        return _fixed(rng, length)
    if type_.startswith(("geometry", "geography")):
        return _POINT
    return _MAKERS[type_](rng, times)


def _as_type(type_: str, old: str, value: Plain) -> Plain:
    """Return a value of type `old` as one of `type_`, or None."""
    if old == type_ or value is None:
        return value
    if old == "date" and type_ in ("timestamp", "timestamp_ns"):
        return promoted(type_, "day", value)
    if (decimal := decimal_of(type_)) and decimal_of(old):
        return value if abs(value) < Decimal(10) ** (decimal[0] - decimal[1]) else None
    if {old, type_} == {"int", "long"}:
        return value if -(2**31) <= value < 2**31 else None
    return value if (old, type_) == ("float", "double") else None


def _int(bits: int) -> Callable[[Random, Times], Plain]:
    def make(rng: Random, _: Times) -> int:
        if rng.random() < 0.8:
            return rng.randint(-4, 4)
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        return rng.choice([low, high, low + 1, rng.randint(low, high), 1000, -1000])

    return make


def _float(rng: Random, _: Times) -> float:
    if rng.random() < 0.85:
        return rng.choice(FLOATS)
    return to_float32(rng.choice([1e30, -1e30, 1e-40, rng.uniform(-9, 9)]))


def _double(rng: Random, _: Times) -> float:
    if rng.random() < 0.85:
        return rng.choice(FLOATS)
    return rng.choice([1e300, -1e300, 5e-324, 0.1, rng.uniform(-9, 9)])


def to_float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _decimal(rng: Random, precision: int, scale: int) -> Decimal:
    largest = 10**precision - 1
    near = min(largest, 12)
    number = rng.randint(-near, near)
    if rng.random() < 0.25:
        number = rng.choice([largest, -largest, rng.randint(-largest, largest)])
    return Decimal(number).scaleb(-scale, _WIDE)


def _fixed(rng: Random, length: int) -> bytes:
    return bytes(rng.choice((0, 1, 97, 127, 128, 255)) for _ in range(length))


def _date(rng: Random, times: Times) -> int:
    if times.reach == "far" and rng.random() < 0.2:
        return rng.choice((-(2**31), 2**31 - 1, rng.randrange(-(2**31), 2**31)))
    days = rng.choice(DAYS) if rng.random() < 0.5 else rng.randint(-40, 40)
    return max(-106751, min(days, 106751)) if times.reach == "ns" else days


def _micros(rng: Random, times: Times) -> int:
    if times.reach == "far" and rng.random() < 0.2:
        return rng.choice((-(2**63), 2**63 - 1, rng.randrange(-(2**63), 2**63)))
    micros = _civil_micros(rng)
    return micros // 1000 * 1000 if times.whole_millis else micros


def _civil_micros(rng: Random) -> int:
    if rng.random() < 0.6:
        return rng.choice((-_MICROS_A_DAY, -3_600_000_000, -1000, -1, 0, 1, 1000, 3_600_000_000))
    day = rng.choice(DAYS) * _MICROS_A_DAY
    return day + rng.choice((0, 1, _MICROS_A_DAY - 1, rng.randrange(_MICROS_A_DAY)))


def _nanos(rng: Random, times: Times) -> int:
    if times.reach == "far" and rng.random() < 0.2:
        return rng.choice((-(2**63), 2**63 - 1))
    nanos = rng.choice((-(10**12), -1000, -999, -1, 0, 1, 999, 1000, 10**12, 3_600 * 10**9))
    if rng.random() < 0.4:
        nanos = rng.choice((-(2**62), 2**62, rng.randint(-(2**62), 2**62)))
    return nanos // 10**6 * 10**6 if times.whole_millis else nanos


def _time(rng: Random, _: Times) -> int:
    return rng.choice((0, 1, 999, 1000, _MICROS_A_DAY - 1, rng.randrange(_MICROS_A_DAY)))


def _variant(rng: Random, _: Times) -> Plain:
    return {
        "metadata": b"\x01\x00\x00",
        "value": rng.choice((b"\x00", b"\x04", b"\x08", b"\x0c\x05")),
    }


_MAKERS: Mapping[str, Callable[[Random, Times], Plain]] = {
    "boolean": lambda rng, _: rng.random() < 0.5,
    "int": _int(32),
    "long": _int(64),
    "float": _float,
    "double": _double,
    "date": _date,
    "time": _time,
    "timestamp": _micros,
    "timestamptz": _micros,
    "timestamp_ns": _nanos,
    "timestamptz_ns": _nanos,
    "string": lambda rng, _: rng.choice(TEXTS),
    "uuid": lambda rng, _: _fixed(rng, 1) * 15 + _fixed(rng, 1),
    "binary": lambda rng, _: rng.choice(BYTES),
    "variant": _variant,
    "unknown": lambda rng, _: None,
}


def nested_value(rng: Random, field: Json, seen: Seen, times: Times, nulls: float) -> Plain:
    """Return a value for a field of any type, null with the chance `nulls` where it may be."""
    type_ = field["type"]
    if type_ == "unknown" or (not field["required"] and rng.random() < nulls):
        return None
    if isinstance(type_, str):
        return value_of(rng, type_, seen.get(field["id"], ()), times)
    if type_["type"] == "struct":
        return {f["id"]: nested_value(rng, f, seen, times, nulls) for f in type_["fields"]}
    length = rng.choice((0, 1, 1, 2, 3))
    parts = children(type_)
    if type_["type"] == "list":
        return [nested_value(rng, parts[0], seen, times, nulls) for _ in range(length)]
    pairs = [[nested_value(rng, p, seen, times, nulls) for p in parts] for _ in range(length)]
    by_key = {hashable(key): (key, item) for key, item in pairs}
    return list(by_key.values())


# --- literals -------------------------------------------------------------------------------------


def literal(rng: Random, type_: str, values: Sequence[Plain]) -> Json:
    """Return a literal for a column of a type in its JSON form: one of its values, a neighbour of
    one, or any."""
    known = [v for v in values if v is not None]
    value = rng.choice(known) if known and rng.random() < 0.75 else value_of(rng, type_)
    if rng.random() < 0.4:
        value = _neighbour(rng, type_, value)
    if rng.random() < 0.1 and (other := _in_another_type(rng, type_, value)) is not None:
        return other
    return to_json(type_, value)


def _in_another_type(rng: Random, type_: str, value: Plain) -> Json:
    """Return a number near a numeric value as JSON of another type, or None."""
    match value:
        case int() if type_ in ("int", "long") and abs(value) < 2**31:
            return rng.choice((value + 0.5, float(value)))
        case Decimal() if abs(value) < 2**31:
            return rng.choice((int(value), float(int(value)) + 0.25))
        case float() if abs(value) < 2**20:
            return int(value)
        case _:
            return None


def _neighbour(rng: Random, type_: str, value: Plain) -> Plain:
    step = rng.choice((-1, 1))
    if decimal := decimal_of(type_):
        # one digit further than the type holds is allowed, in a literal
        digit = -decimal[1] - rng.choice((0, 0, 1))
        return _WIDE.add(value, Decimal(step).scaleb(digit, _WIDE))
    match value:
        case bool():
            return not value
        case int() if type_ in ("int", "long"):
            return value + step * rng.choice((1, 1, 1, 10**9))
        case int() if type_ == "time":
            return max(0, min(value + step, _MICROS_A_DAY - 1))
        case int() if abs(value) < 2**62:
            return value + step
        case float():
            return to_float32(value + step / 2) if type_ == "float" else value + step / 2
        case str():
            return rng.choice((value + "a", value[:-1], value[: len(value) // 2]))
        case bytes() if type_ == "binary":
            return rng.choice((value + b"\x00", value[:-1]))
        case _:
            return value


def prefix(rng: Random, type_: str, values: Sequence[Plain]) -> Json:
    """Return a literal for starts-with: some of the beginning of a value, or any value."""
    known = [v for v in values if v is not None]
    value = rng.choice(known) if known and rng.random() < 0.8 else value_of(rng, type_)
    return to_json(type_, value[: rng.choice((0, 1, 1, 2, 3, 16, 17, 99))])


def to_json(type_: str, value: Plain) -> Json:
    """Return Appendix D's JSON form of a primitive value."""
    if decimal_of(type_):
        return format(value, "f")
    match type_:
        case "float" | "double":
            return value if value == value and abs(value) != float("inf") else _SPECIAL[str(value)]
        case "date":
            return _date_text(value)
        case "time":
            return _time_text(value * 1000, 6)
        case "timestamp" | "timestamptz":
            return _timestamp_text(value * 1000, 6) + _offset(type_)
        case "timestamp_ns" | "timestamptz_ns":
            return _timestamp_text(value, 9) + _offset(type_)
        case "uuid":
            return str(uuid.UUID(bytes=value))
    return value.hex() if isinstance(value, bytes) else value


_SPECIAL = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _offset(type_: str) -> str:
    return "+00:00" if "tz" in type_ else ""


def _date_text(days: int) -> str:
    days = max(-719162, min(days, 2932896))  # where Python's dates end
    return (_EPOCH + dt.timedelta(days=days)).date().isoformat()


def _time_text(nanos: int, digits: int) -> str:
    seconds, rest = divmod(nanos, 10**9)
    whole = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{whole}.{rest:09}"[: len(whole) + 1 + digits]


def _timestamp_text(nanos: int, digits: int) -> str:
    days, rest = divmod(nanos, 86_400 * 10**9)
    return f"{_date_text(days)}T{_time_text(rest, digits)}"


def json_default(rng: Random, type_: str, times: Times) -> Any:
    """Return a default value for a field in its JSON form, which has no NaN and no infinities."""
    value = value_of(rng, type_, (), times)
    is_special = isinstance(value, float) and not abs(value) < float("inf")
    return to_json(type_, 1.5 if is_special else value)
