"""How a service calls another over Flight: by which certificates, and with which token."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow.flight as fl


@dataclass(frozen=True, slots=True)
class ClientTls:
    """PEM texts: the roots to trust (None: the system's), and the caller's own certificate with its
    key, where the other side asks for one."""

    roots: str | None = None
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)

    def arguments(self) -> dict[str, Any]:
        """Return pyarrow's names for them."""
        return {
            "tls_root_certs": self.roots,
            "cert_chain": self.certificate,
            "private_key": self.key,
        }


NO_TLS = ClientTls()

# gRPC would wait up to two minutes before it dials a process again that was away, and clients to
# one address would share that wait.
DIAL_AGAIN_SOON: tuple[tuple[str, int | str], ...] = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
)
"""Options of a client that goes on calling one process for as long as both live."""


def call_options(token: str | None, timeout: float | None = None) -> fl.FlightCallOptions:
    """Return the options of a call that shows `token`."""
    # the stubs ask for text, and pyarrow for bytes
    headers: Any = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    return fl.FlightCallOptions(timeout=timeout, headers=headers)
