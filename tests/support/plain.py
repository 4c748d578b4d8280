"""Values as plain Python, in Iceberg's units, so that rows from any source compare by value.

date: days. time: microseconds. timestamp: micro- or nanoseconds, by its type. uuid, fixed, binary:
bytes. decimal: `Decimal`. struct: dict by name. list: list. map: list of pairs. null: None. Nothing
here comes from floeberg.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
import uuid
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Context, Decimal
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa

Json: TypeAlias = Any
"""JSON as `json.loads` returns it."""

Plain: TypeAlias = Any
"""A value as the module's docstring says."""

Row: TypeAlias = dict[str, Plain]

PER_SECOND = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_WIDE = Context(prec=80)


def unit_of(type_: Json) -> str:
    """Return the unit in which values of a time or timestamp type count."""
    return "ns" if str(type_).endswith("_ns") else "us"


def decimal_scale(type_: Json) -> int | None:
    match = (
        re.fullmatch(r"decimal\(\s*\d+\s*,\s*(\d+)\s*\)", type_) if isinstance(type_, str) else None
    )
    return int(match[1]) if match else None


# --- Arrow ----------------------------------------------------------------------------------------


def arrow_values(array: Any) -> list[Plain]:
    """Return the values of an Arrow array; times stay in the array's own unit.

    A struct becomes a tuple of its fields' values in order, since its names may repeat.
    """
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in arrow_values(chunk)]
    type_ = array.type
    if isinstance(array, pa.ExtensionArray):
        return arrow_values(array.storage)
    if pa.types.is_dictionary(type_):
        return arrow_values(array.dictionary_decode())
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(type_):
        fields = [arrow_values(array.field(i)) for i in range(type_.num_fields)]
        return [tuple(f[i] for f in fields) if ok else None for i, ok in enumerate(valid)]
    if pa.types.is_map(type_):
        entries = list(zip(arrow_values(array.keys), arrow_values(array.items), strict=True))
        return _slices(array, entries, valid)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return _slices(array, arrow_values(array.values), valid)
    if pa.types.is_date32(type_):
        return list(array.view(pa.int32()).to_pylist())
    if pa.types.is_timestamp(type_) or pa.types.is_time(type_):
        return list(array.view(pa.int32() if type_.bit_width == 32 else pa.int64()).to_pylist())
    return list(array.to_pylist())


def _slices(array: Any, items: Sequence[Plain], valid: Sequence[bool]) -> list[Plain]:
    spans = pairwise(array.offsets.to_pylist())
    return [list(items[a:b]) if ok else None for (a, b), ok in zip(spans, valid, strict=True)]


def plain_rows(table: pa.Table) -> list[Row]:
    """Return the rows of a result, whose Arrow types say what its values are."""
    columns = [
        [_named(f.type, v) for v in arrow_values(table.column(i))]
        for i, f in enumerate(table.schema)
    ]
    if not columns:
        return [{} for _ in range(table.num_rows)]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _named(type_: Any, value: Plain) -> Plain:
    if value is None:
        return None
    if isinstance(type_, pa.BaseExtensionType):
        return _named(type_.storage_type, value)
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return {f.name: _named(f.type, v) for f, v in zip(fields, value, strict=True)}
    if pa.types.is_map(type_):
        return [(_named(type_.key_type, k), _named(type_.item_type, v)) for k, v in value]
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return [_named(type_.value_type, v) for v in value]
    return value


# --- comparing ------------------------------------------------------------------------------------


def multiset(rows: Iterable[Mapping[str, Plain]]) -> Counter[Hashable]:
    """Return how often each row occurs. Floats are equal bit by bit, except that every NaN is the
    same.

    >>> multiset([{"m": [(1, "a"), (2, "b")]}]) == multiset([{"m": [(2, "b"), (1, "a")]}])
    True
    >>> multiset([{"f": 0.0}]) == multiset([{"f": -0.0}])
    False
    """
    return Counter(hashable(dict(row)) for row in rows)


def hashable(value: Plain) -> Hashable:
    """Return a form of a plain value that compares by value; a map's entries have no order."""
    match value:
        case float():
            return "NaN" if value != value else struct.pack("<d", value)
        case dict():
            return frozenset((k, hashable(v)) for k, v in value.items())
        case list() if value and all(isinstance(v, tuple) for v in value):
            return frozenset(Counter((hashable(k), hashable(v)) for k, v in value).items())
        case list():
            return tuple(hashable(v) for v in value)
        case bytearray():
            return bytes(value)
        case _:
            return value  # type: ignore[no-any-return]  # what is left is hashable


# --- from Python and JSON -------------------------------------------------------------------------


def scalar(value: Any) -> Plain:
    """Return what fastavro makes of a value with a logical type as a plain value: microseconds,
    days, bytes.
    """
    match value:
        case dt.datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return (aware - _EPOCH) // dt.timedelta(microseconds=1)
        case dt.date():
            return (value - _EPOCH.date()).days
        case dt.time():
            return (
                value.hour * 3600 + value.minute * 60 + value.second
            ) * 10**6 + value.microsecond
        case uuid.UUID():
            return value.bytes
        case _:
            return value


def from_json(type_: Json, raw: Json) -> Plain:
    """Return Appendix D's JSON single value of a primitive type as a plain value.

    >>> from_json("timestamp_ns", "1970-01-01T00:00:01.000000002")
    1000000002
    """
    if raw is None:
        return None
    if (scale := decimal_scale(type_)) is not None:
        return Decimal(str(raw)).quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    match type_:
        case "float":
            return struct.unpack("<f", struct.pack("<f", float(raw)))[0]
        case "double":
            return float(raw)
        case "date":
            return scalar(dt.date.fromisoformat(raw))
        case "time":
            return scalar(dt.time.fromisoformat(raw))
        case "uuid":
            return uuid.UUID(raw).bytes
        case "timestamp" | "timestamptz":
            return scalar(dt.datetime.fromisoformat(raw))
        case "timestamp_ns" | "timestamptz_ns":
            digits = m[1] if (m := re.search(r"\.(\d+)", raw)) else ""
            whole = dt.datetime.fromisoformat(raw.replace(f".{digits}", "") if digits else raw)
            return scalar(whole) * 1000 + int(digits.ljust(9, "0"))
        case _ if isinstance(raw, str) and type_.startswith(("binary", "fixed")):
            return bytes.fromhex(raw)
        case _:
            return raw


def promoted(type_: Json, unit: str | None, value: Plain) -> Plain:
    """Return a value that a file stored under an earlier or coarser type as one of `type_`.

    `unit` is the stored unit of a time: s, ms, us, ns, or day; None for other values.
    """
    if value is None or type_ == "unknown":
        return None
    if (scale := decimal_scale(type_)) is not None:
        return Decimal(value).quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    if type_ == "time" or type_.startswith("timestamp"):
        wanted = PER_SECOND[unit_of(type_)]
        if unit == "day":
            return value * 86400 * wanted
        stored = PER_SECOND[unit or unit_of(type_)]
        return value * wanted // stored
    match value:
        case int() if type_ in ("float", "double"):
            return float(value)
        case bytes() if type_ == "string":
            return value.decode()
        case str() if type_ in ("binary", "uuid") or type_.startswith("fixed"):
            return value.encode()
        case _:
            return value
