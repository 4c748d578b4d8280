"""The TLS files that a process was started with: when they expire, and whether others lie in their
place by now.

A Flight server of pyarrow reads them once and takes no others while it runs, so that a file which
is replaced is in use only in processes that start after that. What can be done here is to say so:
in the log once, in metrics, and in the status.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from floeberg.process.service import ServiceConfig
from floeberg.protocol.errors import BadConfig
from floeberg.protocol.status import CertificateEntry, CertificateState

logger = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
SOON_SECONDS = 14 * 86_400.0
_NO_CERTIFICATE = (ValueError, x509.InvalidVersion)


class TlsFiles(Collector):
    """The files of one process. Safe to use from several threads.

    `files` has their paths by the configuration's keys for them; what they hold as this is made is
    what the process uses. They are looked at whenever somebody asks for their state, and between
    `start` and `stop` by a thread, for the log. `now_seconds` is the time since the epoch.
    """

    def __init__(
        self,
        files: Mapping[str, Path],
        registry: CollectorRegistry,
        *,
        now_seconds: Callable[[], float] = time.time,
    ) -> None:
        self._now_seconds = now_seconds
        self._lock = threading.Lock()
        self._files = [_File(name, path) for name, path in files.items()]
        self._stopped = threading.Event()
        registry.register(self)

    @classmethod
    def of(cls, config: ServiceConfig, registry: CollectorRegistry) -> TlsFiles:
        return cls(config.tls_files(), registry)

    def start(self) -> None:
        """Look at the files now, and from then on every few seconds."""
        if self._files:
            # a daemon: a process that could not start ends all the same
            threading.Thread(target=self._watch, name="floeberg-tls-files", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _watch(self) -> None:
        while True:
            self.look()
            if self._stopped.wait(LOOK_SECONDS):
                return

    def look(self) -> None:
        """Read the files, and log what is new of them."""
        now = self._now_seconds()
        with self._lock:
            for file in self._files:
                file.look(now)

    def entries(self) -> tuple[CertificateEntry, ...]:
        """Return the state of each file."""
        self.look()
        now = self._now_seconds()
        with self._lock:
            return tuple(file.entry(now) for file in self._files)

    def collect(self) -> Iterator[Metric]:
        expires = GaugeMetricFamily(
            "floeberg_certificate_expires_timestamp_seconds",
            "When the certificates that are in use expire, in seconds since the epoch.",
            labels=["file"],
        )
        replaced = GaugeMetricFamily(
            "floeberg_certificate_replaced",
            "1 where the file is not any more the one that is in use, else 0.",
            labels=["file"],
        )
        for entry in self.entries():
            if entry.expires_ms is not None:
                expires.add_metric([entry.file], entry.expires_ms / 1000)
            replaced.add_metric([entry.file], float(entry.is_replaced))
        yield expires
        yield replaced


@dataclass(frozen=True, slots=True)
class _Content:
    """What a file held: `expires` in seconds since the epoch, None of what does not expire."""

    digest: bytes
    expires: float | None


class _File:
    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path
        self._in_use = self._on_disk = self._read()
        self._told: CertificateState = "good"

    def look(self, now: float) -> None:
        found = self._read()
        if found != self._on_disk:
            self._on_disk = found
            self._tell_change(found)
        state = _state(self._expires, now)
        if state != self._told:
            self._told = state
            self._tell_expiry(state)

    def entry(self, now: float) -> CertificateEntry:
        expires = self._expires
        return CertificateEntry(
            file=self._name,
            state=_state(expires, now),
            expires_ms=None if expires is None else int(expires * 1000),
            is_replaced=self._on_disk != self._in_use,
        )

    @property
    def _expires(self) -> float | None:
        return None if self._in_use is None else self._in_use.expires

    def _read(self) -> _Content | None:
        """Return what the file holds; None where it can't be read."""
        try:
            raw = self._path.read_bytes()
        except OSError:
            return None
        return _Content(hashlib.sha256(raw).digest(), _expiry(self._name, raw))

    def _tell_change(self, found: _Content | None) -> None:
        told = {"option": self._name, "file": str(self._path)}
        if found is None:
            logger.error("certificate file is gone: a process that starts now fails", extra=told)
        elif found != self._in_use:
            logger.warning(
                "certificate file was replaced: drain this process and start it again to use it",
                extra=told | {"expires": _day(self._expires), "new_expires": _day(found.expires)},
            )
        else:
            logger.info("certificate file is again the one in use", extra=told)

    def _tell_expiry(self, state: CertificateState) -> None:
        told = {
            "option": self._name,
            "file": str(self._path),
            "expires": _day(self._expires),
            "is_replaced": self._on_disk != self._in_use,
        }
        if state == "expired":
            logger.error("certificate has expired", extra=told)
        elif state == "expires soon":
            logger.warning("certificate expires soon", extra=told)


def _state(expires: float | None, now: float) -> CertificateState:
    if expires is None or expires - now > SOON_SECONDS:
        return "good"
    return "expires soon" if expires > now else "expired"


def _expiry(name: str, raw: bytes) -> float | None:
    """Return when what a file holds expires; None of a key, and of what can't be parsed.

    A chain is good until its first certificate expires, and roots until their last: that an old
    root is still among them when it expires is what a change of roots looks like.
    """
    if name == "tls_key":
        return None
    try:
        found = x509.load_pem_x509_certificates(raw)
    except _NO_CERTIFICATE:
        return None  # what TLS itself makes of it, the process says as it starts
    moments = [certificate.not_valid_after_utc.timestamp() for certificate in found]
    return min(moments) if name == "tls_cert" else max(moments)


def _day(expires: float | None) -> str | None:
    if expires is None:
        return None
    return datetime.fromtimestamp(expires, UTC).isoformat(timespec="seconds")


def cannot_listen(config: ServiceConfig) -> BadConfig:
    """Return what to say of a Flight server that did not start: gRPC tells nothing but in its own
    log."""
    fault = _pair_fault(config)
    if fault is not None:
        return BadConfig(fault)
    return BadConfig(
        f"'port': cannot listen on {config.bind_location}: is it this machine's address,"
        " and the port not taken? (0 takes a free one)"
    )


def _pair_fault(config: ServiceConfig) -> str | None:
    if config.tls_cert is None or config.tls_key is None:
        return None
    try:
        certificate = x509.load_pem_x509_certificates(config.tls_cert.read_bytes())[0]
    except _NO_CERTIFICATE:
        return f"'tls_cert': {config.tls_cert} holds no certificate in PEM"
    try:
        key = load_pem_private_key(config.tls_key.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return f"'tls_key': {config.tls_key} holds no private key in PEM without a password"
    if key.public_key() != certificate.public_key():
        return (
            f"'tls_key': {config.tls_key} is not the key of the first certificate in"
            f" {config.tls_cert}"
        )
    return None
