"""Data and delete files: rows written as Parquet, Avro or ORC, and the statistics that go into
manifests.

Spec: "Field-level Metrics and Statistics", Appendix A.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.orc as orc
import pyarrow.parquet as pq

from tests.support.lake.avro import avro_value, record_schema, to_avro
from tests.support.lake.manifests import Metrics
from tests.support.lake.schemas import Json, arrow_schema, children
from tests.support.lake.values import (
    Plain,
    arrow_array,
    lower_bound,
    plain,
    to_bytes,
    upper_bound,
)

pc: Any = pyarrow.compute  # the stubs lack overloads for what is used here

Rows = Sequence[Mapping[str, Any]] | pa.Table | pa.RecordBatch
"""Rows by column name: Python values (dates, `Decimal`, `UUID`, dicts for structs), or Arrow."""


@dataclass(frozen=True)
class FileLayout:
    """How a file is written.

    - `format`: parquet, avro or orc
    - `field_ids`: whether the file stores them (ORC never does: pyarrow writes no attributes)
    - `metrics`: `none`, `counts`, `truncate(n)` with n characters a bound, or `full`, which has 16
    - `omit`: top-level columns that the file leaves out
    - `parquet`: more arguments of `pyarrow.parquet.write_table`
    """

    format: str = "parquet"
    codec: str = "zstd"
    row_group_size: int | None = None
    field_ids: bool = True
    metrics: str = "full"
    split_offsets: bool = True
    omit: Sequence[str] = ()
    parquet: Mapping[str, Any] | None = None


def rows_to_arrow(schema: Json, rows: Rows) -> pa.Table:
    """Return rows as a table with the schema's stored columns; a column that rows lack is null."""
    target = arrow_schema(schema)
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        columns: list[Any] = []
        for f in target:
            if f.name in rows.column_names:
                columns.append(rows[f.name].cast(f.type))
            else:
                columns.append(pa.nulls(rows.num_rows, f.type))
        return pa.Table.from_arrays(columns, schema=target)
    arrays = [
        arrow_array(f["type"], [plain(f["type"], row.get(f["name"])) for row in rows])
        for f in schema["fields"]
        if f["type"] != "unknown"
    ]
    return pa.Table.from_arrays(arrays, schema=target)


def rows_to_plain(schema: Json, rows: Rows) -> list[dict[str, Plain]]:
    """Return rows as dicts of plain values."""
    if isinstance(rows, pa.Table | pa.RecordBatch):
        rows = rows.to_pylist()
    return [
        {f["name"]: plain(f["type"], row.get(f["name"])) for f in schema["fields"]} for row in rows
    ]


def write_rows(
    path: Path, schema: Json, rows: Rows, layout: FileLayout
) -> tuple[int, Metrics, tuple[int, ...]]:
    """Write one file; return its number of rows, its metrics and its split offsets."""
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = {
        **schema,
        "fields": [f for f in schema["fields"] if f["name"] not in layout.omit],
    }
    if layout.format == "avro":
        plain_rows = rows_to_plain(schema, rows)
        struct = {"type": "struct", "fields": schema["fields"]}
        record = record_schema(schema["fields"], "table")
        if not layout.field_ids:
            record = _without_ids(record)
        values = [avro_value(struct, row) for row in plain_rows]
        path.write_bytes(to_avro(record, values, codec="deflate", metadata={}))
        return len(plain_rows), Metrics(), ()
    table = rows_to_arrow(schema, rows)
    if not layout.field_ids:
        table = pa.Table.from_arrays(table.columns, schema=arrow_schema(schema, with_ids=False))
    if layout.format == "orc":
        orc.write_table(table, path, compression="ZSTD")
        return table.num_rows, metrics_of(table, schema, layout.metrics), ()
    return write_parquet(path, table, schema, layout)


def write_parquet(
    path: Path, table: pa.Table, schema: Json, layout: FileLayout
) -> tuple[int, Metrics, tuple[int, ...]]:
    """Write an Arrow table as it is; `schema` gives the ids of its columns in the metrics."""
    path.parent.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {
        # the whole table in one row group unless said otherwise
        "row_group_size": layout.row_group_size or max(table.num_rows, 1),
        "compression": layout.codec,
        "store_schema": False,
        **(layout.parquet or {}),
    }
    pq.write_table(table, path, **options)
    metadata = pq.read_metadata(path)
    metrics = metrics_of(table, schema, layout.metrics)
    if layout.metrics != "none":
        metrics = Metrics(
            _column_sizes(metadata, schema),
            metrics.value_counts,
            metrics.null_value_counts,
            metrics.nan_value_counts,
            metrics.lower_bounds,
            metrics.upper_bounds,
        )
    offsets = []
    for group in range(metadata.num_row_groups):
        if metadata.num_columns:
            first = metadata.row_group(group).column(0)
            offsets.append(first.dictionary_page_offset or first.data_page_offset)
    return table.num_rows, metrics, tuple(offsets) if layout.split_offsets else ()


