"""The same road over TLS."""

from __future__ import annotations

from pathlib import Path

import pyarrow.flight as fl
import pytest

from floeberg.process.config import load_config
from floeberg.worker.config import WorkerConfig
from floeberg.worker.process import WorkerService
from tests.support.certificates import Certificate, loopback_certificate
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.gate import NO_HURRY
from tests.support.lake import TableWriter
from tests.support.waiting import wait_until

ORDERS = fl.FlightDescriptor.for_path("db", "orders")


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return loopback_certificate(tmp_path)


def test_planning_reading_and_relaying_are_encrypted(
    warehouse: Path, orders: TableWriter, certificate: Certificate
) -> None:
    roots = certificate.cert.read_bytes()
    tls = {
        "tls_cert": str(certificate.cert),
        "tls_key": str(certificate.key),
        "tls_roots": str(certificate.cert),
    }
    with local_fleet(warehouse, workers=0, **tls) as fleet:
        for _ in range(2):
            fleet.add_worker(**tls)
        with fl.FlightClient(fleet.location, tls_root_certs=roots) as client:
            info = client.get_flight_info(ORDERS)
            relayed = sum(client.do_get(e.ticket).read_all().num_rows for e in info.endpoints)
        read = 0
        for endpoint in info.endpoints:
            with fl.FlightClient(endpoint.locations[0], tls_root_certs=roots) as client:
                read += client.do_get(endpoint.ticket).read_all().num_rows

        assert fleet.location.startswith("grpc+tls://")
        assert all(e.locations[0].uri.startswith(b"grpc+tls://") for e in info.endpoints)
        assert read == relayed == 800


def test_a_clear_text_worker_is_kept_out_of_a_fleet_with_tls(
    warehouse: Path,
    orders: TableWriter,
    certificate: Certificate,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tls = {"tls_cert": str(certificate.cert), "tls_key": str(certificate.key)}
    with local_fleet(warehouse, workers=0, **tls) as fleet:
        worker = start_worker(fleet, tls_roots=str(certificate.cert))
        try:
            wait_until(lambda: "clear text" in errors_in(caplog), "the refusal")
            assert fleet.coordinator.members.ready() == ()
        finally:
            worker.stop(NO_HURRY)


def start_worker(fleet: LocalFleet, **flags: object) -> WorkerService:
    values = {"key": fleet.keys.to_text(), "coordinator": [fleet.location], **flags}
    worker = WorkerService(load_config(WorkerConfig, flags=values))
    worker.start()
    return worker


def errors_in(caplog: pytest.LogCaptureFixture) -> str:
    return " ".join(str(r.__dict__.get("error")) for r in caplog.records)
