"""Who may call a coordinator and its workers, as stock clients find out."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi
import adbc_driver_manager
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.protocol.errors import BadConfig, FloebergError, NotPermitted, Unauthenticated
from floeberg.protocol.flight_errors import from_flight
from tests.support.callers import ANN, BOB, bearing, password_file, token_file
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.identity_provider import AUDIENCE, ISSUER, IdentityProvider
from tests.support.lake import TableWriter

ORDERS = fl.FlightDescriptor.for_path("db", "orders")
PASSWORD = "correct horse"


@pytest.fixture
def provider(tmp_path: Path) -> IdentityProvider:
    provider = IdentityProvider()
    (tmp_path / "jwks.json").write_text(provider.published())
    return provider


@pytest.fixture
def auth(tmp_path: Path, provider: IdentityProvider) -> dict[str, object]:
    """The keys of a service that takes tokens, passwords and JSON Web Tokens."""
    return {
        "auth_tokens": token_file(tmp_path),
        "auth_passwords": password_file(tmp_path, ann=PASSWORD),
        "auth_jwks": str(tmp_path / "jwks.json"),
        "auth_issuer": ISSUER,
        "auth_audience": AUDIENCE,
    }


@pytest.fixture
def fleet(warehouse: Path, orders: TableWriter, auth: dict[str, object]) -> Iterator[LocalFleet]:
    """Every service asks who calls."""
    with local_fleet(warehouse, workers=0, **auth) as fleet:
        fleet.add_worker(**auth)
        yield fleet


@pytest.fixture
def client(fleet: LocalFleet) -> Iterator[fl.FlightClient]:
    with fl.connect(fleet.location) as client:
        yield client


def rows(client: fl.FlightClient, options: fl.FlightCallOptions, at: str | None = None) -> int:
    """Plan and read `db.orders` with the same options everywhere: at its workers, or all `at` one
    place."""
    found = 0
    for endpoint in client.get_flight_info(ORDERS, options).endpoints:
        with fl.connect(at or endpoint.locations[0]) as worker:
            found += worker.do_get(endpoint.ticket, options).read_all().num_rows
    return found


def refusal(call: Callable[[], object]) -> FloebergError:
    """Return the error that a call ends with, told without anything of the server's inside."""
    with pytest.raises((fl.FlightError, pa.ArrowException)) as raised:
        call()
    text = str(raised.value) + repr(getattr(raised.value, "extra_info", b""))
    assert "Traceback" not in text
    assert ".py" not in text
    return from_flight(raised.value)


def test_a_bearer_token_reads_everywhere(fleet: LocalFleet, client: fl.FlightClient):
    assert rows(client, bearing(ANN)) == 800
    assert rows(client, bearing(ANN), at=fleet.location) == 800


def test_a_json_web_token_reads_everywhere(
    fleet: LocalFleet, client: fl.FlightClient, provider: IdentityProvider
):
    assert rows(client, bearing(provider.token())) == 800
    assert rows(client, bearing(provider.token()), at=fleet.location) == 800
    error = refusal(lambda: client.get_flight_info(ORDERS, bearing(provider.token(exp=1))))
    assert (error.code, "expired" in str(error)) == ("UNAUTHENTICATED", True)


def test_a_login_gives_a_token_that_reads_everywhere(fleet: LocalFleet, client: fl.FlightClient):
    header: Any = client.authenticate_basic_token("ann", PASSWORD)
    options = fl.FlightCallOptions(headers=[header])

    assert rows(client, options) == 800
    assert rows(client, options, at=fleet.location) == 800


def test_a_login_with_another_password_is_refused(client: fl.FlightClient):
    error = refusal(lambda: client.authenticate_basic_token("ann", "hush"))

    assert isinstance(error, Unauthenticated)
    assert str(error) == "the username or the password is wrong"


