"""Tables with deletes, evolution and every type, and fleets that serve them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.all_types import write_all_types
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import FileLayout, TableWriter, required, schema

NUMBERS = 3000


@pytest.fixture(autouse=True)
def no_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "tracebacklimit", 0, raising=False)


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`db.orders` with deletes and an evolved schema, `db.people`, `db.types` with every type,
    and `db.empty`."""
    directory = tmp_path_factory.mktemp("sql")
    orders = TableWriter.create(
        directory / "db" / "orders",
        schema({"id": required("long"), "who": "int", "old": "string", "x": "float"}),
    )
    (first,) = orders.append(
        [{"id": n, "who": n % 7, "old": f"o{n}", "x": n / 3} for n in range(1000)],
        layout=FileLayout(codec="none"),
    )
    orders.delete_positions({first: list(range(0, 1000, 3))})
    orders.rename_column("old", "note")
    orders.promote_column("who", "long")
    orders.add_column("price", "decimal(9, 2)")
    orders.append(
        [
            {"id": n, "who": None if n % 5 == 0 else n % 9, "note": None, "price": f"{n}.25"}
            for n in range(1000, 2000)
        ]
    )
    orders.delete_equal([{"id": n} for n in range(1000, 1100)], ["id"])
    orders.append([{"id": n, "who": 1, "x": float("nan")} for n in range(2000, NUMBERS)])
    people = TableWriter.create(
        directory / "db" / "people", schema({"who": required("long"), "name": "string"})
    )
    people.append([{"who": n, "name": f"p{n}"} for n in range(5)])
    people.append([{"who": n, "name": None} for n in range(5, 8)])
    write_all_types(directory / "db" / "types")
    TableWriter.create(directory / "db" / "empty", schema({"id": "long", "name": "string"}))
    return directory


@pytest.fixture(scope="module")
def fleet(lake: Path) -> Iterator[LocalFleet]:
    with local_fleet(lake, workers=2, batch_bytes=4096) as fleet:
        yield fleet


@pytest.fixture
def empty_fleet(lake: Path) -> Iterator[LocalFleet]:
    with local_fleet(lake, workers=0, batch_bytes=4096) as fleet:
        yield fleet
