"""Tables of Iceberg's Java API from a metadata file, wherever the files that it names are now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from floeberg.process.storage.locations import rebase_location


class JavaTables:
    """Opens tables in the JVM of a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        ensure_callback_server_started(spark.sparkContext._gateway)
        self._io = self._jvm.org.apache.iceberg.hadoop.HadoopFileIO(
            self._jvm.org.apache.hadoop.conf.Configuration()
        )

    def open(self, metadata_file: str, rebase: Mapping[str, str] | None = None) -> Any:
        """Return the table; `rebase` replaces prefixes of the locations that it reads."""
        io = _RebasedIO(self._jvm, self._io, rebase) if rebase else self._io
        iceberg = self._jvm.org.apache.iceberg
        operations = iceberg.StaticTableOperations(metadata_file, io)
        return iceberg.BaseTable(operations, metadata_file)


class _RebasedIO:
    """A `FileIO` for the JVM, which calls back for it. Only reads."""

    def __init__(self, jvm: Any, inner: Any, rebase: Mapping[str, str]) -> None:
        self._jvm = jvm
        self._inner = inner
        self._rebase = rebase

    def newInputFile(self, named: Any, *_length: int) -> Any:  # noqa: N802 - Java's name
        location = named if isinstance(named, str) else _location(named)
        return self._inner.newInputFile(rebase_location(location, self._rebase))

    def properties(self) -> Any:
        return self._jvm.java.util.HashMap()

    def close(self) -> None:
        """Hold nothing open."""

    def toString(self) -> str:  # noqa: N802 - Java's name
        return "rebased"

    class Java:
        implements = ("org.apache.iceberg.io.FileIO",)


def _location(file: Any) -> str:
    # a manifest has a path, a manifest list a location
    return str(file.path() if "path" in dir(file) else file.location())
