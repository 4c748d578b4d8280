"""Read one endpoint's stream to its end, on whichever of its workers lives.

Each batch carries its place (task, next physical row). When a stream breaks, it is resumed after
the last batch that was delivered, on the next location: no row comes twice, and none is missing.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.client.connection import Connection, floeberg_errors
from floeberg.protocol.errors import InternalError, ServerUnavailable, Unavailable
from floeberg.protocol.plans import START, ResumePlace
from floeberg.protocol.tickets import decode_place, with_resume

logger = logging.getLogger(__name__)

REUSE_CONNECTION = "arrow-flight-reuse-connection://?"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to keep trying a stream that cannot be opened or that breaks.

    After `rounds` passes over all locations without one batch the error is raised. Between passes
    the client waits a random time, up to `base_seconds` doubled a pass and `most_seconds` at most,
    so that clients of one dead worker do not return in step.
    """

    rounds: int = 4
    base_seconds: float = 0.2
    most_seconds: float = 5.0
    wait: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random

    def pause(self, failed_rounds: int) -> None:
        self.wait(self.random() * min(self.most_seconds, self.base_seconds * 2**failed_rounds))


@dataclass(frozen=True, slots=True)
class Progress:
    """What happened to a stream: told to whoever shows it."""

    rows: int = 0
    size_bytes: int = 0
    finished_endpoints: int = 0


def read_endpoint(
    endpoint: fl.FlightEndpoint,
    schema: pa.Schema,
    connection: Connection,
    policy: RetryPolicy,
    on_progress: Callable[[Progress], None],
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of `endpoint`, moving to the next location whenever one fails.

    Raises what the last location raised once the policy gives up; an error that another worker
    would only repeat (a corrupt file, a bad ticket) is raised at once.
    """
    locations = _dialable(endpoint, connection)
    place: ResumePlace = START
    failures = 0
    while True:
        location = locations[failures % len(locations)]
        try:
            for batch, after in _read_from(location, endpoint, place, schema, connection):
                place, failures = after, 0
                on_progress(Progress(batch.num_rows, batch.nbytes))
                yield batch
            on_progress(Progress(finished_endpoints=1))
            return
        except Unavailable as exc:
            failures += 1
            if failures >= policy.rounds * len(locations):
                raise
            logger.info(
                "stream broke; resuming elsewhere",
                extra={"location": location, "task": place.task, "row": place.row, "why": str(exc)},
            )
            if failures % len(locations) == 0:
                policy.pause(failures // len(locations))


def _dialable(endpoint: fl.FlightEndpoint, connection: Connection) -> list[str | None]:
    """Return where to redeem the ticket, first choice first; None is the connection's own
    server."""
    named = [location.uri.decode() for location in endpoint.locations]
    if not named:
        return [None]
    found = [None if uri == REUSE_CONNECTION else uri for uri in named]
    allowed = [uri for uri in found if uri is None or connection.may_dial(uri)]
    if not allowed:
        raise ServerUnavailable(
            f"the workers are advertised in plain text ({', '.join(named)}), and this connection"
            " uses TLS: credentials are not sent there"
        )
    return allowed


def _read_from(
    location: str | None,
    endpoint: fl.FlightEndpoint,
    place: ResumePlace,
    schema: pa.Schema,
    connection: Connection,
) -> Iterator[tuple[pa.RecordBatch, ResumePlace]]:
    raw = endpoint.ticket.ticket
    ticket = fl.Ticket(raw if place == START else with_resume(raw, place))
    with connection.client(location) as client:
        with floeberg_errors():
            reader = client.do_get(ticket, connection.call_options(bounded=False))
        try:
            with floeberg_errors():
                if not reader.schema.equals(schema):
                    raise InternalError(
                        f"{location} sent another schema than the plan's: {reader.schema}"
                    )
            while True:
                with floeberg_errors():
                    chunk = next(reader, None)
                if chunk is None:
                    return
                if chunk.data is not None:
                    if chunk.app_metadata is None:
                        raise InternalError(f"{location} sent a batch without its place")
                    yield chunk.data, decode_place(chunk.app_metadata.to_pybytes())
        finally:
            reader.cancel()
