"""Read with Spark's SQL, filters pushed down as Spark does."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.oracles.scans import SPARK, Scan
from tests.oracles.workshop import Made


class SparkReader:
    name = "spark"

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def read(self, made: Made, scan: Scan) -> pa.Table:
        frame: Any = self._session.table(made.spark_name + self._selector(made, scan))
        if scan.filter is not None:
            frame = frame.filter(SPARK.where(scan.filter))
        if scan.select is not None:
            columns = dict.fromkeys(name.split(".")[0] for name in scan.select)
            frame = frame.select(*(f"`{column}`" for column in columns))
        # pyspark 3.5 has no public name for this yet; 4.0 calls it toArrow
        batches: list[pa.RecordBatch] = frame._collect_as_arrow()
        if not batches:
            return pa.table({name: pa.array([], pa.null()) for name in frame.columns})
        return pa.Table.from_batches(batches)

    def _selector(self, made: Made, scan: Scan) -> str:
        """Return the part of a name that chooses a snapshot, and with it the right schema."""
        if scan.snapshot_id is not None:
            return f".snapshot_id_{scan.snapshot_id}"
        if scan.as_of_ms is not None:
            return f".at_timestamp_{scan.as_of_ms}"
        if scan.ref is None:
            return ""
        rows = self._session.table(f"{made.spark_name}.refs").filter(f"name = '{scan.ref}'")
        return f".{str(rows.collect()[0]['type']).lower()}_{scan.ref}"
