"""How to call a service over Flight: by which certificates, with which token, by which client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.protocol.errors import BadRequest


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

STREAM_CHANNEL: tuple[tuple[str, int | str], ...] = (
    # A client that does not read would let gRPC buffer tens of megabytes a stream; a window that
    # does not grow costs no throughput on the networks measured.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 4 << 20),
    # streams that share a connection would share its window and its thread
    ("grpc.use_local_subchannel_pool", 1),
    # how long a connection may take to come about: a machine that is gone does not refuse it
    ("grpc.min_reconnect_backoff_ms", 5_000),
    # A stream has no deadline, so a peer that fell silent is noticed by a ping. Servers take one
    # that comes more often than every five minutes for an attack.
    ("grpc.keepalive_time_ms", 330_000),
    ("grpc.keepalive_timeout_ms", 20_000),
)
"""Options of a client that reads streams."""


def call_options(token: str | None, timeout: float | None = None) -> fl.FlightCallOptions:
    """Return the options of a call that shows `token`."""
    # the stubs ask for text, and pyarrow for bytes
    headers: Any = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    return fl.FlightCallOptions(timeout=timeout, headers=headers)


class ClientPool:
    """Clients that read streams, one a location for each stream at once. Safe to use from several
    threads; `close` it.

    Up to `most_idle` are kept for later; places come and go.
    """

    def __init__(self, tls: ClientTls = NO_TLS, most_idle: int = 256) -> None:
        self._tls = tls
        self._most_idle = most_idle
        self._lock = Lock()
        self._idle: list[tuple[str, fl.FlightClient]] = []
        self._closed = False

    @contextmanager
    def lend(self, location: str) -> Iterator[fl.FlightClient]:
        """Lend a client for `location` to one stream or call at a time.

        Raises `BadRequest` for what is no location, and once the pool is closed.
        """
        client = self._taken(location) or self.dial(location)
        try:
            yield client
        except BaseException:
            client.close()  # a broken channel is not lent again
            raise
        for left_over in self._put_back(location, client):
            left_over.close()

    def _taken(self, location: str) -> fl.FlightClient | None:
        with self._lock:
            if self._closed:
                raise BadRequest("this connection was closed; connect again")
            for at in reversed(range(len(self._idle))):
                if self._idle[at][0] == location:
                    return self._idle.pop(at)[1]
        return None

    def _put_back(self, location: str, client: fl.FlightClient) -> list[fl.FlightClient]:
        """Keep a client for later; return those that are not kept."""
        with self._lock:
            if self._closed:
                return [client]
            self._idle.append((location, client))
            over = max(0, len(self._idle) - self._most_idle)
            left_over, self._idle = self._idle[:over], self._idle[over:]
        return [client for _, client in left_over]

    def dial(
        self, location: str, middleware: Sequence[fl.ClientMiddlewareFactory] = ()
    ) -> fl.FlightClient:
        """Return a client of the caller's own, which connects with its first call. Raises
        `BadRequest` for what is no location."""
        try:
            return fl.FlightClient(
                location,
                generic_options=list(STREAM_CHANNEL),
                middleware=list(middleware),
                **self._tls.arguments(),
            )
        except (pa.ArrowException, ValueError) as exc:
            raise BadRequest(f"{location!r} is not a Flight location: {exc}") from exc

    def close(self) -> None:
        """Close what is not in use; what is closes when its stream or call ends."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for _, client in idle:
            client.close()
