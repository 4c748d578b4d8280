"""Single values as bytes and as JSON.

Bytes are how bounds and partition summaries are stored; JSON is how defaults travel, and how
floeberg prints values. Both directions refuse what the type does not hold with a `ValueError` that
says why; the caller knows which file or column it was, and raises the error that names it. Spec:
Appendix D.
"""

from __future__ import annotations

import math
import re
import struct
import uuid
from collections.abc import Mapping
from decimal import Context, Decimal, InvalidOperation
from typing import NoReturn, TypeAlias

from floeberg.protocol import civil_time, well_known_text
from floeberg.protocol.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntType,
    Json,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    Type,
    UuidType,
    Value,
)

NestedValue: TypeAlias = (
    Value
    | dict[int, "NestedValue"]
    | list["NestedValue"]
    | list[tuple["NestedValue", "NestedValue"]]
    | None
)
"""A value of any type. struct: field id → value. list: its elements. map: its entries, in order."""

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
MICROS_PER_DAY = civil_time.MICROS_PER_DAY

_EXACT = Context(prec=80)  # the default context rounds to 28 digits, and Iceberg has 38
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SPECIAL_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


# --- what a type holds ---------------------------------------------------------------------------


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Return the decimal of `unscaled` units of 10 to the power of minus `scale`, exactly.

    >>> decimal_of(1420, 2)
    Decimal('14.20')
    """
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def unscaled_of(value: Decimal, scale: int) -> int:
    """Return how many units of 10 to the power of minus `scale` make `value`.

    ValueError when that is no whole number: nothing is rounded.
    """
    if not value.is_finite():
        raise ValueError(f"{value} is not a finite number")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    units, shift = int("".join(map(str, digits))), exponent + scale
    if shift < 0 and units:
        if -shift > len(digits):  # before 10 to a very high power is computed
            raise ValueError(f"{value} has more than {scale} digits after the point")
        units, rest = divmod(units, 10**-shift)
        if rest:
            raise ValueError(f"{value} has more than {scale} digits after the point")
    elif units:
        if shift > 80:
            raise ValueError(f"{value} is too large for a decimal")
        units *= 10**shift
    return -units if sign else units


def to_float32(value: float) -> float:
    """Return the nearest 32-bit float. OverflowError when that would be an infinity and `value` is
    none."""
    result: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return result


def shortest_float32(value: float) -> float:
    """Return the shortest decimal number, as a 64-bit float, that rounds to the 32-bit float
    `value`.

    >>> shortest_float32(0.10000000149011612)
    0.1
    """
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        if to_float32(short) == value:
            return short
    return value


def _in_range(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError(f"{value} is not between {low} and {high}")
    return value


def _decimal(unscaled: int, type_: DecimalType) -> Decimal:
    if abs(unscaled) >= 10**type_.precision:
        raise ValueError(f"{decimal_of(unscaled, type_.scale)} has too many digits for {type_}")
    return decimal_of(unscaled, type_.scale)


def _of_length(raw: bytes, *lengths: int) -> bytes:
    if len(raw) not in lengths:
        expected = " or ".join(map(str, lengths))
        raise ValueError(f"{len(raw)} bytes where {expected} were expected")
    return raw


def _unexpected(value: object, type_: Type) -> NoReturn:
    raise ValueError(f"{value!r} is not a {type_}")


# --- bytes ---------------------------------------------------------------------------------------


def from_bytes(type_: Type, raw: bytes) -> Value:
    """Return the value that `raw` holds in Appendix D's binary form.

    A column may have been promoted since `raw` was written, so its length decides how it is read:
    four bytes are a long that was an int, a double that was a float, a timestamp that was a date.
    ValueError for bytes of another length, text that is not UTF-8, a decimal wider than the type,
    and for types without a binary form.
    """
    match type_:
        case BooleanType():
            return _of_length(raw, 1) != b"\x00"
        case IntType() | DateType():
            return int.from_bytes(_of_length(raw, 4), "little", signed=True)
        case LongType():
            return int.from_bytes(_of_length(raw, 4, 8), "little", signed=True)
        case TimeType():
            return int.from_bytes(_of_length(raw, 8), "little", signed=True)
        case TimestampType():
            number = int.from_bytes(_of_length(raw, 4, 8), "little", signed=True)
            if len(raw) == 8:
                return number
            if type_.zoned:  # a date is never promoted to it
                raise ValueError("4 bytes where 8 were expected")
            units = civil_time.NANOS_PER_DAY if type_.nanos else MICROS_PER_DAY
            return _in_range(number * units, LONG_MIN, LONG_MAX)
        case FloatType() | DoubleType():
            if isinstance(type_, FloatType):
                _of_length(raw, 4)
            layout = "<f" if len(_of_length(raw, 4, 8)) == 4 else "<d"
            value: float = struct.unpack(layout, raw)[0]
            return value
        case DecimalType():
            if not 1 <= len(raw) <= 64:
                raise ValueError(f"{len(raw)} bytes for a {type_}")
            return _decimal(int.from_bytes(raw, "big", signed=True), type_)
        case StringType():
            return raw.decode("utf-8")
        case UuidType():
            return bytes(_of_length(raw, 16))
        case FixedType():
            return bytes(_of_length(raw, type_.length))
        case BinaryType() | GeometryType() | GeographyType():
            return bytes(raw)
        case _:
            raise ValueError(f"a {type_} has no binary form")


def to_bytes(type_: Type, value: Value) -> bytes:
    """Return Appendix D's binary form of `value`; `from_bytes` takes it back.

    ValueError for a value that the type does not hold: out of range, of the wrong class or length.
    """
    match type_, value:
        case BooleanType(), bool():
            return b"\x01" if value else b"\x00"
        case ((IntType() | DateType()), int()) if not isinstance(value, bool):
            return _in_range(value, INT_MIN, INT_MAX).to_bytes(4, "little", signed=True)
        case ((LongType() | TimeType() | TimestampType()), int()) if not isinstance(value, bool):
            return _in_range(value, LONG_MIN, LONG_MAX).to_bytes(8, "little", signed=True)
        case FloatType(), float():
            try:
                return struct.pack("<f", value)
            except OverflowError as exc:
                raise ValueError(f"{value} is too large for a float") from exc
        case DoubleType(), float():
            return struct.pack("<d", value)
        case DecimalType(), Decimal():
            unscaled = unscaled_of(value, type_.scale)
            _decimal(unscaled, type_)
            return minimal_big_endian(unscaled)
        case StringType(), str():
            return value.encode("utf-8")  # UnicodeEncodeError is a ValueError
        case UuidType(), bytes():
            return _of_length(value, 16)
        case FixedType(), bytes():
            return _of_length(value, type_.length)
        case ((BinaryType() | GeometryType() | GeographyType()), bytes()):
            return value
        case _:
            _unexpected(value, type_)


def minimal_big_endian(unscaled: int) -> bytes:
    """Return the two's complement of `unscaled` in as few bytes as hold it, the highest first.

    >>> minimal_big_endian(127).hex(), minimal_big_endian(128).hex(), minimal_big_endian(-128).hex()
    ('7f', '0080', '80')
    """
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)


# --- JSON ----------------------------------------------------------------------------------------


def from_json(type_: Type, raw: Json) -> NestedValue:
    """Return the value that `raw` holds in Appendix D's JSON form; JSON null is None, for any type.

    A struct comes back with the fields that `raw` names; the defaults of the others are the
    caller's affair. ValueError for JSON of another shape and for values that the type does not
    hold. Besides the spec's form, any offset is taken for a zoned timestamp, and `"NaN"`,
    `"Infinity"` and `"-Infinity"` for a float.
    """
    match type_, raw:
        case _, None:
            return None
        case StructType(), dict():
            return _struct_from_json(type_, raw)
        case ListType(), list():
            return [from_json(type_.element, item) for item in raw]
        case MapType(), {"keys": list(keys), "values": list(values)} if len(raw) == 2:
            if len(keys) != len(values):
                raise ValueError(f"{len(keys)} keys and {len(values)} values")
            return [
                (from_json(type_.key, k), from_json(type_.value, v))
                for k, v in zip(keys, values, strict=True)
            ]
        case BooleanType(), bool():
            return raw
        case IntType(), int() if not isinstance(raw, bool):
            return _in_range(raw, INT_MIN, INT_MAX)
        case LongType(), int() if not isinstance(raw, bool):
            return _in_range(raw, LONG_MIN, LONG_MAX)
        case ((FloatType() | DoubleType()), (int() | float() | str())) if not isinstance(raw, bool):
            return _float_from_json(type_, raw)
        case _, str():
            return _from_text(type_, raw)
        case _:
            _unexpected(raw, type_)


def _struct_from_json(type_: StructType, raw: Mapping[str, Json]) -> NestedValue:
    fields = {str(f.field_id): f for f in type_.fields}
    value: dict[int, NestedValue] = {}
    for key, item in raw.items():
        field = fields.get(key)
        if field is None:
            raise ValueError(f"{key!r} is not the id of a field of {type_}")
        value[field.field_id] = from_json(field.type, item)
    return value


def _float_from_json(type_: FloatType | DoubleType, raw: int | float | str) -> float:
    if isinstance(raw, str):
        if raw not in _SPECIAL_FLOATS:
            _unexpected(raw, type_)
        return _SPECIAL_FLOATS[raw]
    try:
        return to_float32(float(raw)) if isinstance(type_, FloatType) else float(raw)
    except OverflowError as exc:
        raise ValueError(f"{raw} is too large for a {type_}") from exc


def _from_text(type_: Type, text: str) -> Value:
    match type_:
        case StringType():
            text.encode("utf-8")  # a lone surrogate is no text
            return text
        case DecimalType():
            return decimal_from_text(type_, text)
        case DateType():
            return _in_range(civil_time.parse_date(text), INT_MIN, INT_MAX)
        case TimeType():
            return _in_micros(civil_time.parse_time(text), text)
        case TimestampType():
            instant = civil_time.parse_timestamp(text)
            if instant.zoned != type_.zoned:
                raise ValueError(f"{text!r} has {'an' if instant.zoned else 'no'} offset")
            value = instant.nanos if type_.nanos else _in_micros(instant.nanos, text)
            return _in_range(value, LONG_MIN, LONG_MAX)
        case UuidType():
            return uuid_from_text(text)
        case FixedType():
            return _of_length(bytes_from_hex(text), type_.length)
        case BinaryType():
            return bytes_from_hex(text)
        case GeometryType() | GeographyType():
            return well_known_text.to_binary(text)
        case _:
            _unexpected(text, type_)


def _in_micros(nanos: int, text: str) -> int:
    micros, rest = divmod(nanos, 1000)
    if rest:
        raise ValueError(f"{text!r} is finer than a microsecond")
    return micros


def decimal_from_text(type_: DecimalType, text: str) -> Decimal:
    """Return the decimal that `text` writes, at the type's scale; ValueError when it does not fit
    exactly."""
    try:
        return _decimal(unscaled_of(Decimal(text), type_.scale), type_)
    except InvalidOperation as exc:
        raise ValueError(f"{text!r} is not a decimal number") from exc


def uuid_from_text(text: str) -> bytes:
    """Return the 16 bytes of a uuid written in the usual groups, in any case."""
    if not _UUID.fullmatch(text):
        raise ValueError("a uuid is written like f79c3e09-677c-4bbd-a479-3f349cb785e7")
    return uuid.UUID(text).bytes


def bytes_from_hex(text: str) -> bytes:
    """Return the bytes that `text` writes in hexadecimal, two digits each and nothing between
    them."""
    if not _HEX.fullmatch(text):
        raise ValueError("bytes are written in hexadecimal, like 00ff")
    return bytes.fromhex(text)


def to_json(type_: Type, value: NestedValue) -> Json:
    """Return Appendix D's JSON form of `value`; `from_json` takes it back.

    Values that JSON has no number for, NaN and the infinities, become strings. Times have six
    digits after the second, nanosecond timestamps nine. ValueError for a value that the type does
    not hold.
    """
    match type_, value:
        case _, None:
            return None
        case StructType(), dict():
            types = {f.field_id: f.type for f in type_.fields}
            if unknown := value.keys() - types.keys():
                raise ValueError(f"{min(unknown)} is not the id of a field of {type_}")
            return {str(i): to_json(types[i], item) for i, item in value.items()}
        case ListType(), list():
            return [to_json(type_.element, _not_entry(item)) for item in value]
        case MapType(), list():
            entries = [_entry(item) for item in value]
            return {
                "keys": [to_json(type_.key, k) for k, _ in entries],
                "values": [to_json(type_.value, v) for _, v in entries],
            }
        case _, (bool() | int() | float() | Decimal() | str() | bytes()):
            return _primitive_to_json(type_, value)
        case _:
            _unexpected(value, type_)


def _entry(
    item: NestedValue | tuple[NestedValue, NestedValue],
) -> tuple[NestedValue, NestedValue]:
    if not isinstance(item, tuple):
        raise ValueError(f"{item!r} is not an entry of a map")
    return item


def _not_entry(item: NestedValue | tuple[NestedValue, NestedValue]) -> NestedValue:
    if isinstance(item, tuple):
        raise ValueError(f"{item!r} is not an element of a list")
    return item


def _primitive_to_json(type_: Type, value: Value) -> Json:
    encoded = to_bytes(type_, value)  # checks class, range and length
    match type_, value:
        case ((FloatType() | DoubleType()), float()):
            if math.isfinite(value):
                return value if isinstance(type_, DoubleType) else shortest_float32(value)
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case DecimalType(), Decimal():
            return str_of_decimal(value, type_.scale)
        case DateType(), int():
            return civil_time.format_date(value)
        case TimeType(), int():
            return civil_time.format_time(value)
        case TimestampType(), int():
            return civil_time.format_timestamp(value, nanos=type_.nanos, zoned=type_.zoned)
        case UuidType(), _:
            return str(uuid.UUID(bytes=encoded))
        case ((FixedType() | BinaryType()), _):
            return encoded.hex()
        case ((GeometryType() | GeographyType()), _):
            return well_known_text.from_binary(encoded)
        case _:
            return value


def str_of_decimal(value: Decimal, scale: int) -> str:
    """Return the text of a decimal: `scale` digits after the point, or `2E+20` where the scale is
    negative.

    >>> str_of_decimal(Decimal("1E-8"), 8), str_of_decimal(Decimal("2E+20"), -20)
    ('0.00000001', '2E+20')
    """
    unscaled = unscaled_of(value, scale)
    if scale < 0:
        return f"{unscaled}E+{-scale}"
    return f"{decimal_of(unscaled, scale):f}"
