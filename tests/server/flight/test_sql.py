"""Flight SQL's control plane, as stock clients meet it: ADBC's driver, and bare Flight calls."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi
import adbc_driver_manager
import pyarrow as pa
import pyarrow.flight as fl
import pytest
from adbc_driver_manager import dbapi

from floeberg.protocol.errors import FloebergError
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.flight_sql import decode_command
from floeberg.protocol.flight_sql.wire import decode, encode, pack, unpack_body
from floeberg.server.sql.service import listing_schema
from tests.support.callers import ANN, BOB, bearing, password_file, secret_file, token_file
from tests.support.fleet import LocalFleet, local_fleet, read_all
from tests.support.lake import TableWriter, required, schema
from tests.support.statements import WholeTables
from tests.support.waiting import wait_until

QUERY = "SELECT * FROM db.orders"
OPTION = "adbc.flight.sql.session.option."
AUTHORIZATION = "adbc.flight.sql.authorization_header"
PASSWORD = "correct horse"
POLICIES = """
[[rule]]
principals = ["ann"]
tables = ["*"]

[[rule]]
principals = ["bob"]
tables = ["warehouse.crm.*"]
hide = ["email"]
"""


@pytest.fixture(scope="module", autouse=True)
def no_tracebacks() -> Iterator[None]:
    sys.tracebacklimit = 0
    yield
    del sys.tracebacklimit


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`db.orders`, of 800 rows in eight snapshots, and `crm.customers`."""
    lake = tmp_path_factory.mktemp("lake")
    orders = TableWriter.create(
        lake / "db" / "orders",
        schema({"id": required("long"), "region": "string", "amount": "double"}),
    )
    for first in range(0, 800, 100):
        orders.append([{"id": i, "amount": i / 2} for i in range(first, first + 100)])
    orders.tag("first", orders.metadata["snapshots"][0]["snapshot-id"])
    TableWriter.create(
        lake / "crm" / "customers", schema({"id": required("long"), "email": "string"})
    )
    return lake


@pytest.fixture(scope="module")
def fleet(lake: Path) -> Iterator[LocalFleet]:
    with local_fleet(lake, workers=1, make_statements=WholeTables) as fleet:
        yield fleet


@pytest.fixture(scope="module")
def other(fleet: LocalFleet, lake: Path) -> Iterator[LocalFleet]:
    """Another coordinator, with the same keys."""
    with local_fleet(lake, workers=0, key=fleet.keys.to_text(), lease_seconds=0.1) as other:
        yield other


