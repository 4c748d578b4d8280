from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.flight as fl
import pytest

from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import TableWriter, required, schema


@pytest.fixture(autouse=True)
def no_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "tracebacklimit", 0, raising=False)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


@pytest.fixture
def orders(warehouse: Path) -> TableWriter:
    """`db.orders`: eight files of 100 rows, ids from 0 to 799, in two halves by `region`."""
    table = TableWriter.create(
        warehouse / "db" / "orders",
        schema({"id": required("long"), "region": "string", "amount": "double"}),
    )
    for first in range(0, 800, 100):
        region = "eu" if first < 400 else "us"
        table.append(
            [{"id": i, "region": region, "amount": i / 2} for i in range(first, first + 100)]
        )
    return table


@pytest.fixture
def fleet(warehouse: Path, orders: TableWriter) -> Iterator[LocalFleet]:
    with local_fleet(warehouse) as fleet:
        yield fleet


@pytest.fixture
def client(fleet: LocalFleet) -> Iterator[fl.FlightClient]:
    with fl.connect(fleet.location) as client:
        yield client
