"""Clients that prove themselves by certificates, and services that do so to one another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import adbc_driver_flightsql.dbapi
import pyarrow.flight as fl
import pytest
from cryptography import x509

from floeberg.client import Lake, connect
from floeberg.process.config import load_config
from floeberg.process.service import ServiceConfig
from floeberg.protocol.errors import BadConfig, NotPermitted, ServerUnavailable
from floeberg.protocol.flight_errors import from_flight
from tests.support.callers import ANN, bearing, secret_file, token_file
from tests.support.certificates import Authority, Certificate
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import TableWriter

ORDERS = fl.FlightDescriptor.for_path("db", "orders")
RULES = """
[[rule]]
principals = ["ann", "spiffe://lake/*"]
tables = ["*"]

[[rule]]
principals = ["bob.lake"]
tables = ["*"]
rows = "region = 'eu'"
"""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    (tmp_path / "certificates").mkdir()
    return Authority(tmp_path / "certificates")


@pytest.fixture
def fleet(
    warehouse: Path, orders: TableWriter, authority: Authority, tmp_path: Path
) -> Iterator[LocalFleet]:
    own = authority.service()
    shared = {
        "tls_cert": own.cert,
        "tls_key": own.key,
        "tls_roots": authority.roots,
        "auth_client_roots": authority.roots,
        "auth_tokens": token_file(tmp_path),
    }
    policies = secret_file(tmp_path / "policies", RULES)
    with local_fleet(warehouse, workers=0, bind_tickets=True, policies=policies, **shared) as fleet:
        fleet.add_worker(**shared)
        yield fleet


def lake(fleet: LocalFleet, authority: Authority, own: Certificate | None, **more: str) -> Lake:
    pair = {} if own is None else {"tls_cert": own.cert, "tls_key": own.key}
    return connect(fleet.location, tls_roots=authority.roots, **pair, **more)


def test_a_certificate_names_who_reads(fleet: LocalFleet, authority: Authority):
    ann = authority.issue("ann")
    workload = authority.issue("w", [x509.UniformResourceIdentifier("spiffe://lake/etl")])
    bob = authority.issue("bob", [x509.DNSName("bob.lake"), x509.DNSName("ann")])
    rows = []
    for own in (ann, workload, bob):
        with lake(fleet, authority, own) as there:
            rows.append(there.table("db.orders").scan().to_arrow().num_rows)
    with lake(fleet, authority, bob, token=ANN) as there:
        rows.append(there.table("db.orders").scan().count())

    assert rows == [800, 800, 400, 800]


def test_a_coordinator_relays_in_its_clients_name(fleet: LocalFleet, authority: Authority):
    def dial(own: Certificate) -> fl.FlightClient:
        roots, cert, key = (p.read_bytes() for p in (authority.roots, own.cert, own.key))
        return fl.FlightClient(
            fleet.location, tls_root_certs=roots, cert_chain=cert, private_key=key
        )

    with dial(authority.issue("ann")) as ann, dial(authority.issue("eve")) as eve:
        (endpoint, *_) = ann.get_flight_info(ORDERS).endpoints
        assert ann.do_get(endpoint.ticket).read_all().num_rows > 0
        with pytest.raises(fl.FlightUnauthorizedError) as raised:
            eve.do_get(endpoint.ticket).read_all()
        assert isinstance(from_flight(raised.value), NotPermitted)
        # whoever has a token is who it says
        assert eve.do_get(endpoint.ticket, bearing(ANN)).read_all().num_rows > 0


def test_nobody_connects_without_a_certificate_that_the_roots_have_signed(
    fleet: LocalFleet, authority: Authority, tmp_path: Path
):
    (tmp_path / "others").mkdir()
    for own in (None, Authority(tmp_path / "others").issue("ann")):
        with (
            lake(fleet, authority, own, token=ANN) as there,
            pytest.raises(ServerUnavailable, match="--tls-cert"),
        ):
            there.tables()


def test_adbc_shows_its_certificate(fleet: LocalFleet, authority: Authority):
    ann = authority.issue("ann")
    options = {
        "adbc.flight.sql.client_option.tls_root_certs": authority.roots.read_text(),
        "adbc.flight.sql.client_option.mtls_cert_chain": ann.cert.read_text(),
        "adbc.flight.sql.client_option.mtls_private_key": ann.key.read_text(),
    }
    connection = adbc_driver_flightsql.dbapi.connect(
        fleet.location, db_kwargs=options, autocommit=True
    )
    with connection, connection.cursor() as cursor:
        cursor.execute("EXPLAIN SELECT 1")
        assert cursor.fetchall()[0][0] == "road"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"auth_client_roots": "ca.pem"}, "needs TLS"),
        (
            {
                "auth_client_roots": "ca.pem",
                "auth_passwords": "users",
                "tls_cert": "c",
                "tls_key": "k",
            },
            "exclude each other",
        ),
    ],
)
def test_values_that_do_not_go_together_are_refused(values: dict[str, object], told: str):
    with pytest.raises(BadConfig, match=told):
        load_config(ServiceConfig, flags=values)
