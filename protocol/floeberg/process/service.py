"""What the coordinator and the worker configure alike: where to listen, TLS, keys, logs,
stopping.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from floeberg.process.calling import ClientTls
from floeberg.process.config import option
from floeberg.process.page import Visibility
from floeberg.protocol.errors import BadConfig
from floeberg.protocol.registration import is_location
from floeberg.protocol.sealing import Keyring


@dataclass(frozen=True, kw_only=True)
class ServiceConfig:
    """The values that every Flight service has. Raises `BadConfig` when they don't fit together."""

    host: str = option("127.0.0.1", "The address to listen on for Flight.")
    port: int = option(
        0, "The port to listen on for Flight; 0 takes a free one.", minimum=0, maximum=65535
    )
    advertise: str | None = option(
        None,
        "Where others reach this process, when that is not what it listens on: `HOST`, `HOST:PORT`"
        " or a whole URI. A worker on `0.0.0.0` needs it.",
    )
    http_host: str = option(
        "127.0.0.1",
        "The address of the HTTP side port: `/healthz`, `/readyz`, `/metrics`, `/status`.",
    )
    http_port: int = option(0, "The HTTP side port; 0 takes a free one.", minimum=0, maximum=65535)
    health_port: int | None = option(
        None,
        "The port of gRPC's health service, at `http_host` and in clear text; 0 takes a free one."
        " It needs the extra `health`.",
        minimum=0,
        maximum=65535,
    )
    status_page: Visibility = option(
        "local",
        "Who sees `/status` on the HTTP side port, which names tables and principals: `local`, who"
        " asks from this machine, where the port is on loopback; `on`, whoever reaches the port,"
        " since it has no authentication; `off`, nobody.",
    )
    insecure: bool = option(
        False,
        "Listen on other addresses than loopback without TLS, or as a coordinator that does not ask"
        " who calls. Anyone who reaches the port can then read the tables.",
    )
    tls_cert: Path | None = option(
        None, "The certificate chain (PEM) to serve TLS with; `tls_key` goes with it."
    )
    tls_key: Path | None = option(None, "The private key (PEM) of `tls_cert`.")
    tls_roots: Path | None = option(
        None, "The certificates (PEM) to trust when calling another service; else the system's."
    )
    key_file: Path | None = option(
        None,
        "The file with the keys that coordinators and workers share, a line `id:key` each; only"
        " its owner may read it.",
    )
    key: str | None = option(
        None, "The shared keys themselves, in the file's form, instead of `key_file`.", secret=True
    )
    auth_tokens: Path | None = option(
        None,
        "A file of clients' bearer tokens, a line `principal:token` or `principal:sha256$HEX` each"
        " (`floeberg token` writes them); only its owner may read it.",
    )
    auth_passwords: Path | None = option(
        None,
        "A file of users and their passwords' hashes, for clients that log in (`floeberg password`"
        " writes it); only its owner may read it.",
    )
    auth_session_seconds: float = option(
        8 * 3600.0,
        "How long the token that a login answers can be used.",
        minimum=600,
        maximum=30 * 86400,
    )
    auth_jwks: str | None = option(
        None,
        "The keys that clients' JSON Web Tokens are signed with, as a JWKS file or an https URL;"
        " `auth_issuer` and `auth_audience` go with it.",
    )
    auth_issuer: str | None = option(None, "The issuer (`iss`) that tokens must name.")
    auth_audience: str | None = option(None, "The audience (`aud`) that tokens must be made for.")
    auth_algorithms: tuple[str, ...] = option(
        ("RS256", "ES256"), "The algorithms that tokens may be signed by; all are asymmetric."
    )
    auth_claim: str = option("sub", "The claim of a token that names the principal.")
    auth_leeway_seconds: float = option(
        30.0,
        "How far the identity provider's clock may be off from this machine's.",
        minimum=0,
        maximum=600,
    )
    auth_client_roots: Path | None = option(
        None,
        "The certificates (PEM) that clients' own certificates must be signed by. With it, nobody"
        " connects without one; it needs `tls_cert`.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = option(
        "info", "The least serious records to log. `debug` logs each storage request."
    )
    log_format: Literal["human", "json"] = option(
        "human", "Log lines for people, or a JSON object a line."
    )
    drain_seconds: float = option(
        20.0,
        "How long running streams may go on once the process is told to stop.",
        minimum=0,
        maximum=86400,
    )
    stall_seconds: float = option(
        600.0,
        "How long a client may take nothing from any of the streams on one connection. Then the"
        " connection is closed; floeberg's client resumes when it reads on. 0 is for ever.",
        minimum=0,
        maximum=86400,
    )
    ready_file: Path | None = option(
        None, "A file to write the bound addresses to, as JSON, once requests are answered."
    )
    stop_with_stdin: bool = option(
        False, "Stop when standard input ends: for a parent process that holds its other end."
    )

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise BadConfig("'tls_cert' and 'tls_key' go together: give both or neither")
        for name, host in (("host", self.host), ("http_host", self.http_host)):
            if not (self.insecure or self.serves_tls or is_loopback(host)):
                raise BadConfig(
                    f"{name!r} {host} is open to other machines: give 'tls_cert' and 'tls_key', or"
                    " say --insecure (insecure = true) where the network itself is trusted"
                )
        if self.auth_client_roots is not None and self.tls_cert is None:
            raise BadConfig("'auth_client_roots' needs TLS: give 'tls_cert' and 'tls_key'")
        if self.auth_client_roots is not None and self.auth_passwords is not None:
            # pyarrow tells a certificate's name only to a server that takes no Handshake
            raise BadConfig("'auth_client_roots' and 'auth_passwords' exclude each other")
        if self.key is not None and self.key_file is not None:
            raise BadConfig("'key' and 'key_file' exclude each other")

    @property
    def serves_tls(self) -> bool:
        return self.tls_cert is not None

    @property
    def knows_callers(self) -> bool:
        """Whether there is a way to tell who calls."""
        ways = (self.auth_tokens, self.auth_passwords, self.auth_jwks, self.auth_client_roots)
        return any(way is not None for way in ways)

    @property
    def bind_location(self) -> str:
        return location(self.host, self.port, tls=self.serves_tls)

    def tls_pair(self) -> list[tuple[str, str]] | None:
        """Return the certificate and its key in the form that a Flight server takes, if any."""
        if self.tls_cert is None or self.tls_key is None:
            return None
        return [(_read("tls_cert", self.tls_cert), _read("tls_key", self.tls_key))]

    def trusted_roots(self) -> str | None:
        return None if self.tls_roots is None else _read("tls_roots", self.tls_roots)

    def client_roots(self) -> str | None:
        """Return what clients' certificates must be signed by, where they must show one."""
        roots = self.auth_client_roots
        return None if roots is None else _read("auth_client_roots", roots)

    def tls_files(self) -> dict[str, Path]:
        """Return the files that TLS is served and called with, by the keys that name them."""
        named = {
            "tls_cert": self.tls_cert,
            "tls_key": self.tls_key,
            "tls_roots": self.tls_roots,
            "auth_client_roots": self.auth_client_roots,
        }
        return {name: path for name, path in named.items() if path is not None}

    def client_tls(self) -> ClientTls:
        """Return how this process calls others: with its own certificate, since they may ask for
        one."""
        pair = self.tls_pair()
        certificate, key = pair[0] if pair else (None, None)
        return ClientTls(self.trusted_roots(), certificate, key)

    def keyring(self) -> Keyring:
        """Return the shared keys. Raises `BadConfig` when there are none."""
        if self.key is not None:
            return Keyring.from_text(self.key, "'key'")
        if self.key_file is not None:
            return Keyring.from_file(self.key_file)
        raise BadConfig(
            "coordinator and workers need a shared key: give 'key_file' (`floeberg key` makes one)"
        )


