"""Tables by PyIceberg: types, partitions, evolution, rewriting deletes, branches, added files."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import transforms as tf
from pyiceberg import types as ty
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from tests.oracles.scans import Scan, sweep, where
from tests.oracles.workshop import Make, Workshop
from tests.oracles.writers.rows import every_type, people
from tests.oracles.writers.spark_changes import PEOPLE_SCANS
from tests.oracles.writers.spark_types import LITERALS, PROJECTIONS

Change: TypeAlias = Callable[[Workshop, SqlCatalog, str], tuple[Table, Sequence[Scan]]]
"""Makes the table of that identifier."""


def _made(change: Change) -> Make:
    """Return a maker that gives the table a catalog of its own, and then to Spark's."""

    def make(shop: Workshop) -> Sequence[Scan]:
        home = shop.fresh("pyiceberg")
        home.mkdir()
        catalog = SqlCatalog("own", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}")
        try:
            catalog.create_namespace("db")
            table, scans = change(shop, catalog, f"db.{shop.name}")
            shop.adopt(table.metadata_location)
        finally:
            catalog.close()
        return scans

    return make


def _types(version: int, **properties: str) -> Make:
    def change(_: Workshop, catalog: SqlCatalog, name: str) -> tuple[Table, Sequence[Scan]]:
        n = 12
        rows = every_type()
        # what Spark has no type for
        times = [None if i % 4 == 3 else dt.time(i, 59, 59, 999999) for i in range(n)]
        uuids = [None if i % 4 == 2 else uuid.UUID(int=2**127 + i).bytes for i in range(n)]
        fixed = [None if i % 4 == 1 else bytes([i, 255, 0]) for i in range(n)]
        rows = rows.append_column("t", pa.array(times, pa.time64("us")))
        storage = pa.array(uuids, pa.binary(16))
        rows = rows.append_column("u", pa.ExtensionArray.from_storage(pa.uuid(), storage))
        rows = rows.append_column("fx", pa.array(fixed, pa.binary(3)))
        spelled = {k.replace("__", ".").replace("_", "-"): v for k, v in properties.items()}
        table = catalog.create_table(
            name, rows.schema, properties={"format-version": str(version), **spelled}
        )
        table.append(rows.slice(0, 7))
        table.append(rows.slice(7))
        return table, [
            *PROJECTIONS,
            *where(
                (">=", "t", dt.time(5, 59, 59, 999999)),
                ("=", "u", uuid.UUID(int=2**127 + 4)),
                ("in", "u", [uuid.UUID(int=2**127), uuid.UUID(int=1)]),
                ("=", "fx", bytes([4, 255, 0])),
            ),
        ]

    return _made(change)


def _partitioned(*fields: tuple[str, tf.Transform[Any, Any]]) -> Make:
    def change(_: Workshop, catalog: SqlCatalog, name: str) -> tuple[Table, Sequence[Scan]]:
        rows = every_type()
        table = catalog.create_table(name, rows.schema)
        with table.update_spec() as update:
            for column, transform in fields:
                update.add_field(column, transform, f"{column}_p")
        table.append(rows)
        swept = [s for column, _ in fields for s in sweep(column, *LITERALS[column])]
        return table, [Scan(), *swept[1::2]]

    return _made(change)


@_made
def schema_evolution(_: Workshop, catalog: SqlCatalog, name: str) -> tuple[Table, Sequence[Scan]]:
    first = Schema(
        ty.NestedField(1, "id", ty.IntegerType(), required=False),
        ty.NestedField(2, "gone", ty.StringType(), required=False),
        ty.NestedField(3, "f", ty.FloatType(), required=False),
        ty.NestedField(
            4,
            "st",
            ty.StructType(
                ty.NestedField(5, "a", ty.IntegerType(), required=False),
                ty.NestedField(6, "b", ty.StringType(), required=False),
            ),
            required=False,
        ),
        ty.NestedField(7, "dec", ty.DecimalType(9, 2), required=False),
    )
    table = catalog.create_table(name, first)
    rows: dict[str, list[Any]] = {
        "id": [1, 2, None],
        "gone": ["x", "y", None],
        "f": [1.5, float("nan"), None],
    }
    rows["st"] = [{"a": 1, "b": "b"}, None, {"a": None, "b": None}]
    table.append(pa.table(rows, schema=table.schema().as_arrow().remove(4)))
    before = table.current_snapshot()
    assert before is not None
    with table.update_schema() as update:
        update.update_column("id", ty.LongType())
        update.update_column("f", ty.DoubleType())
        update.update_column("dec", ty.DecimalType(20, 2))
        update.delete_column("gone")
        update.rename_column("st.b", "bb")
        update.add_column(("st", "c"), ty.DateType())
        update.move_first("f")
    with table.update_schema() as update:
        update.add_column("gone", ty.IntegerType())
        update.add_column("tags", ty.ListType(20, ty.StringType(), element_required=False))
    later: dict[str, list[Any]] = {"id": [2**40], "f": [2.5], "gone": [5], "tags": [["t", None]]}
    later["st"] = [{"a": 3, "bb": "bb", "c": dt.date(2024, 1, 1)}]
    wanted = table.schema().as_arrow()
    table.append(pa.table(later, schema=pa.schema([f for f in wanted if f.name in later])))
    return table, [
        Scan(),
        Scan(snapshot_id=before.snapshot_id),
        Scan(select=("st.c", "id")),
        *where(
            (">", "id", 1),
            ("is-null", "gone"),
            ("=", "f", 1.5),
            ("=", "st.bb", "b"),
            ("=", "st.a", 3),
        ),
    ]