@pytest.fixture(scope="module")
def guarded(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """Every service asks who calls, and bob may see less than ann."""
    folder = tmp_path_factory.mktemp("secrets")
    auth: dict[str, object] = {
        "auth_tokens": token_file(folder),
        "auth_passwords": password_file(folder, ann=PASSWORD),
    }
    policies = secret_file(folder / "policies", POLICIES)
    with local_fleet(
        lake, workers=0, make_statements=WholeTables, policies=policies, **auth
    ) as fleet:
        fleet.add_worker(**auth)
        yield fleet


def connect(location: str, **options: str) -> dbapi.Connection:
    return adbc_driver_flightsql.dbapi.connect(location, options, autocommit=True)


@pytest.fixture
def connection(fleet: LocalFleet) -> Iterator[dbapi.Connection]:
    with connect(fleet.location) as connection:
        yield connection


def refusal(call: Callable[[], object]) -> adbc_driver_manager.Error:
    """Return the error of a call by ADBC, told without anything of the server's inside."""
    with pytest.raises(adbc_driver_manager.Error) as raised:
        call()
    assert "Traceback" not in str(raised.value)
    assert ".py" not in str(raised.value)
    return raised.value


def tables_of(connection: dbapi.Connection, **filters: Any) -> list[str]:
    objects = connection.adbc_get_objects(depth="tables", **filters).read_all().to_pylist()
    return [
        ".".join((catalog["catalog_name"], namespace["db_schema_name"], table["table_name"]))
        for catalog in objects
        for namespace in catalog["catalog_db_schemas"]
        for table in namespace["db_schema_tables"]
    ]


def count(connection: dbapi.Connection, sql: str) -> int:
    with connection.cursor() as cursor:
        return cursor.execute(sql).fetch_arrow_table().num_rows


def option(connection: dbapi.Connection, name: str, value: str) -> None:
    """Set an option of the session. The driver loses the token of an answer now and then, so it is
    set until the session tells it."""

    def is_told() -> bool:
        connection.adbc_connection.set_options(**{OPTION + name: value})
        try:
            return connection.adbc_connection.get_option(OPTION + name) == value
        except adbc_driver_manager.Error:
            return False  # the session has no such option

    wait_until(is_told, f"the session to have {name}")


# --- browsing ------------------------------------------------------------------------------------


def test_a_tool_browses_at_every_depth(connection: dbapi.Connection):
    found: dict[str, Any] = {
        depth: connection.adbc_get_objects(depth=depth).read_all().to_pylist()  # type: ignore[arg-type]
        for depth in ("catalogs", "db_schemas", "tables", "columns", "all")
    }

    assert [c["catalog_name"] for c in found["catalogs"]] == ["warehouse"]
    (schemas,) = (c["catalog_db_schemas"] for c in found["db_schemas"])
    assert [s["db_schema_name"] for s in schemas] == ["crm", "db"]
    assert tables_of(connection) == ["warehouse.crm.customers", "warehouse.db.orders"]
    assert found["all"] == found["columns"]
    (catalog,) = found["columns"]
    (table,) = catalog["catalog_db_schemas"][1]["db_schema_tables"]
    assert table["table_type"] == "table"
    assert [
        (c["column_name"], c["ordinal_position"], c["xdbc_type_name"], c["xdbc_scope_schema"])
        for c in table["table_columns"]
    ] == [("id", 1, "BIGINT", "db"), ("region", 2, "VARCHAR", "db"), ("amount", 3, "DOUBLE", "db")]


def test_a_tool_browses_by_patterns(connection: dbapi.Connection):
    assert tables_of(connection, table_name_filter="ord%") == ["warehouse.db.orders"]
    assert tables_of(connection, db_schema_filter="cr_") == ["warehouse.crm.customers"]
    assert tables_of(connection, table_types_filter=["TABLE"], table_name_filter="o%") != []
    # as pandas looks for the text of a query
    assert tables_of(connection, table_name_filter="SELECT * FROM db.orders LIMIT 5") == []
    assert connection.adbc_get_table_types() == ["table"]


def test_a_table_is_described(connection: dbapi.Connection, fleet: LocalFleet):
    described = connection.adbc_get_table_schema("orders", db_schema_filter="db")

    with fl.connect(fleet.location) as client:
        scanned = client.get_schema(fl.FlightDescriptor.for_path("db", "orders")).schema
    assert described.remove_metadata().equals(scanned.remove_metadata())
    assert [f.nullable for f in described] == [False, True, True]
    # a pattern finds it, and a name doesn't
    error = refusal(lambda: connection.adbc_get_table_schema("order_"))
    assert str(error).startswith("NOT_FOUND")


def test_a_damaged_table_says_why_it_is_not_described(tmp_path: Path):
    table = TableWriter.create(tmp_path / "db" / "damaged", schema({"id": "long"}))
    table.metadata_path.write_text("{")
    with local_fleet(tmp_path, workers=0) as fleet, connect(fleet.location) as connection:
        error = refusal(lambda: connection.adbc_get_table_schema("damaged"))

        assert "[CORRUPT_METADATA]" in str(error)
        assert tables_of(connection) == ["warehouse.db.damaged"]


def test_a_tool_asks_what_the_server_is(connection: dbapi.Connection):
    info = connection.adbc_get_info()

    assert info["vendor_name"] == "floeberg"
    assert info["vendor_arrow_version"] == pa.__version__
    with pytest.raises(adbc_driver_manager.NotSupportedError):
        connection.adbc_connection.set_autocommit(False)


COMMANDS = [
    pack("CommandGetSqlInfo"),
    pack("CommandGetXdbcTypeInfo"),
    pack("CommandGetCatalogs"),
    pack("CommandGetDbSchemas", db_schema_filter_pattern="d%"),
    pack("CommandGetTables"),
    pack("CommandGetTables", include_schema=True, table_types=["TABLE"]),
    pack("CommandGetTableTypes"),
    pack("CommandGetPrimaryKeys", table="orders"),
    pack("CommandGetExportedKeys", table="orders"),
    pack("CommandGetImportedKeys", table="orders"),
    pack("CommandGetCrossReference", pk_table="orders", fk_table="customers"),
]


def test_each_listing_has_the_schema_that_it_was_announced_with(fleet: LocalFleet):
    with fl.connect(fleet.location) as client:
        for raw in COMMANDS:
            info = client.get_flight_info(fl.FlightDescriptor.for_command(raw))

            (endpoint,) = info.endpoints
            assert endpoint.locations == []
            rows = client.do_get(endpoint.ticket).read_all()
            listed = decode_command(raw)
            assert rows.schema == info.schema == listing_schema(listed)  # type: ignore[arg-type]
            assert client.get_schema(info.descriptor).schema == info.schema
            assert rows.num_rows > 0 or "Keys" in str(listed)


def test_a_long_listing_comes_in_messages_that_clients_take(tmp_path: Path):
    for number in range(20):
        wide = {f"column_{n}_{'x' * 800}": "string" for n in range(100)}
        TableWriter.create(tmp_path / "wide" / f"t{number:02}", schema(wide))
    with local_fleet(tmp_path, workers=0) as fleet, connect(fleet.location) as connection:
        with fl.connect(fleet.location) as client:
            raw = pack("CommandGetTables", include_schema=True)
            stream = client.do_get(fl.Ticket(raw))
            sizes = [chunk.data.nbytes for chunk in stream]
        listed = connection.adbc_get_objects(depth="columns").read_all().to_pylist()

    assert max(sizes) < 4 << 20
    assert len(sizes) > 1
    (tables,) = (s["db_schema_tables"] for s in listed[0]["catalog_db_schemas"])
    assert [len(t["table_columns"]) for t in tables] == [100] * 20


# --- who browses ---------------------------------------------------------------------------------


def test_a_caller_browses_what_policies_let_it_see(guarded: LocalFleet):
    with (
        connect(guarded.location, username="ann", password=PASSWORD) as ann,
        connect(guarded.location, **{AUTHORIZATION: f"Bearer {BOB}"}) as bob,
    ):
        assert tables_of(ann) == ["warehouse.crm.customers", "warehouse.db.orders"]
        assert tables_of(bob) == ["warehouse.crm.customers"]
        assert ann.adbc_get_table_schema("customers").names == ["id", "email"]
        assert bob.adbc_get_table_schema("customers").names == ["id"]
        refusal(lambda: bob.adbc_get_table_schema("orders"))
        assert count(ann, QUERY) == 800
        error = refusal(lambda: count(bob, QUERY))
        assert "[UNKNOWN_TABLE] no table 'db.orders'" in str(error)


def test_nothing_is_answered_to_who_is_not_known(guarded: LocalFleet):
    calls: list[Callable[[fl.FlightClient], object]] = [
        *(
            lambda c, raw=raw: c.get_flight_info(fl.FlightDescriptor.for_command(raw))
            for raw in (*COMMANDS, pack("CommandStatementQuery", query=QUERY))
        ),
        *(lambda c, raw=raw: c.do_get(fl.Ticket(raw)).read_all() for raw in COMMANDS),
        *(
            lambda c, name=name: list(c.do_action(fl.Action(name, b"")))
            for name in ("SetSessionOptions", "GetSessionOptions", "CloseSession", "CancelQuery")
        ),
    ]
    with fl.connect(guarded.location) as client:
        for call in calls:
            with pytest.raises(fl.FlightUnauthenticatedError):
                call(client)


# --- sessions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"adbc.flight.sql.rpc.with_cookie_middleware": "true"},
        {AUTHORIZATION: f"Bearer {ANN}"},
        {"username": "ann", "password": PASSWORD},
    ],
    ids=["nobody", "cookies", "token", "password"],
)
def test_options_last_for_the_session_and_hold_for_its_queries(
    fleet: LocalFleet, guarded: LocalFleet, options: dict[str, str]
):
    is_guarded = AUTHORIZATION in options or "username" in options
    with connect((guarded if is_guarded else fleet).location, **options) as connection:
        assert connection.adbc_current_catalog == "warehouse"
        assert connection.adbc_current_db_schema == ""

        option(connection, "schema", "db")
        option(connection, "ref", "first")

        assert connection.adbc_current_db_schema == "db"
        assert count(connection, "SELECT * FROM orders") == 100

        def rows_of_main() -> int:
            erasure = {"adbc.flight.sql.session.optionerase.ref": ""}
            connection.adbc_connection.set_options(**erasure)
            return count(connection, "SELECT * FROM orders")

        wait_until(lambda: rows_of_main() == 800, "the session to forget its ref")


