"""The tables that the benchmark reads: written once, kept from one run to the next.

`trips`, `trips_large` and `wide` are written by PyIceberg. The twins of `trips` have its data
files, and delete files of their own beside them, by the writer of the tests' tables.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.transforms import MonthTransform

from tests.bench.taxi.queries import TAXI, WIDE, Query
from tests.bench.taxi.rows import (
    LARGE_ROWS_A_MONTH,
    MONTHS,
    ROWS_A_MONTH,
    WIDE_FILES,
    WIDE_ROWS_A_FILE,
    deleted_positions,
    deleted_trips,
    trips,
    wide_rows,
)
from tests.support.lake import TableWriter
from tests.support.lake.commit import Commit
from tests.support.lake.manifests import WrittenFile

GENERATION = 1
"""Counts up with every change to what is written, so that no older lake is taken for it."""

NAMESPACE = "nyc"
LARGE = "trips_large"
"""More of the same trips, to be read from a store."""
_Delete = Callable[[Commit, list[WrittenFile]], object]
_DELETES: Mapping[str, _Delete] = {
    "trips_positions": lambda commit, files: commit.delete_positions(_positions(files)),
    "trips_vectors": lambda commit, files: commit.write_vectors(_positions(files)),
    "trips_equal_10k": lambda commit, files: _delete_one_in(1_200, commit, files),
    "trips_equal_1m": lambda commit, files: _delete_one_in(12, commit, files),
}
TABLES: Mapping[str, Mapping[str, Query]] = {
    "trips": TAXI,
    **dict.fromkeys(_DELETES, TAXI),
    "wide": WIDE,
}
"""By table that is compared on local files, what it is asked."""


def default_directory() -> Path:
    """Return where the lake is kept: outside of the checkout."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "floeberg" / "bench"


@dataclass(frozen=True)
class Size:
    """How many trips' files there are, and how many rows files have; tests have less of both."""

    months: int = MONTHS
    rows_a_month: int = ROWS_A_MONTH
    large_rows_a_month: int = LARGE_ROWS_A_MONTH
    wide_rows_a_file: int = WIDE_ROWS_A_FILE


QUICK = Size(rows_a_month=25_000, large_rows_a_month=50_000, wide_rows_a_file=5_000)
"""To see that everything works: nothing is learnt from how long it takes."""


class Lake:
    """The tables below a directory; whatever is missing of them is written when it is asked for."""

    def __init__(self, directory: Path, size: Size = Size()) -> None:
        self.warehouse = directory.resolve() / f"lake-{GENERATION}"
        self._size = size
        self._writers: Mapping[str, Callable[[], None]] = {
            "trips": lambda: self._write_trips("trips", size.rows_a_month),
            LARGE: lambda: self._write_trips(LARGE, size.large_rows_a_month),
            "wide": self._write_wide,
        }

    def metadata_file(self, table: str) -> Path:
        """Return a table's current metadata file."""
        folder = self._folder(table)
        done = folder / "done"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            self._writers.get(table, lambda: self._write_twin(table))()
            done.touch()
        (newest,) = sorted((folder / "metadata").glob("*.metadata.json"))[-1:]
        return newest

    def data_files(self, table: str) -> list[Path]:
        """Return the data files of a table that PyIceberg has written."""
        self.metadata_file(table)
        return sorted((self._folder(table) / "data").rglob("*.parquet"))

    def data_bytes(self, table: str) -> int:
        return sum(path.stat().st_size for path in self.data_files(table))

    def _folder(self, table: str) -> Path:
        return self.warehouse / NAMESPACE / table

    def _write_trips(self, name: str, rows_a_month: int) -> None:
        table = self._create(name, trips(0, 1).schema, month_of="picked_up")
        for month in range(self._size.months):
            table.append(trips(month, rows_a_month))

    def _write_wide(self) -> None:
        table = self._create("wide", wide_rows(0, 1).schema)
        for file in range(WIDE_FILES):
            table.append(wide_rows(file, self._size.wide_rows_a_file))

    def _create(self, name: str, schema: pa.Schema, month_of: str | None = None) -> Table:
        catalog = self._catalog()
        catalog.create_namespace_if_not_exists(NAMESPACE)
        with suppress(NoSuchTableError):  # what was not written to its end
            catalog.drop_table((NAMESPACE, name))
        table = catalog.create_table(
            (NAMESPACE, name),
            schema,
            location=f"file://{self._folder(name)}",
            properties={"write.parquet.compression-codec": "zstd"},
        )
        if month_of is not None:
            with table.update_spec() as update:
                update.add_field(month_of, MonthTransform(), f"{month_of}_month")
        return table

    def _catalog(self) -> Catalog:
        self.warehouse.mkdir(parents=True, exist_ok=True)
        return load_catalog(
            "bench",
            type="sql",
            uri=f"sqlite:///{self.warehouse}/catalog.db",
            warehouse=f"file://{self.warehouse}",
        )

    def _write_twin(self, name: str) -> None:
        """Write a table of the data files of `trips`, and deletes."""
        metadata = json.loads(self.metadata_file("trips").read_text())
        folder = self._folder(name)
        (folder / "metadata").mkdir(parents=True)
        (folder / "data").mkdir()
        metadata |= {"location": f"file://{folder}", "table-uuid": str(uuid.uuid4())}
        metadata["metadata-log"] = []
        (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(metadata))
        (folder / "metadata" / "version-hint.text").write_text("1")
        table = TableWriter.open(folder)
        if name == "trips_vectors":
            table.upgrade(3)
        files = sorted(table.files(), key=lambda file: file.location)
        with table.commit() as commit:
            _DELETES[name](commit, files)


def _positions(files: list[WrittenFile]) -> dict[WrittenFile | str, list[int]]:
    """Return which rows to delete of each file."""
    return {
        file: deleted_positions(number, file.record_count).tolist()
        for number, file in enumerate(files)
    }


def _delete_one_in(part: int, commit: Commit, files: list[WrittenFile]) -> None:
    """Delete every so many rows by their ids, with one delete file that all data files share."""
    rows = sum(file.record_count for file in files)
    commit.delete_equal(deleted_trips(rows // part, rows), ["trip_id"])