def location(host: str, port: int, *, tls: bool) -> str:
    """Return the Flight URI of an address.

    >>> location("::1", 8815, tls=False)
    'grpc+tcp://[::1]:8815'
    """
    scheme = "grpc+tls" if tls else "grpc+tcp"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may resolve to anything


def is_wildcard(host: str) -> bool:
    """Say whether `host` stands for every address of the machine, which nobody can dial."""
    return host in ("", "0.0.0.0", "::")


def advertised_location(advertise: str | None, host: str, port: int, *, tls: bool) -> str:
    """Return the URI to tell others, for a service that is bound to `host` and `port`.

    `advertise` is a whole URI, `HOST:PORT` or `HOST`. Raises `BadConfig` where it is missing and
    `host` is no address that others could dial, for what is no address at all, and for a clear-text
    URI of a TLS service: clients would send their tokens in clear.

    >>> advertised_location("worker-1.lake", "0.0.0.0", 8816, tls=True)
    'grpc+tls://worker-1.lake:8816'
    """
    if advertise is None:
        if is_wildcard(host):
            raise BadConfig(
                f"'advertise' must say where others reach this process: they can't dial {host}"
            )
        return location(host, port, tls=tls)
    uri = _advertised_uri(advertise, port, tls=tls)
    if not is_location(uri):
        raise BadConfig(
            f"'advertise' {advertise} is no Flight URI (grpc+tcp://HOST:PORT or"
            " grpc+tls://HOST:PORT), and no HOST or HOST:PORT"
        )
    if tls and not uri.startswith("grpc+tls:"):
        raise BadConfig(f"'advertise' {advertise} is clear text, and this process serves TLS")
    return uri


def _advertised_uri(advertise: str, port: int, *, tls: bool) -> str:
    if "://" in advertise:
        return advertise
    named_host, colon, named_port = advertise.rpartition(":")
    if colon and named_port.isdigit() and (":" not in named_host or named_host.endswith("]")):
        return location(named_host.strip("[]"), int(named_port), tls=tls)
    return location(advertise.strip("[]"), port, tls=tls)


def _read(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError as exc:
        raise BadConfig(f"{name!r}: {path} cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError:
        # the cause would show bytes of the file
        raise BadConfig(f"{name!r}: {path} is not PEM") from None
