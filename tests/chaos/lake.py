"""The tables that are read, in a real S3, and questions whose right answers are known.

Rows follow from their ids, and deletes are chosen by id as well: what a question's answer is comes
from numpy and from no reader of Iceberg.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tests.support.lake import FileLayout, TableWriter, WrittenFile, required, schema
from tests.support.services import Seaweed

COLUMNS = ["id", "kind", "amount", "text"]

Ids: TypeAlias = npt.NDArray[np.int64]

_KINDS = ("red", "green", "blue", "white", "black")
_SCHEMA = schema({"id": required("long"), "kind": "string", "amount": "double", "text": "string"})


@dataclass(frozen=True)
class Size:
    """How large the tables are."""

    files: int
    rows_per_file: int
    row_group_rows: int

    @property
    def rows(self) -> int:
        return self.files * self.rows_per_file


FULL = Size(files=12, rows_per_file=4_000, row_group_rows=500)
SMALL = Size(files=4, rows_per_file=1_000, row_group_rows=250)


@dataclass(frozen=True)
class Question:
    """A scan, and its rows by id. `rows_at_most` is the scan's limit: any of `expected` then."""

    name: str
    table: str
    arguments: Mapping[str, Any]
    expected: pa.Table
    rows_at_most: int | None = None
    is_whole: bool = False

    def fault_in(self, found: pa.Table) -> str | None:
        """Return what is wrong with an answer, or None."""
        if found.schema != self.expected.schema:
            return f"the schema is {found.schema}"
        ids = _ids_of(found)
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        if len(ids) and (ids[1:] == ids[:-1]).any():
            return f"{np.count_nonzero(ids[1:] == ids[:-1])} rows came twice"
        wanted = _ids_of(self.expected)
        places = np.searchsorted(wanted, ids)
        known = places < len(wanted)
        known[known] = wanted[places[known]] == ids[known]
        if not known.all():
            return f"rows that do not belong there, such as id {ids[~known][0]}"
        should = len(wanted) if self.rows_at_most is None else min(self.rows_at_most, len(wanted))
        if len(ids) != should:
            return f"{len(ids)} rows came, and there are {should}"
        right = self.expected if len(ids) == len(wanted) else self.expected.take(_indices(places))
        if not found.combine_chunks().take(_indices(order)).equals(right):
            return "a row has other values"
        return None


def rows_of(ids: Ids) -> pa.Table:
    """Return the rows that have these ids."""
    kinds = np.array(_KINDS, dtype=object)[ids * 7 % 5]
    missing = ids % 11 == 0
    return pa.table(
        {
            "id": pa.array(ids),
            "kind": pa.array(kinds, pa.string()),
            "amount": pa.array(ids / 8, pa.float64(), mask=missing),
            "text": pa.array([f"{n:08x}" * 128 for n in (ids * 2654435761 % 2**32).tolist()]),
        }
    )


def write_lake(folder: Path, store: Seaweed, bucket: str, size: Size) -> list[Question]:
    """Write the tables below `folder`, put them into a new bucket, and return what may be asked."""
    at = _Warehouse(folder, f"s3://{bucket}")
    questions = [
        *_plain(at, size),
        *_deleted(at, size),
        *_vectors(at, size),
        *_small_files(at, size),
    ]
    store.make_bucket(bucket)
    paths = (path for path in folder.rglob("*") if path.is_file())
    store.put(bucket, {str(p.relative_to(folder)): p.read_bytes() for p in paths})
    return questions


@dataclass(frozen=True)
class _Warehouse:
    """Where tables are written, and where they will be read."""

    folder: Path
    location: str

    def create(self, name: str, spec: Sequence[Any] = (), version: int = 2) -> TableWriter:
        return TableWriter.create(
            self.folder / "db" / name,
            _SCHEMA,
            spec,
            format_version=version,
            location=f"{self.location}/db/{name}",
        )


def _layout(size: Size) -> FileLayout:
    return FileLayout(row_group_size=size.row_group_rows, parquet={"use_dictionary": False})


def _parts(size: Size) -> list[Ids]:
    ids = np.arange(size.rows, dtype=np.int64)
    return [ids[n : n + size.rows_per_file] for n in range(0, size.rows, size.rows_per_file)]


