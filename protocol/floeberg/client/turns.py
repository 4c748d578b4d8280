"""Where one ticket is redeemed: its locations in turn, as they fail.

When all of them have failed in turn, the coordinator is asked which workers there are now: any of
them reads any ticket.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence

import pyarrow.flight as fl

from floeberg.client.calls import ask
from floeberg.client.connection import Connection
from floeberg.process.placed_streams import OpenStreams
from floeberg.process.retries import Attempts, RetryBudget, RetryPolicy
from floeberg.protocol.actions import WORKERS
from floeberg.protocol.errors import FloebergError, ServerUnavailable, Unavailable
from floeberg.protocol.requests import RequestContext

logger = logging.getLogger(__name__)

REUSE_CONNECTION = "arrow-flight-reuse-connection://?"

_ONCE = RetryPolicy(rounds=1, patience_seconds=0)


class Turns:
    """The locations of `endpoint`, for the thread that reads it; None is the connection's own
    server.

    Raises `ServerUnavailable` where there is none that credentials may be sent to.
    """

    def __init__(
        self,
        endpoint: fl.FlightEndpoint,
        connection: Connection,
        policy: RetryPolicy,
        streams: OpenStreams,
        request: RequestContext,
        budget: RetryBudget,
    ) -> None:
        self.endpoint = endpoint
        self.connection = connection
        self.streams = streams
        self.request = request
        self.locations = connection.likely_first(_dialable(endpoint, connection))
        self._attempts = Attempts(policy, budget)
        self._turn = 0

    @property
    def location(self) -> str | None:
        """Where the ticket is redeemed now."""
        return self.locations[self._turn % len(self.locations)]

    @property
    def has_failed(self) -> bool:
        """Whether a location has failed since the last batch."""
        return self._attempts.failures > 0

    def go_to(self, location: str | None) -> None:
        """Go on at one of the locations, which has proved to be faster."""
        self._turn = self.locations.index(location)

    def succeeded(self) -> None:
        """Note that a batch has come."""
        self._attempts.succeeded()
        self.connection.has_met_worker = True

    def next_after(self, error: Unavailable, told: dict[str, object]) -> None:
        """Go on at the next location after a pause. Raises `error` where there is no use, or nobody
        reads any more; `told` is how far the stream had come, for the log."""
        if self.streams.stopped:
            raise error
        pause = self._attempts.pause_after(
            error, len(self.locations), was_served=self.connection.has_met_worker
        )
        if pause is None:
            raise error
        location = self.location
        if location is not None and type(error) is ServerUnavailable:
            self.connection.avoid(location)
        self._turn += 1
        logger.info(
            "stream broke; reading on elsewhere",
            extra={
                "location": location,
                **told,
                "seconds": round(pause, 3),
                "why": str(error),
                "request_id": self.request.request_id,
            },
        )
        self.streams.pause(pause)
        if self._attempts.failures % len(self.locations) == 0 and self.endpoint.locations:
            self.locations, self._turn = self._relocated(), 0

    def _relocated(self) -> list[str | None]:
        """Return where else the ticket may be redeemed now, and then the places that are known.

        The order differs from ticket to ticket, so that the streams of a dead worker spread.
        """
        connection, known = self.connection, self.locations
        try:
            (found,) = ask(connection, WORKERS, policy=_ONCE)
        except FloebergError as error:
            logger.info("nobody says which workers there are", extra={"why": str(error)})
            return connection.likely_first(known)
        dice = random.Random(self.endpoint.ticket.ticket)
        others = [
            at
            for at in found.locations
            if at != REUSE_CONNECTION and at not in known and connection.may_dial(at)
        ]
        return connection.likely_first([*dice.sample(others, len(others)), *known])


def _dialable(endpoint: fl.FlightEndpoint, connection: Connection) -> Sequence[str | None]:
    """Return where to redeem the ticket, first choice first."""
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
