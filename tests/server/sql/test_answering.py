"""Queries in SQL, over a coordinator and two workers, by ADBC's unmodified driver."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi
import adbc_driver_manager
import duckdb
import pyarrow as pa
import pyarrow.flight as fl
import pytest
from adbc_driver_manager import dbapi

from floeberg.process.flight import ONE_ENDPOINT_HEADER
from floeberg.protocol.flight_sql.wire import pack
from floeberg.protocol.sql_tickets import SqlInput, is_sql_ticket, open_sql_ticket
from tests.support.callers import BOB, secret_file, token_file
from tests.support.fleet import LocalFleet, local_fleet, read_all
from tests.support.gate import now_ms
from tests.support.lake import TableWriter, required, schema, struct
from tests.support.waiting import wait_until

AUTHORIZATION = "adbc.flight.sql.authorization_header"
OPTION = "adbc.flight.sql.session.option."


@pytest.fixture(scope="module", autouse=True)
def no_tracebacks() -> Iterator[None]:
    sys.tracebacklimit = 0
    yield
    del sys.tracebacklimit


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`db.orders`, of 800 rows in eight snapshots, 50 deleted later, and `db.people`."""
    lake = tmp_path_factory.mktemp("lake")
    orders = TableWriter.create(
        lake / "db" / "orders",
        schema(
            {
                "id": required("long"),
                "region": "string",
                "amount": "double",
                "moment": "timestamptz",
                "who": struct({"id": "long", "name": "string"}),
            }
        ),
    )
    for first in range(0, 800, 100):
        (path,) = orders.append([_order(number) for number in range(first, first + 100)])
    orders.tag("first", orders.metadata["snapshots"][0]["snapshot-id"])
    orders.delete_positions({path: list(range(50))})
    people = TableWriter.create(
        lake / "db" / "people", schema({"id": required("long"), "name": "string"})
    )
    people.append([{"id": number, "name": f"p{number}"} for number in range(5)])
    return lake


def _order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "region": ("eu", "us", None)[number % 3],
        "amount": float("nan") if number % 100 == 99 else number / 4,
        "moment": number * 3_600_000_000,
        "who": None if number % 7 == 0 else {"id": number % 5, "name": f"n{number % 5}"},
    }


@pytest.fixture(scope="module")
def fleet(lake: Path) -> Iterator[LocalFleet]:
    with local_fleet(lake, workers=2) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def connection(fleet: LocalFleet) -> Iterator[dbapi.Connection]:
    with connect(fleet.location) as connection:
        yield connection


