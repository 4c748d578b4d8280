from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from floeberg.client import connect
from floeberg.protocol.errors import BadRequest, ServerUnavailable
from tests.support.certificates import Certificate, loopback_certificate
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.orders import live_ids


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """Signed by itself, so it is the root to trust, too."""
    return loopback_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def private_fleet(warehouse: Path, certificate: Certificate) -> Iterator[LocalFleet]:
    tls = {
        "tls_cert": certificate.cert,
        "tls_key": certificate.key,
        "tls_roots": certificate.cert,
    }
    with local_fleet(warehouse, workers=0, **tls) as fleet:
        fleet.add_worker(**tls)
        yield fleet


def test_rows_are_read_over_tls_with_the_roots_to_trust(
    private_fleet: LocalFleet, certificate: Certificate
):
    assert private_fleet.location.startswith("grpc+tls://")
    for roots in (certificate.cert, str(certificate.cert), certificate.cert.read_text()):
        with connect(private_fleet.location, "a token", roots) as lake:
            assert lake.table("db.orders").scan().to_arrow().num_rows == len(live_ids())


def test_a_certificate_that_nobody_trusts_is_refused_with_the_remedy(private_fleet: LocalFleet):
    with (
        connect(private_fleet.location) as lake,
        pytest.raises(ServerUnavailable, match="--tls-roots"),
    ):
        lake.tables()


def test_plain_text_to_a_server_with_tls_is_refused_with_the_remedy(private_fleet: LocalFleet):
    location = private_fleet.location.replace("grpc+tls", "grpc")

    with connect(location) as lake, pytest.raises(ServerUnavailable, match=r"grpc\+tls://"):
        lake.tables()


def test_tls_to_a_plain_server_is_refused_with_the_remedy(
    fleet: LocalFleet, certificate: Certificate
):
    location = fleet.location.replace("grpc+tcp", "grpc+tls")

    with (
        connect(location, tls_roots=certificate.cert) as lake,
        pytest.raises(ServerUnavailable, match="write grpc://"),
    ):
        lake.tables()


@pytest.mark.parametrize("redeem_at", ["coordinator", "both"])
def test_streams_are_read_through_the_coordinator_where_it_relays_them(
    warehouse: Path, redeem_at: str
):
    with local_fleet(warehouse, redeem_at=redeem_at) as fleet, connect(fleet.location) as lake:
        scan = lake.table("db.orders").scan()

        assert sorted(scan.to_arrow()["id"].to_pylist()) == list(live_ids())


def test_the_next_coordinator_is_asked_when_one_is_away(fleet: LocalFleet):
    nobody = "grpc+tcp://127.0.0.1:1"
    with connect([nobody, fleet.location]) as lake:
        scan = lake.table("db.orders").scan(select=["id"])

        assert sorted(scan.to_arrow()["id"].to_pylist()) == list(live_ids())
        assert lake._connection.location == fleet.location
        assert lake.tables()


def test_coordinators_that_are_all_away_are_told_after_one_round():
    with (
        connect(["grpc+tcp://127.0.0.1:1", "grpc+tcp://127.0.0.1:2"]) as lake,
        pytest.raises(ServerUnavailable, match="2 cannot be reached"),
    ):
        lake.tables()


@pytest.mark.parametrize("locations", [[], ["grpc://a:1", "grpc+tls://b:1"], ["http://a:1"]])
def test_coordinators_that_do_not_go_together_are_refused(locations: list[str]):
    with pytest.raises(BadRequest):
        connect(locations)


def test_a_coordinator_that_restarts_is_waited_for(warehouse: Path):
    with local_fleet(warehouse) as fleet, connect(fleet.location) as lake:
        scan = lake.table("db.orders").scan(select=["id"])
        ids = sorted(scan.to_arrow()["id"].to_pylist())
        planned = scan.planned()
        restarting = threading.Thread(target=fleet.restart_coordinator)
        restarting.start()

        # it knows no worker at first, and then those that register again
        assert sorted(scan.to_arrow()["id"].to_pylist()) == ids

        restarting.join()
        # what the one before has handed out is still good
        assert sum(batch.num_rows for batch in planned.batches()) == len(ids)


def test_clients_are_lent_again_until_they_break(fleet: LocalFleet):
    with connect(fleet.location) as lake:
        connection = lake._connection
        with connection.client() as first:
            pass
        with connection.client() as again, connection.client() as second:
            assert again is first
            assert second is not first
        with pytest.raises(ZeroDivisionError), connection.client() as broken:
            raise ZeroDivisionError
        with connection.client() as fresh:
            assert fresh is not broken