@_made
def spec_evolution(_: Workshop, catalog: SqlCatalog, name: str) -> tuple[Table, Sequence[Scan]]:
    table = catalog.create_table(name, people(0, 1).schema)
    table.append(people(0, 10))
    with table.update_spec() as update:
        update.add_field("region", tf.IdentityTransform())
    table.append(people(10, 20))
    with table.update_spec() as update:
        update.remove_field("region")
        update.add_field("id", tf.TruncateTransform(10), "tens")
    table.append(people(20, 40))
    return table, PEOPLE_SCANS


@_made
def rewriting(_: Workshop, catalog: SqlCatalog, name: str) -> tuple[Table, Sequence[Scan]]:
    """Delete, overwrite, upsert and dynamic overwrite, all by rewriting files."""
    table = catalog.create_table(name, people(0, 1).schema)
    with table.update_spec() as update:
        update.add_field("region", tf.IdentityTransform())
    for first in (0, 15, 30):
        table.append(people(first, first + 15))
    table.delete("id >= 3 and id < 6")
    before = table.current_snapshot()
    assert before is not None
    table.overwrite(people(100, 105), "region = 'eu' and id < 20")
    table.upsert(people(28, 33), ["id"])
    table.dynamic_partition_overwrite(people(201, 202))
    return table, [*PEOPLE_SCANS, Scan(snapshot_id=before.snapshot_id)]


@_made
def refs(_: Workshop, catalog: SqlCatalog, name: str) -> tuple[Table, Sequence[Scan]]:
    table = catalog.create_table(name, people(0, 1).schema)
    table.append(people(0, 10))
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag(first.snapshot_id, "first").commit()
    table.manage_snapshots().create_branch(first.snapshot_id, "side").commit()
    table.append(people(50, 55), branch="side")
    table.append(people(10, 20))
    return table, [
        Scan(),
        Scan(ref="first"),
        Scan(ref="side"),
        Scan(ref="main"),
        Scan(ref="side", filter=(">", "id", 8)),
        Scan(snapshot_id=first.snapshot_id),
        Scan(as_of_ms=first.timestamp_ms),
    ]


@_made
def added_files(shop: Workshop, catalog: SqlCatalog, name: str) -> tuple[Table, Sequence[Scan]]:
    """Files without ids under a name mapping, then a rename."""
    rows = people(0, 20)
    st = pa.array([None if i % 4 == 3 else {"a": i, "b": f"b{i}"} for i in range(20)])
    rows = rows.append_column("st", st)
    table = catalog.create_table(name, rows.schema)
    for first in (0, 10):
        path = shop.fresh("plain")
        pq.write_table(rows.slice(first, 10), path)
        table.add_files([f"file://{path}"])
    with table.update_schema() as update:
        update.rename_column("name", "title")
        update.rename_column("st.a", "aa")
        update.add_column("extra", ty.LongType())
    return table, [
        Scan(),
        Scan(select=("st.aa", "title")),
        *where(("=", "title", "n003"), ("is-null", "extra"), (">", "st.aa", 12)),
    ]


TABLES: dict[str, Make] = {
    "types_v1": _types(1),
    "types_v2": _types(2),
    "types_brotli": _types(2, write__parquet__compression_codec="brotli"),
    "types_small_groups": _types(2, write__parquet__row_group_limit="3"),
    "identity": _partitioned(*((c, tf.IdentityTransform()) for c in ("b", "day", "s", "dec9"))),
    "bucket": _partitioned(
        *((c, tf.BucketTransform(5)) for c in ("i", "dec18", "day", "ts", "bin"))
    ),
    "truncate": _partitioned(*((c, tf.TruncateTransform(2)) for c in ("s", "bin"))),
    "times": _partitioned(
        ("day", tf.YearTransform()), ("ts", tf.MonthTransform()), ("tz", tf.HourTransform())
    ),
    "schema_evolution": schema_evolution,
    "spec_evolution": spec_evolution,
    "rewriting": rewriting,
    "refs": refs,
    "added_files": added_files,
}
