"""Table metadata as JSON documents, for tests of what finds and loads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

TABLE_UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


def empty_metadata(
    location: str, columns: Sequence[str] = ("id",), **changes: object
) -> dict[str, object]:
    """Return the metadata of a table that nothing was written to, of columns of longs.

    `changes` are keys in snake_case, added or replaced.
    """
    fields = [
        {"id": i, "name": name, "required": False, "type": "long"}
        for i, name in enumerate(columns, start=1)
    ]
    return {
        "format-version": 2,
        "table-uuid": TABLE_UUID,
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": len(columns),
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
    } | {key.replace("_", "-"): value for key, value in changes.items()}


def write_empty_table(
    directory: Path,
    name: str = "v1.metadata.json",
    *,
    columns: Sequence[str] = ("id",),
    location: str | None = None,
) -> Path:
    """Write a metadata file into a table's directory, made if need be, and return its path."""
    path = directory / "metadata" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(empty_metadata(location or str(directory), columns)))
    return path
