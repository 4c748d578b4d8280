"""Rows as JSON values: Appendix D's encoding of each value, with struct fields under their names.

Dates and times are ISO 8601, decimals and uuids strings, binary hex, and a map is an object of
`keys` and `values`. Appendix D writes struct fields under their ids; here they have their names,
which is what a person asks for. NaN and the infinities, which JSON has no number for, are the
strings `NaN`, `Infinity`, `-Infinity`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pyarrow as pa

from floeberg.protocol.types import Json

_EPOCH_DAY = date(1970, 1, 1)
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def json_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Json]]:
    """Yield each row as an object from column name to value."""
    names = batch.schema.names
    columns = [json_values(batch.column(i)) for i in range(batch.num_columns)]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def json_values(array: Any) -> list[Json]:
    """Return the values of a pyarrow array as JSON; null is None."""
    # the array is Any: which attributes it has depends on its type, which the stubs don't follow
    type_ = array.type
    if pa.types.is_struct(type_):
        return _structs(array, type_)
    if pa.types.is_map(type_):
        keys, items = json_values(array.keys), json_values(array.items)
        pairs = ({"keys": keys[a:b], "values": items[a:b]} for a, b in _spans(array))
        return _nulled(array, list(pairs))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        values = json_values(array.values)
        return _nulled(array, [values[a:b] for a, b in _spans(array)])
    if isinstance(array, pa.ExtensionArray):
        storage = array.storage
        if type_.extension_name == "arrow.uuid":
            return [None if v is None else str(UUID(bytes=v)) for v in storage.to_pylist()]
        return json_values(storage)
    encode = _leaf_encoder(type_)
    plain = array.view(_WIDTHS[type_.bit_width]) if pa.types.is_temporal(type_) else array
    return [None if v is None else encode(v) for v in plain.to_pylist()]


_WIDTHS = {32: pa.int32(), 64: pa.int64()}


def _leaf_encoder(type_: Any) -> Callable[[Any], Json]:
    if pa.types.is_floating(type_):
        return _float
    if pa.types.is_decimal(type_):
        return str
    if pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return bytes.hex
    if pa.types.is_date32(type_):
        return lambda days: (_EPOCH_DAY + timedelta(days=days)).isoformat()
    if pa.types.is_time(type_):
        return lambda micros: _clock(micros * 1000, digits=6)
    if pa.types.is_timestamp(type_):
        factor, digits = (1, 9) if type_.unit == "ns" else (1000, 6)
        zone = "+00:00" if type_.tz is not None else ""
        return lambda ticks: _timestamp(ticks * factor, digits) + zone
    return lambda value: value


def _float(value: float) -> Json:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _timestamp(nanos: int, digits: int) -> str:
    days, rest = divmod(nanos, 86_400 * 10**9)
    return f"{(_EPOCH_DAY + timedelta(days=days)).isoformat()}T{_clock(rest, digits)}"


def _clock(nanos: int, digits: int) -> str:
    seconds, fraction = divmod(nanos, 10**9)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction // 10 ** (9 - digits):0{digits}}"


def _structs(array: Any, type_: Any) -> list[Json]:
    names = [type_.field(i).name for i in range(type_.num_fields)]
    if not names:
        return _nulled(array, [{} for _ in range(len(array))])
    children = [json_values(array.field(i)) for i in range(type_.num_fields)]
    return _nulled(
        array, [dict(zip(names, row, strict=True)) for row in zip(*children, strict=True)]
    )


def _spans(array: Any) -> Iterator[tuple[int, int]]:
    offsets = array.offsets.to_pylist()
    return pairwise(offsets)


def _nulled(array: Any, values: list[Json]) -> list[Json]:
    if array.null_count == 0:
        return values
    return [v if ok else None for v, ok in zip(values, array.is_valid().to_pylist(), strict=True)]
