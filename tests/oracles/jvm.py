"""Spark with Iceberg's runtime, in one JVM for the whole run.

Its catalog `ice` is a directory, so that whatever stands in `<warehouse>/<namespace>/<name>` with a
`version-hint.text` is a table to it, written by Spark or not.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.oracles.jackson import relocate_jackson

CATALOG = "ice"

_JVM_OPTIONS = "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class NoJava(Exception):
    """There is no Java 17 to run Spark with."""


def start_spark(warehouse: Path, scratch: Path) -> SparkSession:
    """Start a session, in UTC, with 2 GB of memory, that lets its catalog cache nothing."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise NoJava("the oracles need Java 17 on PATH, or in JAVA_HOME")
    os.environ["TZ"] = "UTC"  # pyspark makes Python's datetimes in local time
    time.tzset()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    runtime, *others = _iceberg_jars()
    jars = [runtime, *others, relocate_jackson(runtime, scratch / "jackson.jar")]
    options = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"{_JVM_OPTIONS} -Dderby.system.home={scratch}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        # hundreds of queries over a few rows: compiling each would take longest
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # rows come in by Parquet files that pyarrow wrote, without Spark's note on its calendar
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{CATALOG}.type": "hadoop",
        f"spark.sql.catalog.{CATALOG}.warehouse": str(warehouse),
        f"spark.sql.catalog.{CATALOG}.cache-enabled": "false",
    }
    builder: Any = SparkSession.builder.master("local[2]").appName("floeberg-oracles")
    for key, value in options.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


def _iceberg_jars() -> list[Path]:
    """Return the jars for pyspark's Scala, Iceberg's runtime first."""
    package = importlib.metadata.distribution("snowpark-connect-deps-iceberg")
    found = [
        Path(str(package.locate_file(f)))
        for f in package.files or ()
        if f.suffix == ".jar" and "_2.12-" in f.name
    ]
    return sorted(found, key=lambda path: "iceberg-spark-runtime" not in path.name)
