"""Read one endpoint's stream to its end, on whichever of its workers lives.

Each batch carries its place (task, next physical row). When a stream breaks, it is resumed after
the last batch that was delivered, on the next location: no row comes twice, and none is missing.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Condition

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.client.calls import ask
from floeberg.client.connection import Connection
from floeberg.client.hedging import Attempt, HedgedStream, Hedges
from floeberg.process.placed_streams import OpenStreams, Placed, from_place, read_placed
from floeberg.process.retries import Attempts, RetryBudget, RetryPolicy
from floeberg.process.unreachable import floeberg_errors
from floeberg.protocol.actions import WORKERS
from floeberg.protocol.errors import (
    FloebergError,
    ServerUnavailable,
    Unavailable,
)
from floeberg.protocol.plans import START, ResumePlace
from floeberg.protocol.requests import RequestContext

logger = logging.getLogger(__name__)

REUSE_CONNECTION = "arrow-flight-reuse-connection://?"

_ONCE = RetryPolicy(rounds=1, patience_seconds=0)


@dataclass(frozen=True, slots=True)
class Progress:
    """What came since the last time that progress was told."""

    rows: int = 0
    size_bytes: int = 0
    finished_endpoints: int = 0
    resumed_streams: int = 0
    """Streams that had broken after some of their rows were here, and have gone on elsewhere."""
    hedged_streams: int = 0
    """Streams that were late, and have gone on where they were faster."""


def no_progress(progress: Progress) -> None:
    """Take progress that nobody asked for."""


def read_endpoint(
    endpoint: fl.FlightEndpoint,
    schema: pa.Schema,
    connection: Connection,
    policy: RetryPolicy,
    on_progress: Callable[[Progress], None],
    streams: OpenStreams,
    request: RequestContext,
    budget: RetryBudget,
    hedges: Hedges | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of `endpoint`, moving to the next location whenever one fails, or with
    `hedges` when one is late.

    When all of them have failed in turn, the coordinator is asked which workers there are now: any
    of them reads any ticket. Raises what the last location raised once the policy gives up; an
    error that another worker would only repeat (a corrupt file, a bad ticket) is raised at once.
    """
    locations = connection.likely_first(_dialable(endpoint, connection))
    attempts = Attempts(policy, budget)
    place: ResumePlace = START
    turn = 0

    def read(at: str | None, within: OpenStreams) -> Generator[Placed, None, None]:
        return _read_from(at, endpoint, place, schema, connection, within, request)

    def moved(slow: str | None, fast: str | None) -> None:
        nonlocal turn
        turn = locations.index(fast)
        if slow is not None:
            connection.avoid(slow)
        on_progress(Progress(hedged_streams=1))
        told = {"location": slow, "elsewhere": fast, "request_id": request.request_id}
        logger.info("stream was late; going on elsewhere", extra=told)

    while True:
        location = locations[turn % len(locations)]
        is_resumed = attempts.failures > 0 and place != START
        batches = (
            read(location, streams)
            if hedges is None
            else _read_hedged(hedges, read, location, locations, moved, streams)
        )
        try:
            for batch, after in batches:
                place = after
                attempts.succeeded()
                connection.has_met_worker = True
                on_progress(Progress(batch.num_rows, batch.nbytes, resumed_streams=is_resumed))
                is_resumed = False
                yield batch
            on_progress(Progress(finished_endpoints=1, resumed_streams=is_resumed))
            return
        except Unavailable as error:
            if streams.stopped:
                raise
            pause = attempts.pause_after(
                error, len(locations), was_served=connection.has_met_worker
            )
            if pause is None:
                raise
            location = locations[turn % len(locations)]  # which may be another one by now
            if location is not None and type(error) is ServerUnavailable:
                connection.avoid(location)
            turn += 1
            logger.info(
                "stream broke; resuming elsewhere",
                extra={
                    "location": location,
                    "task": place.task,
                    "row": place.row,
                    "seconds": round(pause, 3),
                    "why": str(error),
                    "request_id": request.request_id,
                },
            )
            streams.pause(pause)
            if attempts.failures % len(locations) == 0 and endpoint.locations:
                locations, turn = _relocated(endpoint, connection, locations), 0


def _read_hedged(
    hedges: Hedges,
    read: Callable[[str | None, OpenStreams], Generator[Placed, None, None]],
    location: str | None,
    locations: Sequence[str | None],
    moved: Callable[[str | None, str | None], None],
    streams: OpenStreams,
) -> Generator[Placed, None, None]:
    def begin(at: str | None, changed: Condition) -> Attempt[Placed]:
        own = OpenStreams(streams)
        return Attempt(at, read(at, own), own.stop, changed)

    stream = HedgedStream(hedges, begin, location, locations, moved)
    try:
        yield from stream
    finally:
        stream.close()


def _relocated(
    endpoint: fl.FlightEndpoint, connection: Connection, known: Sequence[str | None]
) -> list[str | None]:
    """Return where else a ticket may be redeemed now, and then the places that are known.

    The order differs from ticket to ticket, so that the streams of a dead worker spread.
    """
    try:
        (found,) = ask(connection, WORKERS, policy=_ONCE)
    except FloebergError as error:
        logger.info("nobody says which workers there are", extra={"why": str(error)})
        return connection.likely_first(known)
    dice = random.Random(endpoint.ticket.ticket)
    others = [
        at
        for at in found.locations
        if at != REUSE_CONNECTION and at not in known and connection.may_dial(at)
    ]
    return connection.likely_first([*dice.sample(others, len(others)), *known])


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
) -> Generator[Placed, None, None]:
    named = location or connection.location
    errors = partial(floeberg_errors, named, request, is_coordinator=location is None)
    with connection.client(location) as client:
        yield from read_placed(
            client,
            from_place(endpoint.ticket.ticket, place),
            connection.call_options(request, bounded=False),
            schema,
            named,
            errors,
            streams,
        )
