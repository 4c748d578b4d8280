from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tests.sql.clients.adbc import AdbcDbapi, AdbcLowLevel, DuckDb, Pandas, Polars, PolarsUri
from tests.sql.clients.alchemy import SqlAlchemy
from tests.sql.clients.distant import distant_clients
from tests.sql.clients.kinds import Client
from tests.support.callers import password_file, secret_file, token_file
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import TableWriter, required, schema

HERE: list[Client] = [
    AdbcDbapi(),
    AdbcLowLevel(),
    Pandas(),
    Polars(),
    PolarsUri(),
    DuckDb(),
    SqlAlchemy(),
]
PASSWORD = "correct horse"
NUMBERS = 200_000
POLICIES = """
[[rule]]
principals = ["ann"]
tables = ["*"]

[[rule]]
principals = ["bob"]
tables = ["warehouse.db.numbers"]
"""
ORDERS = [
    (1, "eu", 1.5, Decimal("0.10"), date(2024, 2, 29), datetime(2024, 2, 29, 12, tzinfo=UTC)),
    (2, "us", 2.5, Decimal("10.00"), date(2024, 3, 1), datetime(2024, 3, 1, tzinfo=UTC)),
    (3, None, None, None, None, None),
    (4, "ü, 'x'", -4.25, Decimal("-7.77"), date(1969, 7, 20), datetime(1969, 7, 20, tzinfo=UTC)),
]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "able(ability): only for clients that are able to")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test with every client that is able to: those of this environment, or with
    `--clients` those of another one."""
    if "client" not in metafunc.fixturenames:
        return
    python = metafunc.config.getoption("--clients")
    clients: list[Client] = HERE if python is None else [*distant_clients(python)]
    marked = [mark.args[0] for mark in metafunc.definition.iter_markers("able")]
    able = [client for client in clients if client.abilities.issuperset(marked)]
    metafunc.parametrize("client", able, ids=[client.name for client in able])


@pytest.fixture(autouse=True)
def no_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `switch_tracebacks_off` does in a server's process."""
    monkeypatch.setattr(sys, "tracebacklimit", 0, raising=False)


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`db.orders`, of `ORDERS` in two files, and `db.numbers`, `n` from 0 to `NUMBERS` in eight."""
    lake = tmp_path_factory.mktemp("clients-lake")
    orders = TableWriter.create(
        lake / "db" / "orders",
        schema(
            {
                "id": required("long"),
                "region": "string",
                "amount": "double",
                "price": "decimal(9, 2)",
                "day": "date",
                "at": "timestamptz",
            }
        ),
    )
    names = ("id", "region", "amount", "price", "day", "at")
    for part in (ORDERS[:2], ORDERS[2:]):
        orders.append([dict(zip(names, row, strict=True)) for row in part])
    numbers = TableWriter.create(lake / "db" / "numbers", schema({"n": required("long")}))
    share = NUMBERS // 8
    with numbers.commit() as commit:
        for first in range(0, NUMBERS, share):
            values = pa.array(range(first, first + share), pa.int64())
            field = pa.field("n", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "1"})
            commit.append_arrow(pa.Table.from_arrays([values], schema=pa.schema([field])))
    return lake


@pytest.fixture(scope="session")
def fleet(lake: Path) -> Iterator[LocalFleet]:
    # batches of a thousand or so numbers
    with local_fleet(lake, batch_bytes=8192) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def guarded(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """Every service asks who calls, and bob may see less than ann."""
    folder = tmp_path_factory.mktemp("clients-secrets")
    auth: dict[str, object] = {
        "auth_tokens": token_file(folder),
        "auth_passwords": password_file(folder, ann=PASSWORD),
    }
    policies = secret_file(folder / "policies", POLICIES)
    with local_fleet(lake, workers=0, policies=policies, **auth) as fleet:
        fleet.add_worker(**auth)
        yield fleet