def test_a_prepared_statement_stays_in_the_session_that_it_began_in(
    connection: dbapi.Connection,
):
    with connection.cursor() as cursor:
        cursor.adbc_prepare(QUERY)
        option(connection, "ref", "nope")

        assert cursor.execute(QUERY).fetch_arrow_table().num_rows == 800
        assert "[UNKNOWN_REF]" in str(refusal(lambda: count(connection, QUERY)))


def test_a_session_is_known_to_every_coordinator(fleet: LocalFleet, other: LocalFleet):
    headers: list[tuple[bytes, bytes]] = []

    class Keeping(fl.ClientMiddleware):
        def received_headers(self, received: dict[str, list[str]]) -> None:
            for value in received.get("authorization", ()):
                headers[:] = [(b"authorization", value.encode())]

    class Factory(fl.ClientMiddlewareFactory):
        def start_call(self, info: fl.CallInfo) -> fl.ClientMiddleware:
            return Keeping()

    with (
        fl.connect(fleet.location, middleware=[Factory()]) as one,
        fl.connect(other.location) as another,
    ):
        value = decode("SessionOptionValue", b"\x0a\x02db")
        body = encode("SetSessionOptionsRequest", session_options={"schema": value})
        list(one.do_action(fl.Action("SetSessionOptions", body)))

        (result,) = another.do_action(
            fl.Action("GetSessionOptions", b""), fl.FlightCallOptions(headers=headers)
        )

    told = decode("GetSessionOptionsResult", result.body.to_pybytes()).session_options
    assert told["schema"].string_value == "db"
    assert told["catalog"].string_value == "warehouse"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("catlog", "warehouse", "'catlog' (invalid name)"),
        ("catalog", "elsewhere", "'catalog' (invalid value)"),
        ("snapshot_id", "newest", "'snapshot_id' (invalid value)"),
        ("timezone", "Mars/Olympus", "'timezone' (invalid value)"),
    ],
)
def test_options_that_cannot_be_set_are_named(
    connection: dbapi.Connection, name: str, value: str, why: str
):
    error = refusal(lambda: option(connection, name, value))

    assert why in str(error)
    assert connection.adbc_current_catalog == "warehouse"


