"""The table that tests of clients and commands read: every kind of delete, evolved, with refs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.lake import FileLayout, TableWriter, required, schema, struct

ROWS_PER_FILE = 40
_DAY = datetime(2025, 1, 1, tzinfo=UTC)


def order(number: int) -> dict[str, Any]:
    """Return one order as it is written; every seventh has no amount."""
    return {
        "id": number,
        "region": ("eu", "us", "asia")[number % 3],
        "amount": None if number % 7 == 0 else number / 4,
        "placed_at": _DAY + timedelta(hours=number),
        "customer": {"name": f"customer {number % 5}", "vip": number % 2 == 0},
    }


def write_orders(directory: Path, files: int = 6) -> TableWriter:
    """Write a table partitioned by region: `files` appends of orders that count from 0.

    Then, in this order: positions deleted from the first file, equality deletes of ids 41 and 82,
    tag `v1`, a column `note` added, a branch `audit` with one order more (id 9000), and one append
    with notes to `main`.
    """
    table = TableWriter.create(
        directory,
        schema(
            {
                "id": required("long"),
                "region": "string",
                "amount": "double",
                "placed_at": "timestamptz",
                "customer": struct({"name": "string", "vip": "boolean"}),
            }
        ),
        [("region", "identity")],
    )
    layout = FileLayout(row_group_size=5)
    written = []
    for first in range(0, files * ROWS_PER_FILE, ROWS_PER_FILE):
        rows = [order(n) for n in range(first, first + ROWS_PER_FILE)]
        written.append(table.append(rows, layout=layout))
    table.delete_positions({written[0][0]: [0, 3, 4]})
    table.delete_equal([{"id": 41}, {"id": 82}], ["id"])
    table.tag("v1")
    table.add_column("note", "string")
    table.append([{**order(9000), "note": "audit only"}], branch="audit")
    noted = [{**order(n), "note": f"n{n}"} for n in range(5000, 5000 + ROWS_PER_FILE)]
    table.append(noted, layout=layout)
    return table


def deleted_ids() -> frozenset[int]:
    """Return the orders that `write_orders` deletes: rows 0, 3 and 4 of the file of `eu`."""
    return frozenset({0, 9, 12, 41, 82})


def live_ids(files: int = 6, noted: bool = True) -> Sequence[int]:
    """Return the ids that `main` holds, or without `noted` the ones that tag `v1` holds."""
    ids = [n for n in range(files * ROWS_PER_FILE) if n not in deleted_ids()]
    return ids + (list(range(5000, 5000 + ROWS_PER_FILE)) if noted else [])
