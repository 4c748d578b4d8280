"""The cases of a corpus: a scan of one table each, and the rows that are right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Paths that stand outside the location which their table gives, and where those files are now.
_STRAY_PREFIXES = {
    "ext_bigquery": {"data/persistent/big_query_error": "tables/ext_bigquery"},
    "ext_column_mapping": {
        "data/persistent/column_mapping/warehouse/example": (
            "tables/ext_column_mapping/__extra_example"
        )
    },
}


@dataclass(frozen=True)
class Case:
    """One scan. `source` is a metadata file, or a table's directory when it is to be discovered."""

    id: str
    source: str
    rebase: Mapping[str, str]
    filter: list[Any] | None
    select: list[str] | None
    snapshot_id: int | None
    ref: str | None
    as_of_ms: int | None
    case_sensitive: bool
    split_size: int | None
    expected_rows: Path | None
    expected_error: str | None
    allow_error: bool

    def expected(self) -> pa.Table:
        assert self.expected_rows is not None
        return pq.read_table(self.expected_rows)


def load_cases(root: Path) -> list[Case]:
    return [_case(root, raw) for raw in json.loads((root / "cases.json").read_text())]


def _case(root: Path, raw: dict[str, Any]) -> Case:
    scan, expect = raw["scan"], raw["expect"]
    table = root / "tables" / raw["table"]
    prefixes = {
        raw["written_location"]: raw["actual_location"],
        **_STRAY_PREFIXES.get(raw["table"], {}),
    }
    rows = expect.get("rows")
    return Case(
        id=raw["id"],
        source=str(table if raw.get("discover") else root / raw["metadata"]),
        rebase={old: str(root / new) for old, new in prefixes.items() if old is not None},
        filter=scan["filter"],
        select=scan["select"],
        snapshot_id=scan["snapshot_id"],
        ref=scan["ref"],
        as_of_ms=scan["as_of_ms"],
        case_sensitive=scan["case_sensitive"],
        split_size=scan["split_size"],
        expected_rows=root / rows if rows else None,
        expected_error=expect.get("error"),
        allow_error=bool(expect.get("allow_error")),
    )