def _plain(at: _Warehouse, size: Size) -> Iterable[Question]:
    table = at.create("plain")
    for part in _parts(size):
        table.append(rows_of(part), layout=_layout(size))
    ids = np.arange(size.rows, dtype=np.int64)
    some = ids[(ids >= size.rows // 3) & (ids % 11 != 0) & (ids / 8 < size.rows / 12)]
    yield _question("plain", ids)
    yield _question("plain", ids, ordered=True)
    yield _question("plain", ids, limit=size.rows // 2)
    yield _question("plain", some, filter=f"id >= {size.rows // 3} AND amount < {size.rows / 12}")
    yield _question("plain", ids, select=["text", "id"])


def _deleted(at: _Warehouse, size: Size) -> Iterable[Question]:
    """Partitioned, with rows deleted by position and by value."""
    table = at.create("deleted", [("kind", "identity")])
    written: list[tuple[WrittenFile, Ids]] = []
    with table.commit() as commit:
        for part in _parts(size):
            for number, kind in enumerate(_KINDS):
                held = part[part * 7 % 5 == number]
                partition = {"kind": kind}
                files = commit.append(rows_of(held), partition=partition, layout=_layout(size))
                written += [(file, held) for file in files]
    before = table.snapshot_id
    ids = np.arange(size.rows, dtype=np.int64)
    by_position = ids % 13 == 4
    table.delete_positions({f: np.flatnonzero(held % 13 == 4).tolist() for f, held in written})
    by_value = ids[ids % 101 == 5]
    table.delete_equal([{"id": int(n)} for n in by_value], ["id"])
    table.delete_equal([{"kind": "white", "amount": None}], ["kind", "amount"])
    kinds = np.array(_KINDS)[ids * 7 % 5]
    gone = by_position | (ids % 101 == 5) | ((kinds == "white") & (ids % 11 == 0))
    left = ids[~gone]
    yield _question("deleted", left)
    yield _question("deleted", left, limit=size.rows // 3)
    reds = left[np.isin(np.array(_KINDS)[left * 7 % 5], ["red", "blue"])]
    yield _question("deleted", reds, filter="kind IN ('red', 'blue')")
    yield _question("deleted", ids, snapshot_id=before)


def _vectors(at: _Warehouse, size: Size) -> Iterable[Question]:
    table = at.create("vectors", version=3)
    written = [
        (table.append(rows_of(part), layout=_layout(size))[0], part) for part in _parts(size)
    ]
    ids = np.arange(size.rows, dtype=np.int64)
    for remainder in (3, 8):  # the second commit replaces the first one's vectors
        table.write_vectors(
            {f: np.flatnonzero(held % 17 == remainder).tolist() for f, held in written}
        )
    left = ids[(ids % 17 != 3) & (ids % 17 != 8)]
    yield _question("vectors", left)
    yield _question("vectors", left[left % 11 == 0], filter="amount IS NULL")


def _small_files(at: _Warehouse, size: Size) -> Iterable[Question]:
    table = at.create("small")
    ids = np.arange(size.rows // 4, dtype=np.int64)
    each = len(ids) // (4 * size.files)
    with table.commit() as commit:
        for first in range(0, len(ids), each):
            commit.append(rows_of(ids[first : first + each]))
    yield _question("small", ids)


def _question(table: str, ids: Ids, **arguments: Any) -> Question:
    rows = rows_of(ids)
    columns = arguments.get("select", COLUMNS)
    said = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return Question(
        name=f"{table}({said})",
        table=f"db.{table}",
        arguments=arguments,
        expected=rows.select(columns).cast(_arrow_schema(columns)),
        rows_at_most=arguments.get("limit"),
        is_whole=not arguments,
    )


def _arrow_schema(columns: Sequence[str]) -> pa.Schema:
    types: dict[str, Any] = {
        "id": pa.int64(),
        "kind": pa.string(),
        "amount": pa.float64(),
        "text": pa.string(),
    }
    return pa.schema([pa.field(name, types[name], nullable=name != "id") for name in columns])


def _indices(places: Ids) -> pa.Int64Array:
    return pa.array(places, pa.int64())


def _ids_of(table: pa.Table) -> Ids:
    return cast(Ids, table["id"].to_numpy())
