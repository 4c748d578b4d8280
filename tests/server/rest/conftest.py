from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fleet import LocalFleet, local_fleet
from tests.support.orders import write_orders


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has `db.orders`; tests write tables of their own into namespaces of their own."""
    directory = tmp_path_factory.mktemp("warehouse")
    write_orders(directory / "db" / "orders")
    return directory


@pytest.fixture(scope="session")
def coordinator(warehouse: Path) -> Iterator[LocalFleet]:
    """A coordinator that plans for REST clients. It needs no workers for that."""
    with local_fleet(warehouse, workers=0, rest_planning=True) as fleet:
        yield fleet