CALLS: dict[str, Callable[[fl.FlightClient, fl.FlightCallOptions], object]] = {
    "list_flights": lambda c, o: list(c.list_flights(b"", o)),
    "get_flight_info": lambda c, o: c.get_flight_info(ORDERS, o),
    "get_schema": lambda c, o: c.get_schema(ORDERS, o),
    "do_get": lambda c, o: c.do_get(fl.Ticket(b"made up"), o).read_all(),
    "list_actions": lambda c, o: c.list_actions(o),
    **{
        name: lambda c, o, name=name: list(c.do_action(fl.Action(f"floeberg.{name}", b""), o))
        for name in ("tables", "describe", "snapshots", "files", "count", "plan", "explain")
    },
    "status": lambda c, o: list(c.do_action(fl.Action("floeberg.status", b""), o)),
    "worker-status": lambda c, o: list(c.do_action(fl.Action("floeberg.worker-status", b""), o)),
    "unknown action": lambda c, o: list(c.do_action(fl.Action("made-up", b""), o)),
    "do_put": lambda c, o: c.do_put(ORDERS, pa.schema([]), o)[0].close(),
    "do_exchange": lambda c, o: c.do_exchange(ORDERS, o)[1].read_all(),
}


@pytest.mark.parametrize("at", ["coordinator", "worker"])
def test_no_call_is_answered_to_who_is_not_known(fleet: LocalFleet, at: str):
    location = fleet.location if at == "coordinator" else fleet.workers[0].location
    for token in (None, "made-up-made-up-made-up"):
        for call in CALLS.values():
            with fl.connect(location) as client:
                error = refusal(lambda call=call, token=token: call(client, bearing(token)))

            assert error.code == "UNAUTHENTICATED"
            assert "send a bearer token" in str(error)
            assert "made-up" not in str(error)


def test_workers_join_without_a_token(fleet: LocalFleet):
    """They prove themselves by the seal: the fixture has waited for one."""
    assert len(fleet.coordinator.members.ready()) == 1


def test_a_made_up_registration_is_no_way_around(client: fl.FlightClient):
    action = fl.Action("floeberg.register-worker", b"{}")

    assert refusal(lambda: list(client.do_action(action))).code == "UNAUTHENTICATED"


def test_a_service_without_passwords_says_so(warehouse: Path, tmp_path: Path):
    with (
        local_fleet(warehouse, workers=0, auth_tokens=token_file(tmp_path)) as fleet,
        fl.connect(fleet.location) as client,
    ):
        error = refusal(lambda: client.authenticate_basic_token("ann", PASSWORD))

    assert error.code == "UNAUTHENTICATED"
    assert str(error).startswith("this server takes no passwords; send a bearer token")


def test_refusals_are_counted(fleet: LocalFleet, client: fl.FlightClient):
    refusal(lambda: client.authenticate_basic_token("ann", "hush"))
    for _ in range(2):
        refusal(lambda: client.get_flight_info(ORDERS))
    client.get_flight_info(ORDERS, bearing(ANN))

    http = str(fleet.coordinator.addresses()["http"])
    with urllib.request.urlopen(f"{http}/metrics", timeout=10) as answer:
        numbers = answer.read().decode()
    assert 'floeberg_callers_total{outcome="admitted"} 1.0' in numbers
    assert 'floeberg_callers_total{outcome="refused"} 2.0' in numbers
    assert 'floeberg_callers_total{outcome="login refused"} 1.0' in numbers


def test_a_ticket_is_worth_its_rows_to_who_holds_it(
    warehouse: Path, orders: TableWriter, auth: dict[str, object]
):
    """Workers that are told nothing of clients take the ticket alone."""
    with local_fleet(warehouse, workers=0, **auth) as fleet:
        fleet.add_worker()
        with fl.connect(fleet.location) as client:
            (endpoint, *_) = client.get_flight_info(ORDERS, bearing(ANN)).endpoints
        with fl.connect(endpoint.locations[0]) as worker:
            assert worker.do_get(endpoint.ticket).read_all().num_rows > 0


def test_a_bound_ticket_is_its_principals_alone(
    warehouse: Path, orders: TableWriter, auth: dict[str, object]
):
    with local_fleet(warehouse, workers=0, bind_tickets=True, **auth) as fleet:
        fleet.add_worker(**auth)
        with fl.connect(fleet.location) as client:
            (endpoint, *_) = client.get_flight_info(ORDERS, bearing(ANN)).endpoints
            assert rows(client, bearing(ANN)) == 800
            assert rows(client, bearing(ANN), at=fleet.location) == 800
        for location in (fleet.location, endpoint.locations[0]):
            with fl.connect(location) as client:
                error = refusal(lambda: client.do_get(endpoint.ticket, bearing(BOB)).read_all())
            assert isinstance(error, NotPermitted)
            assert "ann" not in str(error)


