"""Clients that know nothing of floeberg, each by its own ways, against a running fleet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy

from tests.sql.clients.alchemy import AlchemySession, SqlAlchemy
from tests.sql.clients.conftest import NUMBERS, ORDERS, PASSWORD
from tests.sql.clients.kinds import Client, Session, Shown
from tests.support.callers import ANN, BOB
from tests.support.fleet import LocalFleet
from tests.support.waiting import wait_until

# sqlalchemy-adbc leaves ADBC's default, which wants transactions, and is told that there are none
pytestmark = pytest.mark.filterwarnings("ignore:Cannot disable autocommit")


@pytest.fixture
def session(client: Client, fleet: LocalFleet) -> Iterator[Session]:
    with client.connect(fleet.location) as session:
        yield session


def refusal(session: Session, sql: str, *parameters: Any) -> str:
    """Return what the client says of a statement that it can't have."""
    with pytest.raises(Exception) as raised:  # noqa: PT011  # each client has its own
        session.rows(sql, parameters)
    told = str(raised.value)
    assert "Traceback" not in told
    assert ".py" not in told
    return told


# --- browsing and querying -----------------------------------------------------------------------


@pytest.mark.able("browse")
def test_it_browses(session: Session):
    assert session.tables() == {"db.numbers", "db.orders"}
    assert session.columns("db", "orders") == ["id", "region", "amount", "price", "day", "at"]


def test_it_connects_and_queries(session: Session):
    assert session.rows("SELECT 1 AS one") == [(1,)]
    assert session.rows("SELECT id, region, amount FROM db.orders ORDER BY id") == [
        row[:3] for row in ORDERS
    ]
    assert session.rows("SELECT count(*) AS n FROM db.numbers WHERE n % 2 = 0") == [(NUMBERS // 2,)]
    assert session.rows("SELECT id FROM db.orders WHERE id > 100") == []


@pytest.mark.able("types")
def test_values_are_what_they_were(session: Session):
    assert session.rows("SELECT * FROM db.orders ORDER BY id") == ORDERS
    assert sorted(session.rows("SELECT * FROM db.orders")) == ORDERS


@pytest.mark.able("parameters")
def test_parameters_take_the_places_of_question_marks(session: Session):
    sql = "SELECT id FROM db.orders WHERE region = ? OR amount < ? ORDER BY id"

    assert session.rows(sql, ["us", 2.0]) == [(1,), (2,), (4,)]
    assert session.rows(sql, ["x'; DROP TABLE db.orders --", -100.0]) == []
    assert session.rows("SELECT n FROM db.numbers WHERE n < 10 LIMIT ?", [3]).__len__() == 3


# --- streams -------------------------------------------------------------------------------------


@pytest.mark.able("stream")
def test_a_large_answer_comes_bit_by_bit(session: Session):
    stream = session.stream("SELECT n FROM db.numbers")

    sizes = []
    while rows := stream.read():
        sizes.append(rows)
    stream.cancel()

    assert sum(sizes) == NUMBERS
    assert len(sizes) > 10


@pytest.mark.able("stream")
def test_a_computed_answer_comes_bit_by_bit(session: Session):
    stream = session.stream("SELECT n + 1 AS n, n % 7 AS day FROM db.numbers ORDER BY n DESC")

    sizes = []
    while rows := stream.read():
        sizes.append(rows)
    stream.cancel()

    assert sum(sizes) == NUMBERS
    assert len(sizes) > 10


@pytest.mark.able("stream")
def test_what_is_given_up_ends_at_the_workers(session: Session, fleet: LocalFleet):
    # far more than the buffers of both sides hold
    sql = "SELECT a.n AS n, b.n AS m FROM db.numbers a CROSS JOIN db.numbers b"
    stream = session.stream(sql)
    assert stream.read() > 0
    wait_until(lambda: streams(fleet) > 0, "the statement to run")

    stream.cancel()

    wait_until(lambda: streams(fleet) == 0, "the workers to end it")
    assert session.rows("SELECT 1 AS one") == [(1,)]


def streams(fleet: LocalFleet) -> int:
    return sum(worker.status()["streams"] for worker in fleet.workers)


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM db.ordrs", "[UNKNOWN_TABLE]"),
        ("SELECT nope FROM db.orders", "[BAD_SQL]"),
        ("SELEKT 1", "[BAD_SQL]"),
        ("DROP TABLE db.orders", "[READ_ONLY]"),
        ("SELECT CAST(region AS INTEGER) AS n FROM db.orders", "[SQL_FAILED]"),
    ],
)
def test_what_is_wrong_has_its_code_and_says_what_to_do(
    client: Client, session: Session, sql: str, code: str
):
    if client.name == "polars.read_database" and sql.startswith("DROP"):
        code = "not valid 'read' queries"  # it refuses that itself
    assert code in refusal(session, sql)


# --- who asks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shown", [Shown(token=ANN), Shown(username="ann", password=PASSWORD)], ids=["token", "password"]
)
@pytest.mark.able("login")
def test_it_says_who_asks(client: Client, guarded: LocalFleet, shown: Shown):
    with client.connect(guarded.location, shown) as ann:
        assert ann.rows("SELECT max(id) AS most FROM db.orders") == [(4,)]
        assert len(ann.rows("SELECT id FROM db.orders")) == 4


@pytest.mark.able("login")
def test_each_caller_reads_what_policies_let_it(client: Client, guarded: LocalFleet):
    with client.connect(guarded.location, Shown(token=BOB)) as bob:
        assert bob.rows("SELECT count(*) AS n FROM db.numbers") == [(NUMBERS,)]
        assert "[UNKNOWN_TABLE]" in refusal(bob, "SELECT id FROM db.orders")


def test_nobody_is_refused(client: Client, guarded: LocalFleet):
    with client.connect(guarded.location) as nobody:
        assert "[UNAUTHENTICATED]" in refusal(nobody, "SELECT id FROM db.orders")


# --- partitions ----------------------------------------------------------------------------------


@pytest.mark.able("partitions")
@pytest.mark.parametrize(
    ("sql", "least"),
    [
        ("SELECT n FROM db.numbers", 2),
        ("SELECT n AS m FROM db.numbers", 2),
        ("SELECT DISTINCT n FROM db.numbers", 1),
    ],
)
def test_parts_are_read_by_another_connection(
    client: Client, session: Session, fleet: LocalFleet, sql: str, least: int
):
    parts = session.partitions(sql)
    assert len(parts) >= least

    with client.connect(fleet.location) as other:
        found = [row[0] for part in parts for row in other.read_partition(part)]

    assert sorted(found) == list(range(NUMBERS))


# --- what only one of them does ------------------------------------------------------------------


def test_sqlalchemy_writes_statements_of_its_own(fleet: LocalFleet):
    with SqlAlchemy().connect(fleet.location) as session:
        assert isinstance(session, AlchemySession)
        orders = session.table("db", "orders")
        statement = (
            sqlalchemy.select(orders.c.region, sqlalchemy.func.sum(orders.c.amount).label("total"))
            .where(orders.c.amount > 0)
            .group_by(orders.c.region)
            .order_by(orders.c.region)
            .limit(5)
        )

        assert session.select(statement) == [("eu", 1.5), ("us", 2.5)]
