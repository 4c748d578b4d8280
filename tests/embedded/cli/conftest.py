from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.all_types import write_all_types
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import TableWriter, required, schema
from tests.support.orders import write_orders


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has `db.orders`, `db.all_types`, and one table whose name holds a dot."""
    directory = tmp_path_factory.mktemp("warehouse")
    write_orders(directory / "db" / "orders")
    write_all_types(directory / "db" / "all_types")
    dotted = TableWriter.create(
        directory / "db" / "a.b", schema({"id": required("long"), "x,y": "string"})
    )
    dotted.append([{"id": 7, "x,y": "seven"}])
    return directory


@pytest.fixture(scope="session")
def fleet(warehouse: Path) -> Iterator[LocalFleet]:
    with local_fleet(warehouse) as fleet:
        yield fleet