def _without_ids(raw: Json) -> Json:
    if isinstance(raw, list):
        return [_without_ids(x) for x in raw]
    if isinstance(raw, dict):
        return {k: _without_ids(v) for k, v in raw.items() if not k.endswith("-id")}
    return raw


def _column_sizes(metadata: pq.FileMetaData, schema: Json) -> dict[int, int]:
    ids = {f["name"]: f["id"] for f in schema["fields"] if isinstance(f["type"], str)}
    sizes: dict[int, int] = {}
    for group in range(metadata.num_row_groups):
        for i in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(i)
            if (field_id := ids.get(chunk.path_in_schema)) is not None:
                sizes[field_id] = sizes.get(field_id, 0) + chunk.total_compressed_size
    return sizes


# --- metrics --------------------------------------------------------------------------------------


def metrics_of(table: pa.Table, schema: Json, mode: str = "full") -> Metrics:
    """Return counts and bounds of the primitive columns, those inside structs included.

    Columns below lists and maps have no metrics, nor have variant and geo columns.
    """
    if mode == "none":
        return Metrics()
    width = 16
    if mode.startswith("truncate"):
        width = int(mode.removeprefix("truncate(").removesuffix(")"))
    counts: dict[int, int] = {}
    nulls: dict[int, int] = {}
    nans: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for field, values in _leaves(schema["fields"], table):
        field_id, type_ = field["id"], field["type"]
        counts[field_id] = len(values)
        nulls[field_id] = values.null_count
        if type_ in ("float", "double"):
            is_nan = pc.is_nan(values).fill_null(False)
            nans[field_id] = pc.sum(is_nan).as_py() or 0
            values = values.filter(pc.invert(is_nan))
        if mode == "counts" or values.null_count == len(values) or type_.startswith("geo"):
            continue
        low, high = _extremes(type_, values)
        lower[field_id] = to_bytes(type_, low[:width] if isinstance(low, str | bytes) else low)
        if (rounded := _rounded_up(high, width)) is not None:
            upper[field_id] = to_bytes(type_, rounded)
    return Metrics({}, counts, nulls, nans, lower, upper)


def _leaves(fields: Sequence[Json], table: pa.Table) -> Iterator[tuple[Json, Any]]:
    for field in fields:
        if field["name"] in table.column_names:
            yield from _leaves_of(field, table[field["name"]])


def _leaves_of(field: Json, values: Any) -> Iterator[tuple[Json, Any]]:
    type_ = field["type"]
    if isinstance(type_, str):
        if type_ not in ("variant", "unknown"):
            yield field, values
    elif type_["type"] == "struct":
        stored = {values.type.field(i).name for i in range(values.type.num_fields)}
        for child in children(type_):
            if child["name"] in stored:
                yield from _leaves_of(child, pc.struct_field(values, child["name"]))


def _extremes(type_: Json, values: Any) -> tuple[Plain, Plain]:
    if type_ == "uuid":
        values = pa.chunked_array([c.storage for c in values.chunks])
    elif type_ in ("date", "time") or type_.startswith("timestamp"):
        values = values.cast(pa.int32() if type_ == "date" else pa.int64())
    extremes = pc.min_max(values).as_py()
    return lower_bound([extremes["min"]]), upper_bound([extremes["max"]])


def _rounded_up(value: Plain, width: int) -> Plain:
    """Return text or bytes of at most `width` that is no less than `value`, or None."""
    if not isinstance(value, str | bytes) or len(value) <= width:
        return value
    if isinstance(value, bytes):
        for end in range(width, 0, -1):
            if value[end - 1] < 0xFF:
                return value[: end - 1] + bytes([value[end - 1] + 1])
        return None
    for end in range(width, 0, -1):
        following = ord(value[end - 1]) + 1
        if following == 0xD800:
            following = 0xE000  # surrogates aren't characters
        if following <= 0x10FFFF:
            return value[: end - 1] + chr(following)
    return None
