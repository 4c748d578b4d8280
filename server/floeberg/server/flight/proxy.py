"""Serve a ticket on a worker's behalf, for clients that can't reach the workers.

The coordinator relays a worker's stream, batch by batch with its metadata; it reads nothing itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from hashlib import blake2b

import pyarrow as pa
import pyarrow.flight as fl
from prometheus_client import CollectorRegistry, Counter

from floeberg.process.auth import Gate, Principal, check_redeemer
from floeberg.process.calling import NO_TLS, ClientTls, call_options
from floeberg.protocol.errors import Unavailable
from floeberg.protocol.flight_errors import as_floeberg_errors
from floeberg.protocol.requests import RequestContext, adopt
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.sql_tickets import (
    SqlTicket,
    decode_rows,
    is_sql_ticket,
    open_sql_ticket,
)
from floeberg.protocol.tickets import OpenTicket, open_ticket
from floeberg.server.fleet import rank
from floeberg.server.flight.members import Members

logger = logging.getLogger(__name__)

# Left to itself, gRPC buffers tens of MB for a client that doesn't read; measured: this loses no
# throughput.
_CHANNEL_OPTIONS: list[tuple[str, int | str]] = [
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 4 << 20),
]


@dataclass(frozen=True, slots=True)
class Relay:
    """A worker's stream on its way to a client."""

    schema: pa.Schema
    batches: Generator[tuple[pa.RecordBatch, pa.Buffer | None], None, None]


class Proxy:
    """Redeems tickets at workers. Safe to use from several threads; `close` it."""

    def __init__(
        self,
        members: Members,
        keyring: Keyring,
        registry: CollectorRegistry,
        gate: Gate,
        tls: ClientTls = NO_TLS,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._members = members
        self._keyring = keyring
        self._gate = gate
        self._tls = tls
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._clients: dict[str, fl.FlightClient] = {}
        self._streams = Counter(
            "floeberg_proxied_streams", "Streams relayed from workers.", registry=registry
        )

    def redeem(self, ticket: bytes, caller: Principal | None = None) -> Relay:
        """Return the stream of `ticket` from the first worker that gives it to `caller`.

        Raises `BadTicket`, `ExpiredTicket` and `NotPermitted` without asking any worker,
        `NoWorkers`, and what the last worker said when none could.
        """
        now_ms = self._now_ms()
        opened: OpenTicket | SqlTicket
        if is_sql_ticket(ticket):
            opened = open_sql_ticket(ticket, self._keyring, now_ms=now_ms)
        else:
            opened = open_ticket(ticket, self._keyring, now_ms=now_ms)
        if opened.origin.request_id is not None:
            adopt(RequestContext(opened.origin.request_id, opened.origin.traceparent))
        check_redeemer(opened, caller)
        if isinstance(opened, SqlTicket) and not opened.sql:
            return Relay(opened.schema, _told(opened))
        # workers may ask who calls, and the client has said so here
        options = call_options(self._gate.relay_token(caller))
        refusal: Unavailable = self._members.refusal()
        key = blake2b(ticket, digest_size=16).hexdigest()
        for worker in rank(self._members.ready(), key):
            try:
                with as_floeberg_errors():
                    reader = self._client(worker.location).do_get(fl.Ticket(ticket), options)
                    schema = reader.schema
            except Unavailable as error:
                logger.info(
                    "worker refused a stream",
                    extra={"worker": worker.worker_id, "code": error.code},
                )
                refusal = error
                continue
            self._streams.inc()
            return Relay(schema, _batches(reader))
        raise refusal

    def close(self) -> None:
        with self._lock:
            clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            client.close()

    def _client(self, location: str) -> fl.FlightClient:
        with self._lock:
            client = self._clients.get(location)
            if client is None:
                client = self._clients[location] = fl.FlightClient(
                    location,
                    generic_options=list(_CHANNEL_OPTIONS),
                    **self._tls.arguments(),
                )
            return client


def _told(ticket: SqlTicket) -> Generator[tuple[pa.RecordBatch, pa.Buffer | None], None, None]:
    for one in ticket.inputs:
        for batch in decode_rows(one.rows):
            yield batch, None


def _batches(
    reader: fl.FlightStreamReader,
) -> Generator[tuple[pa.RecordBatch, pa.Buffer | None], None, None]:
    try:
        while True:
            with as_floeberg_errors():
                chunk = next(reader, None)
            if chunk is None:
                return
            if chunk.data is not None:
                yield chunk.data, chunk.app_metadata
    finally:
        reader.cancel()  # harmless at the end, and needed when the client went away
