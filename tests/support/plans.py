"""Read plans over tables of the fixture writer, made without planning."""

from __future__ import annotations

import json
from collections.abc import Sequence

from floeberg.protocol.files import DataFile, FileFormat
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.plans import ReadOptions, ReadPlan
from floeberg.protocol.storage import StorageConfig
from floeberg.protocol.tasks import FileScanTask
from tests.support.lake import TableWriter, WrittenFile


def plan_of(
    table: TableWriter, files: Sequence[WrittenFile], options: ReadOptions | None = None
) -> ReadPlan:
    """Return the plan that reads `files` of the table, whole and in order, without deletes."""
    metadata = TableMetadata.parse(json.dumps(table.metadata), "the test's table")
    schema = metadata.schema()
    tasks = (
        FileScanTask(
            DataFile(f.location, FileFormat.PARQUET, f.record_count, f.size_bytes, spec_id=0)
        )
        for f in files
    )
    return ReadPlan(
        metadata=metadata.for_reading(),
        schema_id=schema.schema_id,
        projection=schema,
        tasks=tuple(tasks),
        storage=StorageConfig(),
        options=options or ReadOptions(),
    )