def test_what_a_session_says_is_wrong_where_it_is_used(connection: dbapi.Connection):
    option(connection, "ref", "nope")

    error = refusal(lambda: count(connection, QUERY))

    assert "[UNKNOWN_REF] no branch or tag 'nope'" in str(error)


def test_a_closed_session_has_no_options(fleet: LocalFleet):
    with fl.connect(fleet.location) as client:
        (result,) = client.do_action(fl.Action("CloseSession", b""))

    assert decode("CloseSessionResult", result.body.to_pybytes()).status == 1


# --- queries -------------------------------------------------------------------------------------


def test_a_query_is_planned_for_the_workers(connection: dbapi.Connection):
    with connection.cursor() as cursor:
        cursor.execute(QUERY)

        assert cursor.rowcount == 800
        assert [column[0] for column in cursor.description or ()] == ["id", "region", "amount"]
        assert sorted(cursor.fetch_arrow_table()["id"].to_pylist()) == list(range(800))


def test_a_prepared_query_tells_its_schemas_and_takes_parameters(connection: dbapi.Connection):
    with connection.cursor() as cursor:
        limited = f"{QUERY} LIMIT ?"

        assert cursor.adbc_prepare(limited) == pa.schema([("0", pa.int64())])
        assert cursor.adbc_prepare(QUERY) == pa.schema([])
        assert cursor.adbc_execute_schema(QUERY).names == ["id", "region", "amount"]
        assert "parameter 1 is not bound" in str(refusal(lambda: cursor.execute(limited)))
        for rows in (7, 3):
            cursor.execute(limited, (rows,))
            assert len(cursor.fetchall()) == rows
        several = refusal(lambda: cursor.execute(limited, pa.table({"0": [1, 2]})))
        assert "2 rows of parameters are bound" in str(several)


