"""Rows as JSON values: Appendix D's encoding of each value, with struct fields under their names.

Dates and times are ISO 8601, decimals and uuids strings, binary hex, geometries well-known text,
and a map is an object of `keys` and `values`. Appendix D writes struct fields under their ids; here
they have their names, which is what a person asks for. NaN and the infinities, which JSON has no
number for, are the strings `NaN`, `Infinity`, `-Infinity`. A variant is an object of the hex of its
two parts, and what is no geometry in a column of them is hex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from uuid import UUID

import pyarrow as pa

from floeberg.protocol import well_known_text
from floeberg.protocol.arrow import is_geometry
from floeberg.protocol.civil_time import format_date, format_time, format_timestamp
from floeberg.protocol.types import Json
from floeberg.protocol.values import shortest_float32, str_of_decimal


def json_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Json]]:
    """Yield each row as an object from column name to value."""
    names = batch.schema.names
    if not names:
        yield from ({} for _ in range(batch.num_rows))
        return
    columns = [json_values(batch.column(i), field) for i, field in enumerate(batch.schema)]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def json_values(array: Any, field: Any) -> list[Json]:
    """Return the values of a pyarrow array, a column of `field`, as JSON; null is None."""
    # both are Any: which attributes they have depends on their type, which the stubs don't follow
    type_ = array.type
    if pa.types.is_struct(type_):
        return _nulled(array, _structs(array, type_))
    if pa.types.is_map(type_):
        keys = json_values(array.keys, type_.key_field)
        items = json_values(array.items, type_.item_field)
        pairs = ({"keys": keys[a:b], "values": items[a:b]} for a, b in _spans(array))
        return _nulled(array, list(pairs))
    if pa.types.is_list(type_):
        values = json_values(array.values, type_.value_field)
        return _nulled(array, [values[a:b] for a, b in _spans(array)])
    if isinstance(array, pa.ExtensionArray):
        storage = array.storage
        if type_.extension_name == "arrow.uuid":
            return [None if v is None else str(UUID(bytes=v)) for v in storage.to_pylist()]
        return json_values(storage, field)
    # dates and times by their numbers: Python's own reach only from year 1 to 9999
    plain = array.view(_WIDTHS[type_.bit_width]) if pa.types.is_temporal(type_) else array
    encode = _geometry if field is not None and is_geometry(field) else _leaf_encoder(type_)
    if encode is None:
        return list(plain.to_pylist())
    return [None if v is None else encode(v) for v in plain.to_pylist()]


_WIDTHS = {32: pa.int32(), 64: pa.int64()}


def _leaf_encoder(type_: Any) -> Callable[[Any], Json] | None:
    """Return what encodes a value of `type_`; None where JSON has it as it is."""
    if pa.types.is_float32(type_):
        return lambda value: _float(shortest_float32(value))
    if pa.types.is_floating(type_):
        return _float
    if pa.types.is_decimal(type_):
        return lambda value: str_of_decimal(value, type_.scale)
    if pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return bytes.hex
    if pa.types.is_date(type_):
        return format_date
    if pa.types.is_time(type_):
        return format_time
    if pa.types.is_timestamp(type_):
        nanos, zoned = type_.unit == "ns", type_.tz is not None
        return lambda ticks: format_timestamp(ticks, nanos=nanos, zoned=zoned)
    return None


def _float(value: float) -> Json:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _geometry(raw: bytes) -> Json:
    try:
        return well_known_text.from_binary(raw)
    except ValueError:
        return raw.hex()


def _structs(array: Any, type_: Any) -> list[Json]:
    fields = [type_.field(i) for i in range(type_.num_fields)]
    if not fields:
        return [{} for _ in range(len(array))]
    names = [field.name for field in fields]
    children = [json_values(array.field(i), field) for i, field in enumerate(fields)]
    return [dict(zip(names, row, strict=True)) for row in zip(*children, strict=True)]


def _spans(array: Any) -> Iterator[tuple[int, int]]:
    offsets = array.offsets.to_pylist()
    return pairwise(offsets)


def _nulled(array: Any, values: list[Json]) -> list[Json]:
    if array.null_count == 0:
        return values
    return [v if ok else None for v, ok in zip(values, array.is_valid().to_pylist(), strict=True)]
