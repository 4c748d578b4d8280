"""Lakes of two tables, `t` and `u`, that have been through what happens to tables: columns of every
type that were added, dropped, renamed and promoted; other partitions; deletes of each kind.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.support.lake import FileLayout, TableWriter, required, schema, struct
from tests.support.sql_tables import COLUMNS, VALUES

TABLES = ("t", "u")

_ADDED = ("Mixed", "a b", "tags")
"""Columns that the first files lack; they are the last, so that tables have one order."""
_FIRST: dict[str, Any] = {
    **{name: type_ for name, type_ in COLUMNS.items() if name not in _ADDED},
    "l": "int",
    "d": "float",
    "p": "decimal(8, 2)",
    "st": struct({"a": "int", "r": required("double")}),
    "Mixed": "string",
}
"""What is promoted, gets a field, and is dropped before another column is called so. What SQL calls
"s" is renamed to it."""
_SPECS: list[list[Any]] = [
    [],
    [("day", "month")],
    [("i", "identity")],
    [("ts", "hour")],
    [("raw", "bucket[3]")],
    [("tz", "day")],
]
_LAYOUTS = [
    FileLayout(),
    FileLayout(row_group_size=4),
    FileLayout(metrics="none"),
    FileLayout(metrics="truncate(1)", row_group_size=7),
    FileLayout(format="avro"),
]


def write_lake(directory: Path, rng: random.Random) -> None:
    for name in TABLES:
        _write_table(directory / name, rng)


def _write_table(directory: Path, rng: random.Random) -> None:
    first = {_first_name(name): type_ for name, type_ in _FIRST.items()}
    table = TableWriter.create(directory, schema(first), rng.choice(_SPECS), format_version=3)
    ids = iter(range(10**6))
    for _ in range(rng.randint(1, 2)):
        rows = [
            {_first_name(name): value for name, value in row.items()}
            for row in _rows(rng, ids, is_first=True)
        ]
        table.append(rows, layout=rng.choice(_LAYOUTS))
    _delete(table, rng)
    for name, type_ in (("l", "long"), ("d", "double"), ("p", "decimal(9, 2)"), ("st.a", "long")):
        table.promote_column(name, type_)
    table.rename_column("text", "s")
    table.drop_column("Mixed")
    table.add_column("st.Deep", struct({"s": "string"}))
    for name in _ADDED:
        table.add_column(name, COLUMNS[name])
    if rng.random() < 0.5:
        table.evolve_spec(rng.choice(_SPECS))
    for _ in range(rng.randint(1, 3)):
        table.append(list(_rows(rng, ids)), layout=rng.choice(_LAYOUTS))
        if rng.random() < 0.5:
            _delete(table, rng)


def _first_name(name: str) -> str:
    return "text" if name == "s" else name


def _rows(
    rng: random.Random, ids: Iterator[int], *, is_first: bool = False
) -> Iterator[dict[str, Any]]:
    for _ in range(rng.randint(1, 14)):
        row: dict[str, Any] = {"id": next(ids)}
        for name, values in VALUES.items():
            if is_first:
                if name in _ADDED:
                    continue
                values = [value for value in values if _fits_at_first(name, value)]
            row[name] = rng.choice(values) if rng.random() < 0.85 else None
        yield row


def _fits_at_first(name: str, value: Any) -> bool:
    match name:
        case "l":
            return -(2**31) <= int(value) < 2**31
        case "d":
            return not math.isfinite(value) or abs(value) < 1e30
        case "p":
            return abs(Decimal(value)) < 10**6
        case _:
            return True


def _delete(table: TableWriter, rng: random.Random) -> None:
    """Delete some rows in some of the ways that there are."""
    if rng.random() < 0.6:
        keys = [{"i": rng.choice(VALUES["i"])}, {"i": None}]
        table.delete_equal(rng.sample(keys, rng.randint(1, 2)), ["i"])
    if rng.random() < 0.3:
        table.delete_equal([{"day": rng.choice(VALUES["day"]), "b": True}], ["day", "b"])
    files = table.files()
    chosen = {
        file: sorted(rng.sample(range(file.record_count), min(file.record_count, 2)))
        for file in rng.sample(files, rng.randint(0, len(files)))
    }
    if chosen:
        table.write_vectors(chosen)
