"""The oracles, started once: tables are made when they are first asked for, and read once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from floeberg.embedded import TableScan, open_table
from tests.oracles.jvm import start_spark
from tests.oracles.readers import Reader
from tests.oracles.readers.duckdb_reader import DuckDbReader
from tests.oracles.readers.java_reader import JavaReader
from tests.oracles.readers.pyiceberg_reader import PyIcebergReader
from tests.oracles.readers.spark_reader import SparkReader
from tests.oracles.scans import Scan, to_json
from tests.oracles.tables import TABLES
from tests.oracles.workshop import Made, Workshop
from tests.support.rows import assert_same_rows

ORACLES = ("spark", "java", "pyiceberg", "duckdb")


class Oracles:
    """Every peer that reads, and what they and floeberg read."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self._made: dict[str, Made | Exception] = {}
        self._ours: dict[tuple[str, str], pa.Table] = {}
        self._duckdb = DuckDbReader()
        readers: list[Reader] = [
            SparkReader(workshop.spark),
            JavaReader(workshop),
            PyIcebergReader(),
            self._duckdb,
        ]
        self.readers = {reader.name: reader for reader in readers}
        assert tuple(self.readers) == ORACLES

    def close(self) -> None:
        self._duckdb.close()

    def table(self, title: str) -> Made:
        """Return the table of that title, made at the first call."""
        if title not in self._made:
            namespace, name = title.split(".")
            shop = replace(self.workshop, namespace=namespace, name=name)
            try:
                scans = TABLES[title](shop)
                self._made[title] = Made(namespace, name, shop.directory, tuple(scans))
            except Exception as failure:  # what failed once is not tried for every oracle
                self._made[title] = failure
        found = self._made[title]
        if isinstance(found, Exception):
            raise found
        return found

    def ours(self, made: Made, scan: Scan) -> pa.Table:
        """Return what floeberg reads."""
        key = (made.title, repr(scan))
        if key not in self._ours:
            self._ours[key] = _read(made, scan)
        return self._ours[key]


def asked_of_floeberg(made: Made, scan: Scan) -> TableScan:
    """Return the scan as floeberg is asked for it."""
    asked = open_table(str(made.directory)).scan()
    if scan.filter is not None:
        asked = asked.filter(to_json(scan.filter))
    if scan.select is not None:
        asked = asked.select(scan.select)
    if scan.snapshot_id is not None:
        asked = asked.use_snapshot(scan.snapshot_id)
    if scan.ref is not None:
        asked = asked.use_ref(scan.ref)
    if scan.as_of_ms is not None:
        asked = asked.as_of(scan.as_of_ms)
    return asked


def _read(made: Made, scan: Scan) -> pa.Table:
    asked = asked_of_floeberg(made, scan)
    table = asked.to_table()
    assert asked.count() == table.num_rows, "count() is not the number of rows"
    assert_same_rows(asked.with_split_size(2000).to_table(), table)
    return table


@contextmanager
def running_oracles(directory: Path) -> Iterator[Oracles]:
    """Start the JVM and the other peers; stop the JVM at the end."""
    warehouse, scratch = directory / "warehouse", directory / "scratch"
    warehouse.mkdir()
    scratch.mkdir()
    spark = start_spark(warehouse, scratch)
    oracles = Oracles(Workshop(spark, warehouse, scratch))
    try:
        yield oracles
    finally:
        oracles.close()
        spark.stop()
