"""Bring a leaf column from the type in which a file stores it to the type that the table has.

Covers the promotions of schema evolution and the many ways in which writers store one type: other
units, other string layouts, smaller integers. What the spec has no reading for is refused, even
where Arrow would cast it (an integer is never turned into text).
Spec: "Schema Evolution", Appendix A.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from floeberg.worker.arrow import ArrowArray, ArrowType

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class CannotConvert(ValueError):
    """The stored type has no reading as the wanted one, or a value lies outside it."""


def convert(array: ArrowArray, target: ArrowType) -> ArrowArray:
    """Return `array` as type `target`, nulls kept; `target` may be an extension type.

    Raises `CannotConvert`.
    """
    storage = target.storage_type if isinstance(target, pa.BaseExtensionType) else target
    plain = decode_layout(array)
    try:
        if plain.type != storage:
            plain = _convert_plain(plain, storage)
        elif pat.is_string(storage) or pat.is_decimal(storage):
            # pyarrow's Parquet reader takes any bytes for text and any integer for a decimal;
            # consumers of Arrow rely on UTF-8 and on the precision
            plain.validate(full=True)
    except pa.ArrowInvalid as exc:
        raise CannotConvert(str(exc)) from exc
    return plain if storage is target else pa.ExtensionArray.from_storage(target, plain)


def decode_layout(array: ArrowArray) -> ArrowArray:
    """Return `array` without dictionary, run-end or extension type around its values.

    >>> decode_layout(pa.array(["a", "a"]).dictionary_encode()).type
    DataType(string)
    """
    if isinstance(array, pa.ExtensionArray):
        return decode_layout(array.storage)
    if isinstance(array, pa.DictionaryArray):
        return decode_layout(array.dictionary_decode())
    if isinstance(array, pa.RunEndEncodedArray):
        return decode_layout(pc.call_function("run_end_decode", [array]))
    return array


def _convert_plain(array: ArrowArray, target: ArrowType) -> ArrowArray:
    source = array.type
    if pat.is_null(source) or pat.is_null(target):
        return pa.nulls(len(array), target)
    if pat.is_timestamp(target):
        return _to_timestamp(array, target)
    if pat.is_time(target) and pat.is_time(source):
        ticks = array.cast(pa.int32() if pat.is_time32(source) else pa.int64()).cast(pa.int64())
        return _rescale(ticks, source.unit, target.unit).view(target)
    if not _is_readable_as(source, target):
        raise CannotConvert(f"{source} cannot be read as {target}")
    return array.cast(target)


def _is_readable_as(source: ArrowType, target: ArrowType) -> bool:
    """Say whether a checked Arrow cast from `source` to `target` is one that Iceberg means."""
    if pat.is_integer(target):
        return pat.is_integer(source)
    if pat.is_floating(target):
        return pat.is_floating(source) and source.bit_width <= target.bit_width
    if pat.is_decimal(target):
        return pat.is_decimal(source) and source.scale == target.scale
    if pat.is_date(target):
        return pat.is_date(source) or pat.is_int32(source)
    if pat.is_time(target):
        return pat.is_int64(source)  # ORC has no type for times
    if pat.is_string(target):
        return _is_text(source) or _is_bytes(source)
    if pat.is_binary(target):
        return _is_text(source) or _is_bytes(source) or pat.is_fixed_size_binary(source)
    if pat.is_fixed_size_binary(target):
        return _is_bytes(source)
    return False


def _is_text(type_: ArrowType) -> bool:
    return pat.is_string(type_) or pat.is_large_string(type_) or pat.is_string_view(type_)


def _is_bytes(type_: ArrowType) -> bool:
    return pat.is_binary(type_) or pat.is_large_binary(type_) or pat.is_binary_view(type_)


def _to_timestamp(array: ArrowArray, target: ArrowType) -> ArrowArray:
    source = array.type
    if pat.is_date(source) and target.tz is None:
        return array.cast(target)  # midnight; out of range is an error
    if not pat.is_timestamp(source):
        raise CannotConvert(f"{source} cannot be read as {target}")
    # with or without a zone, the integer is a count since the epoch; only the label differs
    return _rescale(array.view(pa.int64()), source.unit, target.unit).view(target)


def _rescale(ticks: ArrowArray, source_unit: str, target_unit: str) -> ArrowArray:
    """Return int64 `ticks` counted in another unit, rounded down where it is coarser.

    Arrow's own cast rounds towards zero, which puts times before 1970 one tick late.
    """
    source, target = _PER_SECOND[source_unit], _PER_SECOND[target_unit]
    if source <= target:
        return ticks if source == target else pc.multiply_checked(ticks, target // source)
    divisor = source // target
    quotient = pc.divide(ticks, divisor)
    is_rounded_up = pc.less(ticks, pc.multiply(quotient, divisor))
    return pc.subtract(quotient, is_rounded_up.cast(pa.int64()))
