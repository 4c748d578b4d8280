"""The same road over TLS."""

from __future__ import annotations

from pathlib import Path

import httpx
import pyarrow.flight as fl
import pytest

from floeberg.process.config import load_config
from floeberg.worker.config import WorkerConfig
from floeberg.worker.process import WorkerService
from tests.support.certificates import Certificate, loopback_certificate
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.gate import NO_HURRY
from tests.support.html_page import parse_page, tables
from tests.support.lake import TableWriter
from tests.support.waiting import wait_until

FILES = "Files of TLS that are in use"
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


def test_certificates_are_told_of_wherever_a_process_tells_of_itself(
    warehouse: Path, certificate: Certificate, tmp_path: Path
) -> None:
    tls = {
        "tls_cert": str(certificate.cert),
        "tls_key": str(certificate.key),
        "tls_roots": str(certificate.cert),
    }
    with local_fleet(warehouse, workers=0, **tls) as fleet:
        worker = fleet.add_worker(**tls)
        (tmp_path / "new").mkdir()
        loopback_certificate(tmp_path / "new").key.replace(certificate.key)

        for process in (fleet.coordinator, worker):
            http = process.addresses()["http"]
            numbers = httpx.get(f"{http}/metrics").text
            table = tables(parse_page(httpx.get(f"{http}/status").text))[FILES]

            assert 'floeberg_certificate_expires_timestamp_seconds{file="tls_cert"}' in numbers
            assert 'floeberg_certificate_replaced{file="tls_key"} 1.0' in numbers
            assert [(row["file"], row["state"], row["on disk"]) for row in table] == [
                ("tls_cert", "expires soon", "the same"),
                ("tls_key", "good", "replaced: restart to use it"),
                ("tls_roots", "expires soon", "the same"),
            ]
            # a day, as it was made just now
            assert table[0]["expires"].startswith(("in 23 h", "in 1 d"))


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
