from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from floeberg.client import Lake, RemoteTable, connect
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import TableWriter, required, schema
from tests.support.orders import write_orders


@pytest.fixture(autouse=True)
def no_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `switch_tracebacks_off` does in a server's process."""
    monkeypatch.setattr(sys, "tracebacklimit", 0, raising=False)


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has `db.orders`, `db.empty` and one whose name holds a dot."""
    directory = tmp_path_factory.mktemp("warehouse")
    write_orders(directory / "db" / "orders")
    TableWriter.create(directory / "db" / "empty", schema({"id": required("long")}))
    dotted = TableWriter.create(directory / "db" / "a.b", schema({"id": required("long")}))
    dotted.append([{"id": 7}])
    return directory


@pytest.fixture(scope="session")
def fleet(warehouse: Path) -> Iterator[LocalFleet]:
    with local_fleet(warehouse) as fleet:
        yield fleet


@pytest.fixture
def lake(fleet: LocalFleet) -> Iterator[Lake]:
    with connect(fleet.location) as lake:
        yield lake


@pytest.fixture
def orders(lake: Lake) -> RemoteTable:
    """`db.orders`; see `write_orders`."""
    return lake.table("db.orders")
