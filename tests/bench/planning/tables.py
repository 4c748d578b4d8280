"""What the tables of the planning benchmark are like, and where they stand.

`events`: 18 columns of which all files have bounds and counts, partitioned by day and by 16 buckets
of an account; a year of data in manifests of 16,000 entries that follow time, as ingestion leaves
them. There are no data files: planning opens none.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tests.support.lake import schema
from tests.support.lake.metadata import first_metadata
from tests.support.lake.schemas import Json

GENERATION = 2
"""Counts up with every change to what is generated, so that no older table is taken for it."""

DAYS = 365
FIRST_DAY = (date(2025, 1, 1) - date(1970, 1, 1)).days
BUCKETS = 16
ENTRIES_PER_MANIFEST = 16_000

COLUMNS: dict[str, str] = {
    "event_id": "long",
    "account_id": "long",
    "occurred_at": "timestamptz",
    "received_at": "timestamptz",
    "amount": "decimal(12, 2)",
    "quantity": "int",
    "price": "double",
    "discount": "double",
    "country": "string",
    "city": "string",
    "product": "string",
    "session": "string",
    "agent": "string",
    "status": "int",
    "latency": "double",
    "score": "double",
    "ship_date": "date",
    "revision": "long",
}


@dataclass(frozen=True)
class Deletes:
    """How many delete files of each kind a table has."""

    vectors: int = 0
    position_files: int = 0
    equality_files: int = 0


@dataclass(frozen=True)
class BenchTable:
    """One generated table: `files` counts the entries, of which 1 in 25 says deleted."""

    files: int
    deletes: Deletes | None = None
    """With deletes, the table is of version 3."""

    @property
    def name(self) -> str:
        return f"files_{self.files}" + ("_deletes" if self.deletes else "")

    @property
    def format_version(self) -> int:
        return 3 if self.deletes else 2

    def directory(self, warehouse: Path) -> Path:
        return warehouse / "bench" / self.name

    def metadata_file(self, warehouse: Path) -> Path:
        return self.directory(warehouse) / "metadata" / "v1.metadata.json"


WITH_DELETES = BenchTable(
    100_000, Deletes(vectors=20_000, position_files=2_000, equality_files=5_000)
)


def default_directory() -> Path:
    """Return where generated tables are kept from one run to the next."""
    return Path(tempfile.gettempdir()) / f"floeberg-bench-planning-{GENERATION}"


def empty_metadata(table: BenchTable, location: str) -> Json:
    """Return the table's metadata without a snapshot."""
    spec = [("occurred_at", "day"), ("account_id", f"bucket[{BUCKETS}]")]
    return first_metadata(
        table.format_version, location, schema(COLUMNS), spec, {}, 1_767_000_000_000
    )