def test_a_worker_that_cannot_tell_who_calls_keeps_a_bound_ticket(
    warehouse: Path, orders: TableWriter, auth: dict[str, object]
):
    with local_fleet(warehouse, workers=0, bind_tickets=True, **auth) as fleet:
        worker = fleet.add_worker()
        with fl.connect(fleet.location) as client:
            header: Any = client.authenticate_basic_token("ann", PASSWORD)
            session = fl.FlightCallOptions(headers=[header])
            (endpoint, *_) = client.get_flight_info(ORDERS, bearing(ANN)).endpoints
        with fl.connect(worker.location) as client:
            error = refusal(lambda: client.do_get(endpoint.ticket, bearing(ANN)).read_all())
            assert (error.code, "workers" in str(error)) == ("UNAUTHENTICATED", True)
            # a login's token is sealed by the fleet's own keys
            assert client.do_get(endpoint.ticket, session).read_all().num_rows > 0


def test_tickets_are_bound_only_where_callers_are_known(warehouse: Path):
    with (
        pytest.raises(BadConfig, match="bind_tickets"),
        local_fleet(warehouse, workers=0, bind_tickets=True),
    ):
        pass


# --- other clients -------------------------------------------------------------------------------


def adbc(location: str, **options: str) -> adbc_driver_flightsql.dbapi.Connection:
    return adbc_driver_flightsql.dbapi.connect(
        location.replace("grpc+tcp", "grpc"), db_kwargs=options, autocommit=True
    )


def code_of_sql(connection: adbc_driver_flightsql.dbapi.Connection) -> str:
    """With which code writing is refused tells whether the caller is known."""
    with connection.cursor() as cursor, pytest.raises(adbc_driver_manager.Error) as told:
        cursor.execute("DROP TABLE orders")
    return str(told.value).split("[")[-1].split("]")[0]


def test_adbc_logs_in_with_a_password(fleet: LocalFleet):
    with adbc(fleet.location, username="ann", password=PASSWORD) as connection:
        assert code_of_sql(connection) == "READ_ONLY"


def test_adbc_is_told_that_the_password_is_wrong(fleet: LocalFleet):
    with pytest.raises(adbc_driver_manager.Error) as told:
        adbc(fleet.location, username="ann", password="hush")

    assert "[UNAUTHENTICATED] the username or the password is wrong" in str(told.value)
    assert "hush" not in str(told.value)


@pytest.mark.parametrize(("token", "code"), [(ANN, "READ_ONLY"), ("made-up", "UNAUTHENTICATED")])
def test_adbc_sends_a_token_as_a_header(fleet: LocalFleet, token: str, code: str):
    options = {"adbc.flight.sql.authorization_header": f"Bearer {token}"}
    with adbc(fleet.location, **options) as connection:
        assert code_of_sql(connection) == code


# --- secrets -------------------------------------------------------------------------------------


def test_no_secret_is_logged(
    fleet: LocalFleet,
    client: fl.FlightClient,
    provider: IdentityProvider,
    caplog: pytest.LogCaptureFixture,
):
    import logging

    caplog.set_level(logging.DEBUG)
    token = provider.token()
    header: Any = client.authenticate_basic_token("ann", PASSWORD)
    for option in (bearing(ANN), bearing(token), fl.FlightCallOptions(headers=[header])):
        rows(client, option)
    refusal(lambda: client.authenticate_basic_token("ann", "hush-hush-hush"))
    refusal(lambda: client.get_flight_info(ORDERS, bearing("hush-hush-hush")))

    told = "\n".join(f"{r.getMessage()} {r.__dict__}" for r in caplog.records)
    session = header[1].decode().removeprefix("Bearer ")
    for secret in (ANN, token, session, PASSWORD, "hush"):
        assert secret not in told
    assert "call refused" in told
    assert "login refused" in told
