"""Certificates for loopback: one signed by itself, or those of an authority."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LOOPBACK = (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))


@dataclass(frozen=True)
class Certificate:
    """Two PEM files; whoever trusts the first trusts the service."""

    cert: Path
    key: Path


def loopback_certificate(directory: Path) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    cert = _made("localhost", _LOOPBACK, key, "localhost", key, is_authority=True)
    return _written(directory, cert, key)


@dataclass(frozen=True)
class Authority:
    """Signs certificates, which it writes into `directory`; `roots` is its own."""

    directory: Path
    _key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def __post_init__(self) -> None:
        cert = _made("authority", (), self._key, "authority", self._key, is_authority=True)
        _written(self._folder("authority"), cert, self._key)

    @property
    def roots(self) -> Path:
        return self.directory / "authority" / "cert.pem"

    def service(self) -> Certificate:
        """Return a certificate for services on this machine."""
        return self.issue("localhost", _LOOPBACK)

    def issue(self, name: str, alternatives: Sequence[x509.GeneralName] = ()) -> Certificate:
        """Return a certificate with this common name, and these subject alternative names."""
        key = ec.generate_private_key(ec.SECP256R1())
        cert = _made(name, alternatives, key, "authority", self._key, is_authority=False)
        return _written(self._folder(name), cert, key)

    def _folder(self, name: str) -> Path:
        folder = self.directory / name
        folder.mkdir()
        return folder


def _made(
    name: str,
    alternatives: Sequence[x509.GeneralName],
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None),
            critical=True,
        )
    )
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _written(
    directory: Path, cert: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> Certificate:
    files = Certificate(directory / "cert.pem", directory / "key.pem")
    files.cert.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files
