from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.lake import TableWriter
from tests.support.orders import write_orders


@pytest.fixture(scope="session")
def orders(tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    """A table to be read only; see `write_orders`."""
    return write_orders(tmp_path_factory.mktemp("lake") / "db" / "orders")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "table"
