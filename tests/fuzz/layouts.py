"""Random ways to write a file."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.fuzz.values import Times
from tests.support.lake import FileLayout
from tests.support.lake.schemas import walk
from tests.support.plain import Json

_OF_FIXED_WIDTH = ("int", "long", "float", "double", "date", "time", "timestamp", "unknown")
_NOT_IN_ORC = ("time", "uuid", "fixed", "variant", "geometry", "geography")


def layout_of(rng: Random, schema: Json, times: Times, *, may_lack_ids: bool) -> FileLayout:
    """Return a layout for rows of a schema; it stores field ids unless it `may_lack_ids`."""
    types = [f["type"] for f in walk({**schema, "type": "struct"}) if isinstance(f["type"], str)]
    metrics = rng.choice(
        ("full", "full", "full", "none", "counts", "truncate(1)", "truncate(2)", "truncate(100)")
    )
    field_ids = not may_lack_ids or rng.random() < 0.5
    roll = rng.random()
    is_far = times.reach == "far"  # beyond what decoders of these formats hold
    if roll < 0.1 and not is_far:
        return FileLayout(format="avro", field_ids=field_ids)
    if (
        roll < 0.5
        and may_lack_ids
        and not is_far
        and not any(t.startswith(_NOT_IN_ORC) for t in types)
    ):
        return FileLayout(format="orc", metrics=metrics, field_ids=False)
    return FileLayout(
        codec=rng.choice(("zstd", "snappy", "gzip", "lz4", "brotli", "none")),
        row_group_size=rng.choice((None, None, 1, 2, 3, 5)),
        field_ids=field_ids,
        metrics=metrics,
        split_offsets=rng.random() < 0.8,
        parquet=_parquet(rng, types, times),
    )


def _parquet(rng: Random, types: list[str], times: Times) -> dict[str, Any]:
    options: dict[str, Any] = {}
    choices = {
        "use_dictionary": False,
        "max_rows_per_page": 1,
        "data_page_version": "2.0",
        "write_statistics": False,
        "store_decimal_as_integer": True,
        "write_page_index": True,
        "write_page_checksum": True,
        "use_compliant_nested_type": False,
    }
    for name, value in choices.items():
        if rng.random() < 0.2:
            options[name] = value
    if rng.random() < 0.2 and all(t in _OF_FIXED_WIDTH for t in types):
        options |= {"use_byte_stream_split": True, "use_dictionary": False}
        return options
    if times.reach == "far":
        return options
    if times.whole_millis and rng.random() < 0.3:
        return options | {"coerce_timestamps": "ms"}
    # INT96 holds nanoseconds, but the plain reader asks for microseconds
    if not any(t.endswith("_ns") for t in types) and rng.random() < 0.1:
        options["use_deprecated_int96_timestamps"] = True
    return options
