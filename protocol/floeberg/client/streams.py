"""Read one endpoint's stream to its end, on whichever of its workers lives.

Each batch carries its place (task, next physical row). When a stream breaks, it is resumed after
the last batch that was delivered, on the next location: no row comes twice, and none is missing.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.client.connection import Connection
from floeberg.client.unreachable import floeberg_errors
from floeberg.protocol.errors import InternalError, ServerUnavailable, Unavailable
from floeberg.protocol.plans import START, ResumePlace
from floeberg.protocol.requests import RequestContext
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
    random: Callable[[], float] = random.random

    def pause_seconds(self, failed_rounds: int) -> float:
        return self.random() * min(self.most_seconds, self.base_seconds * 2.0**failed_rounds)


@dataclass(frozen=True, slots=True)
class Progress:
    """What came since the last time that progress was told."""

    rows: int = 0
    size_bytes: int = 0
    finished_endpoints: int = 0


def no_progress(progress: Progress) -> None:
    """Take progress that nobody asked for."""


class OpenStreams:
    """The streams of one scan while they are read, so that another thread can end them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers: set[fl.FlightStreamReader] = set()
        self._stopped = Event()

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    @contextmanager
    def hold(self, reader: fl.FlightStreamReader) -> Iterator[None]:
        with self._lock:
            self._readers.add(reader)
        try:
            if self.stopped:
                reader.cancel()
            yield
        finally:
            with self._lock:
                self._readers.discard(reader)
            reader.cancel()  # harmless at a stream's end, and needed before it

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the scan."""
        self._stopped.wait(seconds)

    def stop(self) -> None:
        self._stopped.set()
        with self._lock:
            readers = list(self._readers)
        for reader in readers:
            reader.cancel()


def read_endpoint(
    endpoint: fl.FlightEndpoint,
    schema: pa.Schema,
    connection: Connection,
    policy: RetryPolicy,
    on_progress: Callable[[Progress], None],
    streams: OpenStreams,
    request: RequestContext,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of `endpoint`, moving to the next location whenever one fails.

    Raises what the last location raised once the policy gives up; an error that another worker
    would only repeat (a corrupt file, a bad ticket) is raised at once.
    """
    locations = _dialable(endpoint, connection)
    place: ResumePlace = START
    turn = failures = 0
    while True:
        location = locations[turn % len(locations)]
        try:
            for batch, after in _read_from(
                location, endpoint, place, schema, connection, streams, request
            ):
                place, failures = after, 0
                on_progress(Progress(batch.num_rows, batch.nbytes))
                yield batch
            on_progress(Progress(finished_endpoints=1))
            return
        except Unavailable as exc:
            turn, failures = turn + 1, failures + 1
            if streams.stopped or failures >= policy.rounds * len(locations):
                raise
            logger.info(
                "stream broke; resuming elsewhere",
                extra={
                    "location": location,
                    "task": place.task,
                    "row": place.row,
                    "why": str(exc),
                    "request_id": request.request_id,
                },
            )
            if failures % len(locations) == 0:
                streams.pause(policy.pause_seconds(failures // len(locations)))


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
    streams: OpenStreams,
    request: RequestContext,
) -> Iterator[tuple[pa.RecordBatch, ResumePlace]]:
    raw = endpoint.ticket.ticket
    ticket = fl.Ticket(raw if place == START else with_resume(raw, place))
    named = location or connection.location
    errors = partial(floeberg_errors, named, request, is_coordinator=location is None)
    with connection.client(location) as client:
        with errors():
            reader = client.do_get(ticket, connection.call_options(request, bounded=False))
        with streams.hold(reader):
            with errors():
                sent = reader.schema
            if not sent.equals(schema):
                raise InternalError(f"{named} sent another schema than the plan's: {sent}")
            while True:
                with errors():
                    chunk = next(reader, None)
                if chunk is None:
                    return
                if chunk.data is None:
                    continue
                if chunk.app_metadata is None:
                    raise InternalError(f"{named} sent a batch without its place")
                yield chunk.data, decode_place(chunk.app_metadata.to_pybytes())
