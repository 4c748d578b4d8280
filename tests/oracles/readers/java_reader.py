"""Read with Iceberg's own generic reader, which knows every type and every kind of delete.

Its records are written to a Parquet file in the JVM, and read back here: no value passes through
py4j one by one.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from tests.oracles.java_scans import JavaScans
from tests.oracles.scans import METADATA_COLUMNS, Scan
from tests.oracles.workshop import Made, Workshop


class NoMetadataColumns(Exception):
    """The generic reader fills no metadata column; it would leave them out."""


class JavaReader:
    name = "java"

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._jvm = workshop.jvm
        self._scans = JavaScans(workshop.jvm)

    def read(self, made: Made, scan: Scan) -> pa.Table:
        if missing := METADATA_COLUMNS.intersection(scan.select or ()):
            raise NoMetadataColumns(", ".join(sorted(missing)))
        iceberg = self._jvm.org.apache.iceberg
        table = self._workshop.java_table_of(made.spark_name)
        planned = self._scans.of_snapshot(table, scan)
        schema = planned.schema()
        builder = iceberg.data.IcebergGenerics.read(table)
        if planned.snapshot() is not None:
            builder = builder.useSnapshot(planned.snapshot().snapshotId())
        if scan.filter is not None:
            builder = builder.where(self._scans.expression(scan.filter))
        else:
            wanted = scan.select and self._scans.list_of(scan.select)
            schema = schema.select(wanted) if wanted else schema
        rows = builder.project(schema).build()
        path = self._workshop.fresh("read")
        appender = iceberg.data.GenericAppenderFactory(schema).newAppender(
            iceberg.Files.localOutput(str(path)), iceberg.FileFormat.PARQUET
        )
        try:
            appender.addAll(rows)
        finally:
            rows.close()
            appender.close()
        if not path.exists():  # there was no row
            return pa.table({c.name(): pa.array([], pa.null()) for c in schema.columns()})
        # one file, read for what it holds and not as a dataset with partitions in its path
        result = pq.ParquetFile(path).read()
        # names that Avro can't hold were changed on the way; a column of unknown isn't stored
        stored = [c.name() for c in schema.columns() if c.type().toString() != "unknown"]
        result = result.rename_columns(stored)
        if scan.filter is not None and scan.select is not None:
            result = result.select(list(dict.fromkeys(n.split(".")[0] for n in scan.select)))
        return result
