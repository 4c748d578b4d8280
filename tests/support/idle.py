"""What tests of idle readers share: a file whose decoding takes memory, and clients that buffer
little."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from floeberg.protocol.files import DataFile, FileFormat
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.storage import StorageConfig
from floeberg.protocol.tasks import FileScanTask
from tests.support.lake import TableWriter, schema

SMALL_WINDOW: list[tuple[str, int | str]] = [
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 1 << 20),
    ("grpc.use_local_subchannel_pool", 1),
]
"""Options of a client that buffers little: left to itself, gRPC takes tens of MB for a stream that
nobody reads."""

_COLUMNS = 16


def write_doubles(file: Path, rows: int) -> None:
    """Write a Parquet file of one row group, 128 bytes a row, that doesn't compress."""
    rng = np.random.default_rng(1)
    columns = {f"n{i}": pa.array(rng.random(rows)) for i in range(_COLUMNS)}
    stored = pa.schema(
        [
            pa.field(n, pa.float64(), metadata={"PARQUET:field_id": str(i + 1)})
            for i, n in enumerate(columns)
        ]
    )
    table = pa.table(columns, schema=stored)
    pq.write_table(table, file, row_group_size=rows, compression="zstd")


def plan_of_doubles(
    folder: Path,
    locations: Sequence[str],
    rows: int,
    size_bytes: int,
    properties: Mapping[str, str] | None = None,
) -> ReadPlan:
    """Return the plan of a scan of whole files, each such a one of `size_bytes`."""
    table = TableWriter.create(folder / "t", schema({f"n{i}": "double" for i in range(_COLUMNS)}))
    metadata = TableMetadata.parse(json.dumps(table.metadata), "the table of doubles")
    files = (
        DataFile(location, FileFormat.PARQUET, rows, size_bytes, spec_id=0)
        for location in locations
    )
    return ReadPlan(
        metadata=metadata.for_reading(),
        schema_id=metadata.schema().schema_id,
        projection=metadata.schema(),
        tasks=tuple(FileScanTask(file) for file in files),
        storage=StorageConfig(properties or {}),
    )
