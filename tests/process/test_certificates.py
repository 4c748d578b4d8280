"""Files of TLS are told of when they expire, and when others lie in their place."""

from __future__ import annotations

import base64
import logging
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from prometheus_client import CollectorRegistry

from floeberg.process.certificates import TlsFiles, cannot_listen
from floeberg.process.config import load_config
from floeberg.worker.config import WorkerConfig
from tests.support.certificates import Authority, Certificate

DAY = 86_400.0
EXPIRES = "floeberg_certificate_expires_timestamp_seconds"
REPLACED = "floeberg_certificate_replaced"


class Clock:
    """The time as of the last day of a certificate: 0.0 is when it expires."""

    def __init__(self, certificate: Certificate) -> None:
        (read,) = x509.load_pem_x509_certificates(certificate.cert.read_bytes())
        self.expiry = read.not_valid_after_utc.timestamp()
        self.days_before = 30.0

    def __call__(self) -> float:
        return self.expiry - self.days_before * DAY


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def certificate(authority: Authority) -> Certificate:
    return authority.service()


@pytest.fixture
def clock(certificate: Certificate) -> Clock:
    return Clock(certificate)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def watched(
    authority: Authority, certificate: Certificate, clock: Clock, registry: CollectorRegistry
) -> TlsFiles:
    files = {
        "tls_cert": certificate.cert,
        "tls_key": certificate.key,
        "tls_roots": authority.roots,
    }
    return TlsFiles(files, registry, now_seconds=clock)


def put_in_place(new: Certificate, old: Certificate) -> None:
    shutil.copy(new.cert, old.cert)
    shutil.copy(new.key, old.key)


def replaced(watched: TlsFiles) -> set[str]:
    return {entry.file for entry in watched.entries() if entry.is_replaced}


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(r.__dict__["option"], r.getMessage()) for r in caplog.records]


def test_what_is_in_use_is_told_with_its_expiry(
    watched: TlsFiles,
    clock: Clock,
    registry: CollectorRegistry,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cert, key, roots = watched.entries()
    assert (cert.file, cert.state, cert.expires_ms) == (
        "tls_cert",
        "good",
        int(clock.expiry * 1000),
    )
    assert (key.file, key.state, key.expires_ms) == ("tls_key", "good", None)
    assert roots.file == "tls_roots"
    assert roots.expires_ms is not None
    assert registry.get_sample_value(EXPIRES, {"file": "tls_cert"}) == clock.expiry
    assert registry.get_sample_value(EXPIRES, {"file": "tls_key"}) is None
    assert registry.get_sample_value(REPLACED, {"file": "tls_key"}) == 0
    assert replaced(watched) == set()
    assert said(caplog) == []


def test_files_that_were_replaced_are_told_of_once(
    authority: Authority,
    certificate: Certificate,
    watched: TlsFiles,
    clock: Clock,
    registry: CollectorRegistry,
    caplog: pytest.LogCaptureFixture,
) -> None:
    put_in_place(authority.issue("renewed"), certificate)

    watched.look()
    watched.look()

    assert replaced(watched) == {"tls_cert", "tls_key"}
    assert registry.get_sample_value(REPLACED, {"file": "tls_cert"}) == 1
    assert registry.get_sample_value(EXPIRES, {"file": "tls_cert"}) == clock.expiry
    told = "certificate file was replaced: drain this process and start it again to use it"
    assert said(caplog) == [("tls_cert", told), ("tls_key", told)]


def test_a_file_that_is_put_back_is_in_use_again(
    authority: Authority,
    certificate: Certificate,
    watched: TlsFiles,
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = certificate.cert.read_bytes()
    shutil.copy(authority.issue("renewed").cert, certificate.cert)
    watched.look()
    certificate.cert.write_bytes(before)

    with caplog.at_level(logging.INFO):
        watched.look()

    assert replaced(watched) == set()
    assert said(caplog)[-1] == ("tls_cert", "certificate file is again the one in use")


def test_a_file_that_is_gone_is_an_error(
    certificate: Certificate, watched: TlsFiles, caplog: pytest.LogCaptureFixture
) -> None:
    certificate.key.unlink()

    watched.look()

    assert replaced(watched) == {"tls_key"}
    (record,) = caplog.records
    assert (record.levelname, record.__dict__["file"]) == ("ERROR", str(certificate.key))


def test_what_is_no_certificate_any_more_is_told_of_as_another_file(
    watched: TlsFiles, certificate: Certificate, registry: CollectorRegistry
):
    (read,) = x509.load_pem_x509_certificates(certificate.cert.read_bytes())
    der = read.public_bytes(Encoding.DER)
    version_6 = der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x05", 1)
    for garbage in (b"", b"\xff", version_6):
        body = base64.encodebytes(garbage).decode()
        certificate.cert.write_text(
            f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n"
        )

        watched.look()

        assert replaced(watched) == {"tls_cert"}
        assert registry.get_sample_value(REPLACED, {"file": "tls_cert"}) == 1


def test_expiry_is_told_two_weeks_before_and_when_it_has_come(
    certificate: Certificate, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    watched = TlsFiles({"tls_cert": certificate.cert}, CollectorRegistry(), now_seconds=clock)
    states: list[str] = []

    for clock.days_before in (14.1, 13.9, 0.1, -0.1, -3.0):
        watched.look()
        states += [entry.state for entry in watched.entries()]

    assert states == ["good", "expires soon", "expires soon", "expired", "expired"]
    assert said(caplog) == [
        ("tls_cert", "certificate expires soon"),
        ("tls_cert", "certificate has expired"),
    ]
    assert [r.levelname for r in caplog.records] == ["WARNING", "ERROR"]


def test_a_chain_expires_with_its_first_and_roots_with_their_last(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    both = tmp_path / "both.pem"
    later = authority.issue("later")
    both.write_bytes(certificate.cert.read_bytes() + later.cert.read_bytes())
    first, last = Clock(certificate).expiry, Clock(later).expiry

    watched = TlsFiles({"tls_cert": both, "auth_client_roots": both}, CollectorRegistry())

    chain, roots = watched.entries()
    assert (chain.expires_ms, roots.expires_ms) == (
        int(min(first, last) * 1000),
        int(max(first, last) * 1000),
    )


@pytest.mark.parametrize(
    ("spoilt", "told"),
    [
        ({"tls_cert": "garbage"}, "'tls_cert': .* holds no certificate in PEM"),
        ({"tls_key": "garbage"}, "'tls_key': .* holds no private key in PEM"),
        ({"tls_key": "another"}, "'tls_key': .* is not the key of the first certificate in "),
        ({}, "'port': cannot listen on grpc\\+tls://127.0.0.1:"),
    ],
)
def test_why_a_server_did_not_start(
    authority: Authority,
    certificate: Certificate,
    tmp_path: Path,
    spoilt: Mapping[str, str],
    told: str,
) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate")
    files = {"garbage": garbage, "another": authority.issue("another").key}
    flags = {"tls_cert": certificate.cert, "tls_key": certificate.key}
    flags |= {name: files[what] for name, what in spoilt.items()}

    config = load_config(WorkerConfig, flags={name: str(path) for name, path in flags.items()})

    assert re.match(told, str(cannot_listen(config)))
