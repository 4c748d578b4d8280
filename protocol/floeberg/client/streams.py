"""Read one endpoint's stream to its end, on whichever of its workers lives.

Each batch of a scan carries its place (task, next physical row). When a stream breaks, it is
resumed after the last batch that was delivered, on the next location: no row comes twice, and none
is missing. What a statement gives has no such places: it is held until its stream has ended, up to
a size, and read anew if that breaks before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from threading import Condition

import pyarrow as pa

from floeberg.client.hedging import Attempt, HedgedStream, Hedges
from floeberg.client.turns import Turns
from floeberg.process.placed_streams import (
    OpenStreams,
    Placed,
    from_place,
    read_batches,
    read_placed,
)
from floeberg.process.retries import is_seen
from floeberg.process.unreachable import floeberg_errors
from floeberg.protocol.errors import ServerUnavailable, Unavailable
from floeberg.protocol.plans import START, ResumePlace

logger = logging.getLogger(__name__)

HELD_BYTES = 4 << 20
"""How much of a statement's stream is held, so that it can be read anew; of eight streams at
once."""

_RUNS_ANEW = 3
"""How often a statement is run again whose stream broke: it may be what workers die of."""


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


OnProgress = Callable[[Progress], None]


# --- a scan's ------------------------------------------------------------------------------------


def read_scan(
    turns: Turns, schema: pa.Schema, on_progress: OnProgress, hedges: Hedges | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a scan's endpoint, moving to the next location whenever one fails, or
    with `hedges` when one is late.

    Raises what the last location raised once the policy gives up; an error that another worker
    would only repeat (a corrupt file, a bad ticket) is raised at once.
    """
    place: ResumePlace = START

    def read(at: str | None, within: OpenStreams) -> Generator[Placed, None, None]:
        return _read_from(at, turns, place, schema, within)

    def moved(slow: str | None, fast: str | None) -> None:
        turns.go_to(fast)
        if slow is not None:
            turns.connection.avoid(slow)
        on_progress(Progress(hedged_streams=1))
        told = {"location": slow, "elsewhere": fast, "request_id": turns.request.request_id}
        logger.info("stream was late; going on elsewhere", extra=told)

    while True:
        is_resumed = turns.has_failed and place != START
        batches = (
            read(turns.location, turns.streams)
            if hedges is None
            else _read_hedged(hedges, read, turns, moved)
        )
        try:
            for batch, after in batches:
                place = after
                turns.succeeded()
                on_progress(Progress(batch.num_rows, batch.nbytes, resumed_streams=is_resumed))
                is_resumed = False
                yield batch
            on_progress(Progress(finished_endpoints=1, resumed_streams=is_resumed))
            return
        except Unavailable as error:
            turns.next_after(error, {"task": place.task, "row": place.row})


def _read_hedged(
    hedges: Hedges,
    read: Callable[[str | None, OpenStreams], Generator[Placed, None, None]],
    turns: Turns,
    moved: Callable[[str | None, str | None], None],
) -> Generator[Placed, None, None]:
    def begin(at: str | None, changed: Condition) -> Attempt[Placed]:
        own = OpenStreams(turns.streams)
        return Attempt(at, read(at, own), own.stop, changed)

    stream = HedgedStream(hedges, begin, turns.location, turns.locations, moved)
    try:
        yield from stream
    finally:
        stream.close()


def _read_from(
    location: str | None,
    turns: Turns,
    place: ResumePlace,
    schema: pa.Schema,
    streams: OpenStreams,
) -> Generator[Placed, None, None]:
    connection, request = turns.connection, turns.request
    named = location or connection.location
    errors = partial(floeberg_errors, named, request, is_coordinator=location is None)
    with connection.client(location) as client:
        yield from read_placed(
            client,
            from_place(turns.endpoint.ticket.ticket, place),
            connection.call_options(request, bounded=False),
            schema,
            named,
            errors,
            streams,
        )


# --- a statement's -------------------------------------------------------------------------------


def read_statement(
    turns: Turns, schema: pa.Schema, on_progress: OnProgress
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of what a statement gives.

    A stream that breaks before `HELD_BYTES` have come is read anew at the next location. One that
    breaks later can't be: its rows have no order that another worker would repeat. Raises
    `ServerUnavailable` then, and else what `read_scan` raises.
    """
    broken = 0
    while True:
        held: list[pa.RecordBatch] = []
        held_bytes = 0
        try:
            for batch in _read_anew(turns, schema):
                turns.connection.has_met_worker = True
                held.append(batch)
                held_bytes += batch.nbytes
                if held_bytes > HELD_BYTES:
                    yield from _told(held, on_progress)
                    held.clear()
            break
        except Unavailable as error:
            if held_bytes > HELD_BYTES and not turns.streams.stopped:
                raise _broken_off(error) from error
            broken += type(error) is ServerUnavailable and is_seen(error)
            if broken > _RUNS_ANEW:
                raise
            turns.next_after(error, {"held_bytes": held_bytes})
    yield from _told(held, on_progress)
    on_progress(Progress(finished_endpoints=1))


def _told(batches: list[pa.RecordBatch], on_progress: OnProgress) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        on_progress(Progress(batch.num_rows, batch.nbytes))
        yield batch


def _broken_off(error: Unavailable) -> ServerUnavailable:
    told = ServerUnavailable(
        "the query broke off after some of its rows were here, which can't be gone on with: run it"
        f" again ({error})"
    )
    told.request_id = error.request_id
    return told


def _read_anew(turns: Turns, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    connection, request, location = turns.connection, turns.request, turns.location
    named = location or connection.location
    errors = partial(floeberg_errors, named, request, is_coordinator=location is None)
    with connection.client(location) as client:
        stream = read_batches(
            client,
            turns.endpoint.ticket,
            connection.call_options(request, bounded=False),
            schema,
            named,
            errors,
            turns.streams,
        )
        yield from (batch for batch, _ in stream)