def test_a_handle_is_executed_by_any_coordinator_at_any_time(fleet: LocalFleet, other: LocalFleet):
    def of(client: fl.FlightClient, handle: bytes) -> fl.FlightDescriptor:
        raw = pack("CommandPreparedStatementQuery", prepared_statement_handle=handle)
        return fl.FlightDescriptor.for_command(raw)

    with (
        fl.connect(fleet.location) as one,
        fl.connect(other.location) as another,
    ):
        body = pack("ActionCreatePreparedStatementRequest", query=f"{QUERY} LIMIT ?")
        (result,) = one.do_action(fl.Action("CreatePreparedStatement", body))
        made = unpack_body("ActionCreatePreparedStatementResult", result.body.to_pybytes())
        handle = made.prepared_statement_handle
        writer, reader = another.do_put(of(another, handle), pa.schema([("0", pa.int64())]))
        with closing(writer):
            writer.write_batch(pa.record_batch({"0": [5]}))
            writer.done_writing()
            answered = decode("DoPutPreparedStatementResult", reader.read().to_pybytes())
        closing_body = pack("ActionClosePreparedStatementRequest", prepared_statement_handle=handle)
        assert list(one.do_action(fl.Action("ClosePreparedStatement", closing_body))) == []

        info = one.get_flight_info(of(one, answered.prepared_statement_handle))

        assert pa.ipc.read_schema(pa.py_buffer(made.dataset_schema)) == info.schema
        assert read_all(info).num_rows == 5


def test_partitions_are_read_one_by_one(fleet: LocalFleet, connection: dbapi.Connection):
    with connection.cursor() as cursor, connect(fleet.location) as other:
        partitions, told = cursor.adbc_execute_partitions(QUERY)

        found = 0
        for partition in partitions:
            with other.cursor() as reading:
                reading.adbc_read_partition(partition)
                found += reading.fetch_arrow_table().num_rows
    assert found == 800
    assert told is None or told.names == ["id", "region", "amount"]


# --- what is refused -----------------------------------------------------------------------------


def test_what_is_wrong_with_a_statement_is_said_to_a_person(connection: dbapi.Connection):
    error = refusal(lambda: count(connection, "SELEKT 1"))

    assert isinstance(error, adbc_driver_manager.ProgrammingError)
    assert "INVALID_ARGUMENT: [FlightSQL] [BAD_REQUEST] syntax error at 'SELEKT'" in str(error)
    missing = refusal(lambda: count(connection, "SELECT * FROM db.ordrs"))
    assert "NOT_FOUND: [FlightSQL] [UNKNOWN_TABLE] no table 'db.ordrs'" in str(missing)


