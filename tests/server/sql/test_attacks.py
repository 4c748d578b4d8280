"""What nobody may do by SQL, tried over a coordinator and a worker by ADBC's driver."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator

import adbc_driver_flightsql.dbapi
import adbc_driver_manager
import pytest
from adbc_driver_manager import dbapi

from tests.support.callers import ANN, BOB, secret_file, token_file
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import TableWriter, required, schema

AUTHORIZATION = "adbc.flight.sql.authorization_header"
EVE = "eves-token-of-24-letters"
TOKENS = {"ann": ANN, "bob": BOB, "eve": EVE}
POLICIES = """
[[rule]]
principals = ["ann"]
tables = ["*"]

[[rule]]
principals = ["bob"]
tables = ["warehouse.shared.*"]

[[limit]]
principals = ["bob"]
rows = 1000

[[rule]]
principals = ["eve"]
tables = ["warehouse.shared.*"]

[[limit]]
principals = ["eve"]
seconds = 2.0
"""


@pytest.fixture(scope="module", autouse=True)
def no_tracebacks() -> Iterator[None]:
    sys.tracebacklimit = 0
    yield
    del sys.tracebacklimit


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """Ann reads all; bob what is shared, and no more than 1,000 rows; eve too, for 2 seconds. A
    statement has 64 MB to itself."""
    folder = tmp_path_factory.mktemp("lake")
    secrets = tmp_path_factory.mktemp("secrets")
    for name in ("shared/orders", "private/salaries"):
        table = TableWriter.create(
            folder / name, schema({"id": required("long"), "what": "string"})
        )
        table.append([{"id": number, "what": f"{name} {number}"} for number in range(3000)])
    auth: dict[str, object] = {"auth_tokens": token_file(secrets, TOKENS)}
    policies = secret_file(secrets / "policies", POLICIES)
    with local_fleet(folder, workers=0, policies=policies, **auth) as fleet:
        fleet.add_worker(sql_memory_bytes=64 << 20, sql_spill_bytes=16 << 20, **auth)
        yield fleet


@pytest.fixture(scope="module")
def bob(fleet: LocalFleet) -> Iterator[dbapi.Connection]:
    with connect(fleet, BOB) as connection:
        yield connection


@pytest.fixture(scope="module")
def ann(fleet: LocalFleet) -> Iterator[dbapi.Connection]:
    with connect(fleet, ANN) as connection:
        yield connection


def connect(fleet: LocalFleet, token: str) -> dbapi.Connection:
    options = {AUTHORIZATION: f"Bearer {token}"}
    return adbc_driver_flightsql.dbapi.connect(fleet.location, options, autocommit=True)


def refusal(connection: dbapi.Connection, sql: str) -> str:
    with connection.cursor() as cursor, pytest.raises(adbc_driver_manager.Error) as raised:
        cursor.execute(sql).fetchall()
    text = str(raised.value)
    assert "Traceback" not in text
    assert ".py" not in text
    return text


FILES = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_parquet('https://example.com/x.parquet')",
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    "FROM 's3://bucket/key.parquet'",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT getenv('HOME')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT current_setting('home_directory')",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('orders')",
    "WITH a AS (SELECT * FROM read_blob('/etc/passwd')) SELECT * FROM a",
    "SELECT (SELECT count(*) FROM read_csv('/etc/passwd'))",
    "SELECT id FROM shared.orders WHERE id IN (SELECT 1 FROM read_csv('/etc/passwd'))",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM pg_catalog.pg_tables",
]
COMMANDS = [
    "COPY shared.orders TO '/tmp/out.csv'",
    "COPY (SELECT 1) TO '/tmp/out.csv'",
    "ATTACH '/tmp/x.db' AS x",
    "DETACH x",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "SET memory_limit = '100GB'",
    "SET GLOBAL enable_external_access = true",
    "RESET memory_limit",
    "USE x",
    "CALL pragma_version()",
    "EXPORT DATABASE '/tmp/x'",
    "IMPORT DATABASE '/tmp/x'",
    "CHECKPOINT",
    "VACUUM",
    "CREATE TABLE t (a INT)",
    "CREATE TABLE t AS SELECT * FROM shared.orders",
    "CREATE MACRO f(a) AS a",
    "CREATE SECRET s (TYPE s3)",
    "INSERT INTO shared.orders VALUES (1, 'x')",
    "UPDATE shared.orders SET id = 1",
    "DELETE FROM shared.orders",
    "MERGE INTO shared.orders USING shared.orders AS o ON true WHEN MATCHED THEN DELETE",
    "TRUNCATE shared.orders",
    "DROP TABLE shared.orders",
    "ALTER TABLE shared.orders ADD COLUMN x INT",
    "GRANT SELECT ON shared.orders TO bob",
    "BEGIN",
    "COMMIT",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "SELECT 1 INTO x",
    "EXPLAIN DELETE FROM shared.orders",
    "WITH gone AS (DELETE FROM shared.orders RETURNING *) SELECT * FROM gone",
]
STACKED = [
    "SELECT 1; DROP TABLE shared.orders",
    "SELECT 1; SET memory_limit = '1GB'",
    "SELECT 1;;SELECT 2",
    "SELECT 1 /* ; */; -- \n ATTACH 'x'",
]
REFUSALS = ("[BAD_SQL]", "[UNSUPPORTED_SQL]", "[READ_ONLY]", "[UNKNOWN_TABLE]")


@pytest.mark.parametrize("sql", [*FILES, *COMMANDS, *STACKED])
def test_nothing_is_reached_but_tables(ann: dbapi.Connection, sql: str) -> None:
    assert any(code in refusal(ann, sql) for code in REFUSALS)


def test_refusals_are_logged_with_who_asked(
    bob: dbapi.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "floeberg")

    refusal(bob, "DROP TABLE shared.orders")
    refusal(bob, "SELECT * FROM private.salaries WHERE what = 'secret'")

    told = [
        (record.message, vars(record)["principal"], vars(record)["code"])
        for record in caplog.records
        if record.message in ("statement refused", "query failed")
    ]
    assert ("statement refused", "bob", "READ_ONLY") in told
    assert ("query failed", "bob", "UNKNOWN_TABLE") in told
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM private.salaries",
        "SELECT * FROM warehouse.private.salaries",
        'SELECT * FROM "private.salaries"',
        "SELECT * FROM PRIVATE.SALARIES",
        "SELECT count(*) FROM private.salaries",
        "SELECT * FROM private.salaries.snapshots",
        'SELECT * FROM private."salaries$files"',
        "SELECT * FROM private.salaries VERSION AS OF 'main'",
        "SELECT o.id FROM shared.orders o JOIN private.salaries s USING (id)",
        "SELECT id FROM shared.orders WHERE id IN (SELECT id FROM private.salaries)",
        "EXPLAIN SELECT * FROM private.salaries",
        "WITH s AS (SELECT * FROM private.salaries) SELECT * FROM s",
        "SELECT * FROM (VALUES (1)) UNION ALL SELECT id FROM private.salaries",
    ],
)
def test_what_another_may_read_is_not_there(bob: dbapi.Connection, sql: str) -> None:
    told = refusal(bob, sql)

    assert "[UNKNOWN_TABLE]" in told
    assert "did you mean" not in told


def test_listings_hold_what_the_caller_may_read(
    bob: dbapi.Connection, ann: dbapi.Connection
) -> None:
    sql = "SELECT table_name FROM information_schema.tables ORDER BY 1"
    with bob.cursor() as his, ann.cursor() as hers:
        assert his.execute(sql).fetchall() == [("orders",)]
        assert hers.execute(sql).fetchall() == [("orders",), ("salaries",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 2000000000)",
        "SELECT lpad('', 1000000000, 'x')",
        "SELECT range(1, 10000000000)",
        "SELECT list_resize([1], 1000000000)",
        "SELECT format('{:>1000000000}', 'x')",
    ],
)
def test_values_without_bounds_are_refused(ann: dbapi.Connection, sql: str) -> None:
    assert "[UNSUPPORTED_SQL]" in refusal(ann, sql)


def test_what_does_not_fit_is_told(ann: dbapi.Connection) -> None:
    sql = "SELECT list(a.range * 7 + b.range) FROM range(100000) a, range(1000) b"

    assert "[QUERY_TOO_LARGE]" in refusal(ann, sql)


def test_a_query_without_end_is_ended(fleet: LocalFleet) -> None:
    sql = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range = -1"

    with connect(fleet, EVE) as eve:
        assert "[LIMIT_EXCEEDED]" in refusal(eve, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM shared.orders",
        "SELECT id AS x FROM shared.orders",
        "SELECT id + 1 FROM shared.orders",
        "SELECT DISTINCT id FROM shared.orders",
        "SELECT a.id FROM shared.orders a JOIN shared.orders b USING (id)",
        "SELECT range FROM range(100000)",
    ],
)
def test_limits_of_rows_hold_on_each_road(bob: dbapi.Connection, sql: str) -> None:
    assert "[LIMIT_EXCEEDED]" in refusal(bob, sql)


def test_a_deep_statement_is_refused(ann: dbapi.Connection) -> None:
    assert "[UNSUPPORTED_SQL]" in refusal(ann, "SELECT " + "(" * 5000 + "1" + ")" * 5000)
    assert "[UNSUPPORTED_SQL]" in refusal(ann, "SELECT 1" + " + 1" * 20_000)


def test_the_fleet_is_well_after_all_of_it(ann: dbapi.Connection) -> None:
    with ann.cursor() as cursor:
        rows = cursor.execute("SELECT count(*), sum(id) FROM shared.orders").fetchall()

    assert [tuple(map(int, row)) for row in rows] == [(3000, 2999 * 1500)]
