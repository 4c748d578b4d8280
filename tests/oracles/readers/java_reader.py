"""Read with Iceberg's own generic reader, which knows every type and every kind of delete.

Its records are written to a Parquet file in the JVM, and read back here: no value passes through
py4j one by one.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.oracles.scans import METADATA_COLUMNS, Filter, Scan
from tests.oracles.workshop import Made, Workshop

_NAMES = {
    "=": "equal",
    "!=": "notEqual",
    "<": "lessThan",
    "<=": "lessThanOrEqual",
    ">": "greaterThan",
    ">=": "greaterThanOrEqual",
    "in": "in",
    "not-in": "notIn",
    "is-null": "isNull",
    "not-null": "notNull",
    "is-nan": "isNaN",
    "not-nan": "notNaN",
    "starts-with": "startsWith",
    "not-starts-with": "notStartsWith",
    "and": "and",
    "or": "or",
    "not": "not",
}


class NoMetadataColumns(Exception):
    """The generic reader fills no metadata column; it would leave them out."""


class JavaReader:
    name = "java"

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._jvm = workshop.jvm

    def read(self, made: Made, scan: Scan) -> pa.Table:
        if missing := METADATA_COLUMNS.intersection(scan.select or ()):
            raise NoMetadataColumns(", ".join(sorted(missing)))
        iceberg = self._jvm.org.apache.iceberg
        table = iceberg.spark.Spark3Util.loadIcebergTable(
            self._workshop.spark._jsparkSession, made.spark_name
        )
        planned = table.newScan()
        if scan.snapshot_id is not None:
            planned = planned.useSnapshot(scan.snapshot_id)
        elif scan.as_of_ms is not None:
            planned = planned.asOfTime(scan.as_of_ms)
        elif scan.ref is not None:
            planned = planned.useRef(scan.ref)
        schema = planned.schema()
        builder = iceberg.data.IcebergGenerics.read(table)
        if planned.snapshot() is not None:
            builder = builder.useSnapshot(planned.snapshot().snapshotId())
        if scan.filter is not None:
            builder = builder.where(self._expression(scan.filter))
        else:
            wanted = scan.select and self._list(scan.select)
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

    def _expression(self, filter_: Filter) -> Any:
        operation, *arguments = filter_
        make = getattr(self._jvm.org.apache.iceberg.expressions.Expressions, _NAMES[operation])
        if operation in ("and", "or"):
            first, *others = map(self._expression, arguments)
            for other in others:
                first = make(first, other)
            return first
        if operation == "not":
            return make(self._expression(arguments[0]))
        return make(*(self._literal(a) for a in arguments))

    def _literal(self, value: Any) -> Any:
        match value:
            case list():
                return self._list([self._literal(v) for v in value])
            case dt.datetime() | dt.date() | dt.time():
                return value.isoformat()
            case uuid.UUID():
                return str(value)
            case bytes():
                return self._jvm.java.nio.ByteBuffer.wrap(value)
            case _:
                return value

    def _list(self, values: Any) -> Any:
        out = self._jvm.java.util.ArrayList()
        for value in values:
            out.add(value)
        return out
