"""Where the tables are made: one warehouse directory that every engine can read.

A table stands in `<warehouse>/<namespace>/<name>`, the namespace saying who wrote it, in the layout
of tables in a file system (`v3.metadata.json`, `version-hint.text`): Spark finds it by name.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.oracles.jvm import CATALOG
from tests.oracles.scans import Scan


@dataclass(frozen=True)
class Made:
    """A table to be read, and how."""

    namespace: str
    name: str
    directory: Path
    scans: tuple[Scan, ...]

    @property
    def title(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def spark_name(self) -> str:
        return f"{CATALOG}.{self.namespace}.{self.name}"

    @property
    def metadata_file(self) -> Path:
        return newest_metadata(self.directory)


def newest_metadata(directory: Path) -> Path:
    """Return the metadata file that `version-hint.text` names."""
    version = (directory / "metadata" / "version-hint.text").read_text().strip()
    (found,) = [
        path
        for path in (directory / "metadata").glob(f"v{version}*")
        if path.name.split(".")[0] == f"v{version}"
    ]
    return found


@dataclass(frozen=True)
class Workshop:
    """What a table is made with. Each table is given its own namespace and name."""

    spark: SparkSession
    warehouse: Path
    scratch: Path
    namespace: str = ""
    name: str = ""
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def directory(self) -> Path:
        """Where the table stands, once there is one."""
        return self.warehouse / self.namespace / self.name

    @property
    def table(self) -> str:
        """The table's name in Spark's SQL."""
        return f"{CATALOG}.{self.namespace}.{self.name}"

    @property
    def jvm(self) -> Any:
        """Java's packages, as py4j offers them."""
        return self.spark._jvm

    def fresh(self, name: str = "file") -> Path:
        """Return a path in the scratch directory that nothing stands at."""
        return self.scratch / f"{name}-{next(self._numbers)}"

    # --- Spark ------------------------------------------------------------------------------------

    def sql(self, *statements: str) -> None:
        """Run statements in which `{t}` stands for the table's name."""
        for statement in statements:
            self.spark.sql(statement.replace("{t}", self.table))

    def create(self, columns: str, clauses: str = "", **properties: str) -> None:
        """Create the table; properties are spelled with `__` for a dot and `_` for a hyphen."""
        spelled = {k.replace("__", ".").replace("_", "-"): v for k, v in properties.items()}
        listed = ", ".join(f"'{k}' = '{v}'" for k, v in spelled.items())
        clauses += f" tblproperties ({listed})" if listed else ""
        self.sql(f"create table {{t}} ({columns}) using iceberg {clauses}")

    def insert(self, rows: pa.Table, *, files: int = 1, branch: str | None = None) -> None:
        """Append Arrow rows by name, in `files` commits."""
        size = -(-rows.num_rows // files)
        for first in range(0, rows.num_rows, size):
            path = self.fresh("rows")
            pq.write_table(rows.slice(first, size), path)
            target = self.table if branch is None else f"{self.table}.branch_{branch}"
            self.spark.read.parquet(str(path)).coalesce(1).writeTo(target).append()

    def snapshots(self) -> list[tuple[int, int]]:
        """Return id and time in ms of every snapshot, oldest first."""
        return [(s.snapshotId(), s.timestampMillis()) for s in self.java_table().snapshots()]

    # --- Iceberg's Java API -----------------------------------------------------------------------

    def java_table(self) -> Any:
        """Return the table as Iceberg's Java API has it."""
        return self.java_table_of(self.table)

    def java_table_of(self, spark_name: str) -> Any:
        """Return a table by its name in Spark's SQL, as Iceberg's Java API has it."""
        return self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            self.spark._jsparkSession, spark_name
        )

    # --- tables that stand elsewhere --------------------------------------------------------------

    def adopt(self, metadata_file: str) -> None:
        """Let Spark find a table whose metadata is named as catalogs name it."""
        target = self.directory / "metadata"
        target.mkdir(parents=True)
        name = "v1.gz.metadata.json" if ".gz." in metadata_file else "v1.metadata.json"
        shutil.copy(metadata_file.removeprefix("file://"), target / name)
        (target / "version-hint.text").write_text("1")


Make: TypeAlias = Callable[[Workshop], Sequence[Scan]]
"""Makes a table at the workshop's name, and returns the scans to compare."""