@pytest.fixture(scope="module")
def local(connection: dbapi.Connection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The whole tables in a DuckDB."""
    with duckdb.connect() as local:
        local.execute("SET TimeZone = 'UTC'")
        local.execute("CREATE SCHEMA db")
        for name in ("orders", "people"):
            rows = answer(connection, f"SELECT * FROM db.{name}")
            local.register("rows", rows)
            local.execute(f"CREATE TABLE db.{name} AS FROM rows")
        yield local


def connect(location: str, **options: str) -> dbapi.Connection:
    return adbc_driver_flightsql.dbapi.connect(location, options, autocommit=True)


def answer(connection: dbapi.Connection, sql: str, parameters: Any = None) -> pa.Table:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetch_arrow_table()


def explained(connection: dbapi.Connection, sql: str) -> dict[str, str]:
    rows = answer(connection, f"EXPLAIN {sql}").to_pylist()
    return {row["item"]: row["value"] for row in rows}


def road(connection: dbapi.Connection, sql: str) -> str:
    return explained(connection, sql)["road"].partition(":")[0]


def refusal(connection: dbapi.Connection, sql: str, parameters: Any = None) -> str:
    with pytest.raises(adbc_driver_manager.Error) as raised:
        answer(connection, sql, parameters)
    assert "Traceback" not in str(raised.value)
    return str(raised.value)


def in_any_order(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


# --- roads ---------------------------------------------------------------------------------------

QUERIES = [
    ("scan", "SELECT * FROM db.orders"),
    ("scan", "SELECT region, id FROM db.orders WHERE id < 250 AND region = 'eu'"),
    ("scan", "SELECT id FROM db.orders WHERE region IS NULL OR id IN (1, 2, 3)"),
    ("projection", "SELECT id AS number, region AS id FROM db.orders WHERE id >= 790"),
    ("projection", "SELECT who.name, id, id AS again FROM db.orders WHERE id < 20"),
    ("fragments", "SELECT #2, #1 FROM db.orders WHERE region = 'eu' AND id < 30"),
    ("fragments", "SELECT upper(region) AS r, id % 7 AS m FROM db.orders WHERE id % 2 = 0"),
    ("fragments", "SELECT count(*), sum(id), min(moment), max(region), avg(id) FROM db.orders"),
    ("fragments", "SELECT region, count(*) AS n FROM db.orders GROUP BY 1 HAVING count(*) > 1"),
    ("fragments", "SELECT count(*) FROM db.orders"),
    ("fragments", "SELECT count(*) AS n, count(1) FROM db.orders WHERE region IS NULL"),
    ("fragments", "SELECT count(*) FROM db.orders WHERE id >= 300"),
    ("metadata", "SELECT count(*) FROM db.orders WHERE 1 = 0"),
    ("metadata", "SELECT count(*) FROM db.people"),
    ("metadata", "SELECT count(*) AS n, count(1) FROM db.people WHERE id IS NOT NULL"),
    ("fragments", "SELECT DISTINCT region FROM db.orders"),
    ("fragments", "SELECT id, moment FROM db.orders ORDER BY moment DESC, id LIMIT 7"),
    ("fragments", "SELECT count(DISTINCT region) FROM db.orders"),
    ("engine", "SELECT o.id, p.name FROM db.orders o JOIN db.people p ON o.who.id = p.id"),
    ("engine", "SELECT id FROM db.orders ORDER BY id LIMIT 9223372036854775807 OFFSET 745"),
    ("engine", "SELECT id, row_number() OVER (ORDER BY id) FROM db.orders WHERE id < 10"),
    ("engine", "WITH big AS (SELECT * FROM db.orders WHERE id > 700) "
               "SELECT a.id FROM big a, big b WHERE a.id = b.id + 1"),
    ("engine", "SELECT id FROM db.people UNION ALL SELECT id FROM db.orders WHERE id < 3"),
    ("engine", "SELECT name FROM db.people WHERE id = (SELECT max(id) FROM db.people)"),
    ("engine", "SELECT 1 AS one, 'x' AS text, NULL AS nothing"),
    ("engine", "VALUES (1, 'a'), (2, 'b')"),
    ("engine", "SELECT * FROM generate_series(1, 3)"),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "sql"), QUERIES)
def test_each_query_takes_its_road_to_the_rows_that_duckdb_gives(
    connection: dbapi.Connection, local: duckdb.DuckDBPyConnection, expected: str, sql: str
) -> None:
    found = answer(connection, sql)

    assert road(connection, sql) == expected
    wanted = local.sql(sql).to_arrow_table()
    assert found.schema.types == wanted.schema.types
    assert in_any_order(found.rename_columns(wanted.column_names)) == in_any_order(wanted)


def test_an_order_is_kept(connection: dbapi.Connection) -> None:
    found = answer(connection, "SELECT id FROM db.orders WHERE id < 40 ORDER BY region, id DESC")

    expected = sorted(range(40), key=lambda n: (("eu", "us", "~")[n % 3], -n))
    assert found["id"].to_pylist() == expected


@pytest.mark.parametrize("limit", [0, 1, 99, 100, 101, 750, 10_000])
def test_a_limit_is_exact_on_each_road(connection: dbapi.Connection, limit: int) -> None:
    for columns in ("id, region", "id AS x", "id + 1"):
        found = answer(connection, f"SELECT {columns} FROM db.orders LIMIT {limit}")
        assert found.num_rows == min(limit, 750)
    offset = answer(connection, f"SELECT id FROM db.orders LIMIT {limit} OFFSET 740")
    assert offset.num_rows == min(limit, 10)


def test_fragments_run_where_their_rows_are_read(fleet: LocalFleet) -> None:
    command = pack("CommandStatementQuery", query="SELECT id + 1 FROM db.orders")
    with fl.connect(fleet.location) as client:
        info = client.get_flight_info(fl.FlightDescriptor.for_command(command))

    assert len(info.endpoints) >= 2
    assert all(is_sql_ticket(endpoint.ticket.ticket) for endpoint in info.endpoints)
    assert len({endpoint.locations[0].uri for endpoint in info.endpoints}) == 2
    assert read_all(info).num_rows == 750
    assert json.loads(info.app_metadata)["road"] == "fragments"


def test_a_plain_scan_has_the_tickets_of_a_scan(fleet: LocalFleet) -> None:
    command = pack("CommandStatementQuery", query="SELECT id FROM db.orders")
    with fl.connect(fleet.location) as client:
        asked = client.get_flight_info(fl.FlightDescriptor.for_command(command))
        scan = client.get_flight_info(
            fl.FlightDescriptor.for_command(json.dumps({"table": "db.orders", "select": ["id"]}))
        )

    assert asked.schema == scan.schema
    assert not any(is_sql_ticket(endpoint.ticket.ticket) for endpoint in asked.endpoints)
    assert in_any_order(read_all(asked)) == in_any_order(read_all(scan))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM db.orders",
        "SELECT id AS x FROM db.orders",
        "SELECT id + 1 FROM db.orders",
        "SELECT count(*) FROM db.orders",
        "EXPLAIN SELECT 1",
        "DESCRIBE db.orders",
        "SHOW TABLES",
        "SELECT a.id FROM db.orders a, db.people b WHERE a.id = b.id",
    ],
)
def test_clients_that_read_one_endpoint_get_all_rows_in_it(fleet: LocalFleet, sql: str) -> None:
    descriptor = fl.FlightDescriptor.for_command(pack("CommandStatementQuery", query=sql))
    headers: Any = [(ONE_ENDPOINT_HEADER.encode(), b"true")]
    with fl.connect(fleet.location) as client:
        info = client.get_flight_info(descriptor, fl.FlightCallOptions(headers=headers))
        (endpoint,) = info.endpoints
        assert endpoint.locations == []
        found = client.do_get(endpoint.ticket).read_all()
        several = client.get_flight_info(descriptor)
        expected = pa.concat_tables(
            _read_here_or_there(client, endpoint) for endpoint in several.endpoints
        )

    assert found.schema == info.schema == several.schema
    assert in_any_order(found) == in_any_order(expected)


def _read_here_or_there(client: fl.FlightClient, endpoint: fl.FlightEndpoint) -> pa.Table:
    if not endpoint.locations:
        return client.do_get(endpoint.ticket).read_all()
    with fl.connect(endpoint.locations[0]) as worker:
        return worker.do_get(endpoint.ticket).read_all()


# --- what names and parameters mean --------------------------------------------------------------


def test_parameters_are_values(connection: dbapi.Connection) -> None:
    sql = "SELECT id FROM db.orders WHERE id < ? AND region = ? ORDER BY id"

    assert answer(connection, sql, (10, "eu"))["id"].to_pylist() == [0, 3, 6, 9]
    assert answer(connection, sql, (4, "us"))["id"].to_pylist() == [1]
    assert answer(connection, sql, (10, "eu' OR 'a' = 'a")).num_rows == 0
    assert "[BAD_SQL] parameters in the statement: 2, values given: 1" in refusal(
        connection, sql, (1,)
    )


def test_a_column_that_is_not_there_is_suggested_from_the_whole_table(
    connection: dbapi.Connection,
) -> None:
    assert 'there is "region"' in refusal(connection, "SELECT count(regio) FROM db.orders")


@pytest.mark.parametrize("version", ["VERSION AS OF 'first'", "AT (VERSION => 'first')"])
def test_a_version_is_read(connection: dbapi.Connection, version: str) -> None:
    assert answer(connection, f"SELECT * FROM db.orders {version}").num_rows == 100
    assert answer(connection, 'SELECT count(*) FROM db."orders@first"')[0][0].as_py() == 100
    joined = f"SELECT count(*) FROM db.orders {version} a JOIN db.orders b USING (id)"
    assert answer(connection, joined)[0][0].as_py() == 100


def test_a_session_says_what_names_leave_open(fleet: LocalFleet) -> None:
    with connect(fleet.location) as connection:
        for name, value in (("schema", "db"), ("ref", "first"), ("timezone", "Asia/Tokyo")):
            wait_until(partial(_is_set, connection, name, value), f"the session to have {name}")

        assert answer(connection, "SELECT count(*) FROM orders")[0][0].as_py() == 100
        assert answer(connection, "SELECT current_schema()")[0][0].as_py() == "db"
        assert answer(connection, "SELECT hour(moment) FROM orders WHERE id = 0")[0][0].as_py() == 9


def _is_set(connection: dbapi.Connection, name: str, value: str) -> bool:
    """Set an option, and say whether the session has it: the driver loses the token of an answer
    now and then."""
    connection.adbc_connection.set_options(**{OPTION + name: value})
    try:
        return connection.adbc_connection.get_option(OPTION + name) == value
    except adbc_driver_manager.Error:
        return False  # the session has no such option


def test_a_table_is_told_of_by_its_metadata_tables(connection: dbapi.Connection) -> None:
    files = answer(
        connection, "SELECT content, count(*), sum(record_count) FROM db.orders.files GROUP BY 1"
    )
    assert in_any_order(files.rename_columns(["content", "files", "rows"])) == [
        "{'content': 0, 'files': 8, 'rows': Decimal('800')}",
        "{'content': 1, 'files': 1, 'rows': Decimal('50')}",
    ]
    snapshots = answer(connection, 'SELECT operation FROM db."orders$snapshots"')
    assert snapshots["operation"].to_pylist() == ["append"] * 8 + ["delete"]
    first = answer(connection, "SELECT * FROM db.orders.files VERSION AS OF 'first'")
    assert first.num_rows == 1


def test_the_information_schema_lists_what_there_is(connection: dbapi.Connection) -> None:
    sql = (
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_name = 'people' ORDER BY ordinal_position"
    )
    assert answer(connection, sql).to_pylist() == [
        {"column_name": "id", "data_type": "BIGINT"},
        {"column_name": "name", "data_type": "VARCHAR"},
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(DISTINCT _file) AS n, count(*) AS m FROM db.orders", [(8, 750)]),
        ("SELECT id, o._POS FROM db.orders AS o WHERE _pos = 99 AND id < 150", [(99, 99)]),
        (
            "SELECT count(*) AS n FROM (SELECT _file AS f FROM db.orders) AS a"
            " JOIN db.orders.files AS b ON a.f = b.file_path",
            [(750,)],
        ),
        ("SELECT _file, count(*) AS n FROM db.people GROUP BY _file HAVING false", []),
        ("SELECT max(_spec_id), count(_row_id) FROM db.people", [(0, 0)]),
    ],
)
def test_metadata_columns_can_be_named(
    connection: dbapi.Connection, sql: str, expected: list[tuple[Any, ...]]
) -> None:
    found = answer(connection, sql)
    assert [tuple(row.values()) for row in found.to_pylist()] == expected


def test_metadata_columns_are_not_among_all(connection: dbapi.Connection) -> None:
    assert answer(connection, "SELECT * FROM db.people").column_names == ["id", "name"]
    assert "name the columns" in refusal(connection, "SELECT *, _file FROM db.people")
    assert "[BAD_SQL]" in refusal(connection, "SELECT _file FROM db.people.files")


def test_tables_are_shown_and_described(connection: dbapi.Connection) -> None:
    def rows(sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in answer(connection, sql).to_pylist()]

    assert rows("SHOW TABLES") == [("db.orders",), ("db.people",)]
    assert rows("SHOW TABLES FROM DB") == [("orders",), ("people",)]
    assert [row[1] for row in rows("SHOW SCHEMAS")] == ["db"]
    described = rows("DESCRIBE db.orders")
    assert [row[:3] for row in described[:2]] == [
        ("id", "BIGINT", "NO"),
        ("region", "VARCHAR", "YES"),
    ]
    assert "status" in [row[0] for row in rows("DESCRIBE db.orders.entries")]
    query = "DESCRIBE SELECT region, count(*) AS n FROM db.orders WHERE id > ? GROUP BY region"
    with connection.cursor() as cursor:
        cursor.execute(query, (5,))
        assert [row[:2] for row in cursor.fetchall()] == [("region", "VARCHAR"), ("n", "BIGINT")]


# --- EXPLAIN -------------------------------------------------------------------------------------


def test_explain_tells_what_is_read_and_computed(connection: dbapi.Connection) -> None:
    told = explained(
        connection, "SELECT region, count(*) FROM db.orders WHERE id < 150 GROUP BY region"
    )

    assert told["i0 table"] == "warehouse.db.orders"
    assert told["i0 columns"] == "region"
    assert told["i0 filter"] == '["<","id",150]'
    assert told["i0 files"].startswith("2 of 8")
    assert "FROM i0" in told["fragment"]
    assert "GROUP BY" in told["merge"]


def test_explain_needs_no_worker_and_runs_nothing(lake: Path) -> None:
    with (
        local_fleet(lake, workers=0, lease_seconds=0.1) as alone,
        connect(alone.location) as connection,
    ):
        assert road(connection, "SELECT sum(id) FROM db.orders") == "fragments"
        assert "[NO_WORKERS]" in refusal(connection, "SELECT sum(id) FROM db.orders")
        assert "[UNSUPPORTED_SQL]" in refusal(connection, "EXPLAIN ANALYZE SELECT 1")


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELEC 1", "BAD_SQL"),
        ("SELECT missing FROM db.orders", "BAD_SQL"),
        ("SELECT sum(region) FROM db.orders", "BAD_SQL"),
        ("SELECT * FROM db.missing", "UNKNOWN_TABLE"),
        ("SELECT * FROM db.orders VERSION AS OF 'nope'", "UNKNOWN_REF"),
        ("SELECT * FROM db.orders VERSION AS OF 1", "UNKNOWN_SNAPSHOT"),
        ("DELETE FROM db.orders", "READ_ONLY"),
        ("SELECT 1; SELECT 2", "BAD_SQL"),
        ("SELECT * FROM read_parquet('/etc/passwd')", "UNSUPPORTED_SQL"),
        ("SELECT region::INT FROM db.orders", "SQL_FAILED"),
        ("SELECT * FROM information_schema.nope", "UNSUPPORTED_SQL"),
    ],
)
def test_a_refusal_has_a_code(connection: dbapi.Connection, sql: str, code: str) -> None:
    assert f"[{code}]" in refusal(connection, sql)


# --- who asks ------------------------------------------------------------------------------------

POLICIES = """
[[rule]]
principals = ["*"]
tables = ["warehouse.db.orders"]
rows = "region = 'eu'"
mask = ["amount"]
hide = ["who"]
"""


@pytest.fixture(scope="module")
def restricted(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dbapi.Connection]:
    folder = tmp_path_factory.mktemp("secrets")
    auth: dict[str, object] = {"auth_tokens": token_file(folder)}
    policies = secret_file(folder / "policies", POLICIES)
    with local_fleet(lake, workers=0, policies=policies, **auth) as fleet:
        for _ in range(2):
            fleet.add_worker(**auth)
        with connect(fleet.location, **{AUTHORIZATION: f"Bearer {BOB}"}) as connection:
            yield connection


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) FROM db.orders", 251),
        ("SELECT count(*) FROM db.orders WHERE region = 'us'", 0),
        ("SELECT count(amount) FROM db.orders", 0),
        ("SELECT count(*) FROM (SELECT region AS r FROM db.orders)", 251),
        ("SELECT count(*) FROM db.orders a JOIN db.orders b USING (id)", 251),
        ("SELECT count(*) FROM (SELECT id FROM db.orders WHERE region IS NULL OR true)", 251),
    ],
)
def test_policies_hold_on_every_road(restricted: dbapi.Connection, sql: str, expected: int) -> None:
    assert answer(restricted, sql)[0][0].as_py() == expected


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT who FROM db.orders", "BAD_SQL"),
        ("SELECT id FROM db.orders WHERE who.id = 1", "BAD_SQL"),
        ("SELECT * FROM db.people", "UNKNOWN_TABLE"),
        ("SELECT * FROM db.orders.files", "NOT_PERMITTED"),
        ("SELECT a.id FROM db.orders a, db.people b", "UNKNOWN_TABLE"),
        ("SELECT _file FROM db.orders", "UNKNOWN_COLUMN"),
    ],
)
def test_what_a_policy_hides_is_not_there(
    restricted: dbapi.Connection, sql: str, code: str
) -> None:
    assert f"[{code}]" in refusal(restricted, sql)


def test_a_restricted_caller_is_not_told_of_files(restricted: dbapi.Connection) -> None:
    told = explained(restricted, "SELECT id, count(*) FROM db.orders GROUP BY id")

    assert told["i0 table"] == "warehouse.db.orders"
    assert "i0 files" not in told
    assert "eu" not in "".join(told.values())


@pytest.mark.parametrize("least", [0, 300, 10_000])
def test_a_restricted_caller_is_not_told_what_bounds_tell(
    restricted: dbapi.Connection, least: int
) -> None:
    assert road(restricted, f"SELECT count(*) FROM db.orders WHERE id >= {least}") == "fragments"


@pytest.mark.parametrize(
    ("taken", "sql"),
    [
        ("scan", "SELECT id FROM db.orders WHERE moment > now() - INTERVAL 7 DAYS"),
        ("scan", "SELECT id FROM db.orders WHERE moment < current_date"),
        ("fragments", "SELECT count(*) FROM db.orders WHERE moment < now() - INTERVAL '1' MONTH"),
        ("fragments", "SELECT max(today() - CAST(moment AS DATE)) FROM db.orders"),
    ],
)
def test_the_time_of_a_statement_is_a_value_on_every_road(
    connection: dbapi.Connection, local: duckdb.DuckDBPyConnection, taken: str, sql: str
) -> None:
    assert road(connection, sql) == taken
    found = sorted(answer(connection, sql).to_pydict().values())
    assert found == sorted(local.sql(sql).to_arrow_table().to_pydict().values())


def test_a_prepared_statement_has_the_time_at_which_it_is_run(
    connection: dbapi.Connection,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT now() AS at, ? AS n", (1,))
        first = cursor.fetchall()[0][0]
        wait_until(lambda: datetime.now(UTC) - first > timedelta(milliseconds=5), "time to pass")
        cursor.execute("SELECT now() AS at, ? AS n", (1,))
        second = cursor.fetchall()[0][0]
    assert first < second


def test_a_scan_that_stands_in_a_statement_twice_is_planned_once(fleet: LocalFleet) -> None:
    sql = "SELECT * FROM db.orders WHERE id < 150 UNION ALL SELECT * FROM db.orders WHERE id < {}"

    def inputs(other: int) -> list[SqlInput]:
        command = pack("CommandStatementQuery", query=sql.format(other))
        with fl.connect(fleet.location) as client:
            info = client.get_flight_info(fl.FlightDescriptor.for_command(command))
        (endpoint,) = info.endpoints
        ticket = open_sql_ticket(endpoint.ticket.ticket, fleet.keys, now_ms=now_ms())
        return list(ticket.inputs)

    one, other = inputs(150)
    assert one.endpoints == other.endpoints
    one, other = inputs(151)
    assert one.endpoints != other.endpoints


def test_a_name_that_a_query_gives_is_no_metadata_column(connection: dbapi.Connection) -> None:
    sql = "WITH q AS (SELECT *, id + 1 AS _pos FROM db.people) SELECT max(_pos) AS most FROM q"

    assert answer(connection, sql).to_pydict() == {"most": [5]}
    assert "* stands in a query" in refusal(connection, "SELECT *, _pos FROM db.people")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT listagg(id::text), bool_and((id > 1)::boolean), max(id)::hugeint FROM db.orders",
        "SELECT (SELECT max(id) FROM db.people), id + 1, today(), id FROM db.orders LIMIT 1",
        "SELECT count(*) FROM db.orders",
        "SELECT amount > 5, amount BETWEEN 1 AND 2 FROM db.orders LIMIT 1",
        "WITH q AS (SELECT id FROM db.people) SELECT id::int, 1.50 FROM q UNION ALL SELECT 1, 2",
    ],
)
def test_columns_without_a_name_are_called_as_duckdb_calls_them(
    connection: dbapi.Connection, local: duckdb.DuckDBPyConnection, sql: str
) -> None:
    assert answer(connection, sql).column_names == local.sql(sql).columns
