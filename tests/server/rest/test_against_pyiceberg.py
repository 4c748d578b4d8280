"""PyIceberg, planning through the coordinator and by itself: the same rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import expressions as ex
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import DataScan, Table

from floeberg.server.catalogs import Catalogs
from floeberg.server.catalogs.pyiceberg_catalog import PyIcebergCatalog
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import TableWriter, required, schema, struct
from tests.support.services import Seaweed

COLUMNS = schema(
    {
        "id": required("long"),
        "region": "string",
        "day": "date",
        "at": "timestamptz",
        "amount": "double",
        "price": "decimal(9, 2)",
        "customer": struct({"name": "string"}),
    }
)
REGIONS = ["eu", "us", None, "ünï", ""]


def rows(start: int, stop: int) -> list[dict[str, Any]]:
    return [
        {
            "id": n,
            "region": REGIONS[n % 5],
            "day": None if n % 11 == 10 else date(1969, 12, 1 + n % 31),
            "at": datetime(2024, 1, 1 + n % 28, tzinfo=UTC),
            "amount": float("nan") if n % 13 == 12 else None if n % 7 == 3 else n / 4,
            "price": n,
            "customer": None if n % 9 == 8 else {"name": f"c{n % 4}"},
        }
        for n in range(start, stop)
    ]


def plain(table: TableWriter) -> None:
    for first in range(0, 60, 20):
        table.append(rows(first, first + 20))


def with_positions_deleted(table: TableWriter) -> None:
    first, *_ = table.append(rows(0, 30))
    table.append(rows(30, 60))
    table.delete_positions({first: [0, 2]})


def with_vectors(table: TableWriter) -> None:
    table.upgrade(3)
    written = table.append(rows(0, 40))
    table.write_vectors({file: [0] for file in written})
    table.append(rows(40, 60))


def through_changes(table: TableWriter) -> None:
    table.append(rows(0, 20))
    table.rename_column("amount", "total")
    table.add_column("note", "string")
    table.append([{**row, "total": row["amount"], "note": "new"} for row in rows(20, 40)])
    table.evolve_spec([("id", "bucket[3]"), ("at", "day")])
    table.append([{**row, "total": row["amount"], "note": None} for row in rows(40, 60)])
    table.rename_column("total", "amount")


SPECS: dict[str, list[Any]] = {
    "unpartitioned": [],
    "by identity": [("region", "identity")],
    "by transforms": [("id", "truncate[10]"), ("day", "month")],
    "by day": [("at", "day"), ("region", "truncate[1]")],
}
LIVES: list[tuple[str, Callable[[TableWriter], None]]] = [
    ("unpartitioned", plain),
    ("unpartitioned", with_positions_deleted),
    ("by identity", plain),
    ("by identity", with_vectors),
    ("by identity", through_changes),
    ("by transforms", with_positions_deleted),
    ("by transforms", through_changes),
    ("by day", with_vectors),
]
TABLES = {f"{spec} {live.__name__}".replace(" ", "_"): (spec, live) for spec, live in LIVES}
FILTERS: list[str | ex.BooleanExpression] = [
    ex.AlwaysTrue(),
    "id >= 20 AND id < 45",
    "region = 'eu'",
    "region != 'eu'",
    "NOT (region = 'eu' OR id > 30)",
    "region IS NULL",
    "region NOT IN ('eu', 'us')",
    "region LIKE 'ü%'",
    "amount > 5.5",
    "amount IS NAN",
    "amount IS NOT NAN",
    "price = 12.00",
    "customer.name = 'c1'",
    "at < '2024-01-05T00:00:00+00:00'",
    ex.LessThan("at", datetime(2024, 1, 5, tzinfo=UTC)),
    ex.EqualTo("day", date(1969, 12, 3)),
    ex.In("id", list(range(0, 60, 7))),
    "id = 1000",
]


@pytest.fixture(scope="module")
def written(warehouse: Path) -> None:
    for name, (spec, live) in TABLES.items():
        live(TableWriter.create(warehouse / "both" / name, COLUMNS, SPECS[spec]))


@contextmanager
def catalog_of(fleet: LocalFleet, **properties: str) -> Iterator[RestCatalog]:
    uri = str(fleet.coordinator.addresses()["http"])
    catalog = load_catalog("floeberg", type="rest", uri=uri, **properties)
    assert isinstance(catalog, RestCatalog)
    yield catalog
    catalog.close()


@pytest.fixture(scope="module")
def served(coordinator: LocalFleet) -> Iterator[RestCatalog]:
    """Plans on the server, since its configuration says so."""
    with catalog_of(coordinator) as catalog:
        assert catalog.supports_server_side_planning()
        yield catalog


@pytest.fixture(scope="module")
def alone(coordinator: LocalFleet) -> Iterator[RestCatalog]:
    """Plans by itself."""
    with catalog_of(coordinator, **{"scan-planning-mode": "client"}) as catalog:
        assert not catalog.supports_server_side_planning()
        yield catalog


def assert_same_rows(here: Table, there: Table, filter_: str | ex.BooleanExpression) -> None:
    ours, theirs = (table.scan(row_filter=filter_) for table in (here, there))
    found, expected = (scan.to_arrow().sort_by("id") for scan in (ours, theirs))

    assert as_text(found) == as_text(expected)
    # not the number of rows: it counts nulls under a negation, and leaves them out when it reads
    assert ours.count() == theirs.count()
    assert files(ours) <= files(theirs)


def files(scan: DataScan) -> set[str]:
    return {task.file.file_path for task in scan.plan_files()}


def as_text(table: pa.Table) -> list[str]:
    """Return rows that can be compared, NaN among them."""
    return [repr(row) for row in table.to_pylist()]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.usefixtures("written")
def test_the_same_rows_are_read_whoever_plans(name: str, served: RestCatalog, alone: RestCatalog):
    here, there = (catalog.load_table(("both", name)) for catalog in (served, alone))
    for filter_ in FILTERS:
        assert_same_rows(here, there, filter_)


@pytest.mark.usefixtures("written")
def test_pages_are_put_together(warehouse: Path, alone: RestCatalog):
    name = "by_transforms_with_positions_deleted"
    with (
        local_fleet(warehouse, workers=0, rest_planning=True, rest_page_files=1) as fleet,
        catalog_of(fleet) as paged,
    ):
        here, there = (catalog.load_table(("both", name)) for catalog in (paged, alone))
        assert len(list(here.scan().plan_files())) > 5
        for filter_ in FILTERS[:5]:
            assert_same_rows(here, there, filter_)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.usefixtures("written")
def test_a_snapshot_of_the_past_is_read_too(name: str, served: RestCatalog, alone: RestCatalog):
    here, there = (catalog.load_table(("both", name)) for catalog in (served, alone))
    first = there.metadata.snapshots[0].snapshot_id

    ours, theirs = (
        table.scan(row_filter="id > 3", snapshot_id=first).to_arrow().sort_by("id")
        for table in (here, there)
    )

    assert as_text(ours) == as_text(theirs)


@pytest.mark.parametrize("seed", range(4))
def test_tables_with_names_that_need_escaping_are_found(
    warehouse: Path, served: RestCatalog, seed: int
):
    name = "".join(random.Random(seed).choices("a b+%ü?#&=", k=6)) + "x"
    table = TableWriter.create(warehouse / "odd names" / name, COLUMNS)
    table.append(rows(0, 3))

    assert served.load_table(("odd names", name)).scan().count() == 3


def test_what_the_server_refuses_is_an_error_with_its_reason(served: RestCatalog):
    table = served.load_table(("db", "orders"))

    with pytest.raises(NoSuchTableError, match="no table"):
        served.load_table(("db", "none"))
    with pytest.raises(Exception, match="null is not a literal"):
        list(table.scan(row_filter=ex.EqualTo("amount", float("inf"))).plan_files())


def test_tables_of_a_rest_catalog_behind_are_planned_and_read_with_the_clients_credentials(
    seaweed: Seaweed,
):
    properties = {"type": "rest", **seaweed.catalog_properties()}
    behind = load_catalog("lake", **properties)
    behind.create_namespace_if_not_exists("planned")
    made = behind.create_table(("planned", "orders"), pa.schema([("id", pa.int64())]))
    for first in range(0, 300, 100):
        made.append(pa.table({"id": list(range(first, first + 100))}))

    with (
        local_fleet(
            Catalogs([PyIcebergCatalog("lake", properties)]), workers=0, rest_planning=True
        ) as fleet,
        catalog_of(fleet, **seaweed.s3_properties()) as served,
    ):
        scan = served.load_table(("planned", "orders")).scan(row_filter="id >= 150")

        assert len(list(scan.plan_files())) == 2
        assert sorted(scan.to_arrow()["id"].to_pylist()) == list(range(150, 300))