def test_writes_transactions_and_plans_of_others_are_refused(connection: dbapi.Connection):
    calls: list[tuple[str, Callable[[dbapi.Cursor], object]]] = [
        ("never written", lambda c: c.adbc_ingest("orders", pa.table({"id": [1]}), mode="append")),
        ("never written", lambda c: c.executemany(QUERY, [(1,)])),
        ("is not served", lambda c: c.execute(b"a Substrait plan")),
    ]
    for why, call in calls:
        with connection.cursor() as cursor:
            error = refusal(lambda call=call, cursor=cursor: call(cursor))
            assert isinstance(error, adbc_driver_manager.NotSupportedError)
            assert why in str(error)
    statement = adbc_driver_manager.AdbcStatement(connection.adbc_connection)
    statement.set_sql_query("DELETE FROM db.orders")
    assert "never written" in str(refusal(statement.execute_update))
    statement.close()


def test_a_transaction_is_not_begun_where_a_tool_would_like_one(fleet: LocalFleet):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with adbc_driver_flightsql.dbapi.connect(fleet.location) as connection:
            assert tables_of(connection) != []

    assert any("autocommit" in str(w.message) for w in told)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("BeginTransaction", "UNSUPPORTED"),
        ("EndSavepoint", "UNSUPPORTED"),
        ("CreatePreparedSubstraitPlan", "UNSUPPORTED"),
        ("RenewFlightEndpoint", "UNSUPPORTED"),
        ("CreatePreparedStatement", "BAD_COMMAND"),
        ("ClosePreparedStatement", "BAD_COMMAND"),
        ("CreatePreparedStatements", "BAD_COMMAND"),
    ],
)
def test_other_actions_are_refused_by_name(fleet: LocalFleet, name: str, code: str):
    with fl.connect(fleet.location) as client:
        with pytest.raises((pa.ArrowException, fl.FlightError)) as raised:
            list(client.do_action(fl.Action(name, b"made up")))
        listed = {action.type for action in client.list_actions()}

    error = from_flight(raised.value)
    assert isinstance(error, FloebergError)
    assert error.code == code
    assert (name in listed) == (code == "BAD_COMMAND" and not name.endswith("s"))


def test_a_query_is_not_cancelled_by_an_action(fleet: LocalFleet):
    with fl.connect(fleet.location) as client:
        (flight,) = client.do_action(fl.Action("CancelFlightInfo", b""))
        (query,) = client.do_action(fl.Action("CancelQuery", b""))

    assert decode("CancelFlightInfoResult", flight.body.to_pybytes()).status == 3
    assert unpack_body("ActionCancelQueryResult", query.body.to_pybytes()).result == 3


def test_without_workers_queries_are_refused_and_listings_are_not(other: LocalFleet):
    with connect(other.location) as connection:
        assert "warehouse.db.orders" in tables_of(connection)
        error = refusal(lambda: count(connection, QUERY))

    assert "[NO_WORKERS]" in str(error)


def test_rows_are_not_put_anywhere_else(fleet: LocalFleet):
    with fl.connect(fleet.location) as client:
        for descriptor in (
            fl.FlightDescriptor.for_path("db", "orders"),
            fl.FlightDescriptor.for_command(pack("CommandGetCatalogs")),
        ):
            writer, _ = client.do_put(descriptor, pa.schema([]))
            with pytest.raises(pa.ArrowNotImplementedError, match="DoPut is not served here"):
                writer.close()
        handle = pack("CommandPreparedStatementQuery", prepared_statement_handle=b"made up")
        writer, _ = client.do_put(fl.FlightDescriptor.for_command(handle), pa.schema([]))
        with pytest.raises(pa.ArrowInvalid, match="BAD_HANDLE"):
            writer.close()


def test_a_bearer_token_is_no_session(guarded: LocalFleet):
    with fl.connect(guarded.location) as client:
        (result,) = client.do_action(fl.Action("GetSessionOptions", b""), bearing(ANN))
        assert result.body.size > 0
        with pytest.raises(fl.FlightUnauthenticatedError, match="connect again"):
            list(client.do_action(fl.Action("GetSessionOptions", b""), bearing("flo.made-up")))
