"""Calls to the coordinator, which are tried again where that may help: they change nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

import pyarrow.flight as fl
from pydantic import BaseModel

from floeberg.client.connection import Connection
from floeberg.client.sessions import SetCookies
from floeberg.process.retries import Attempts, RetryPolicy
from floeberg.process.unreachable import floeberg_errors
from floeberg.protocol.actions import Action
from floeberg.protocol.bodies import Reply
from floeberg.protocol.errors import NoWorkers, Unavailable
from floeberg.protocol.requests import RequestContext, current_request, new_request

logger = logging.getLogger(__name__)

T = TypeVar("T")
RequestT = TypeVar("RequestT", bound=BaseModel)
ReplyT = TypeVar("ReplyT", bound=Reply)

Call = Callable[[fl.FlightClient, fl.FlightCallOptions], T]

_USUAL = RetryPolicy()


def ask(
    connection: Connection,
    action: Action[RequestT, ReplyT],
    body: bytes = b"{}",
    policy: RetryPolicy = _USUAL,
) -> list[ReplyT]:
    """Return every result of `action`; most have one, long answers a page each."""

    def call(client: fl.FlightClient, options: fl.FlightCallOptions) -> list[bytes]:
        results = client.do_action(fl.Action(action.name, body), options)
        return [result.body.to_pybytes() for result in results]

    request = current_request() or new_request()
    raw = ask_coordinator(connection, action.name, call, request, policy)
    return [action.parse_reply(page) for page in raw]


def ask_coordinator(
    connection: Connection,
    name: str,
    call: Call[T],
    request: RequestContext,
    policy: RetryPolicy,
    *,
    cookie: bytes | None = None,
    kept: SetCookies | None = None,
) -> T:
    """Return what `call` returns, as soon as one of the coordinators answers it.

    Raises what the last of them said once `policy` gives up, and at once what asking again would
    not change. `name` is what kind of call it is. `cookie` is shown with it, and `kept` notes the
    cookies that its answer sets.
    """
    attempts = Attempts(policy, connection.budget)
    while True:
        location = connection.location
        try:
            answer = _ask_once(connection, location, call, request, cookie, kept)
        except Unavailable as error:
            # one that has no workers may get some, if it had some before
            needed_worker = isinstance(error, NoWorkers)
            pause = attempts.pause_after(
                error,
                len(connection.coordinators),
                was_served=(
                    connection.has_met_worker if needed_worker else connection.has_met_coordinator
                ),
            )
            if pause is None:
                raise
            connection.turn_from(location)
            logger.info(
                "call failed; trying again",
                extra={
                    "call": name,
                    "location": location,
                    "seconds": round(pause, 3),
                    "why": str(error),
                    "request_id": request.request_id,
                },
            )
            time.sleep(pause)
        else:
            connection.has_met_coordinator = True
            return answer


def _ask_once(
    connection: Connection,
    location: str,
    call: Call[T],
    request: RequestContext,
    cookie: bytes | None,
    kept: SetCookies | None,
) -> T:
    options = connection.call_options(request, cookie=cookie)
    lent = connection.client(location) if kept is None else connection.own_client(location, kept)
    with (
        lent as client,
        connection.noticing_silence(client, location, request),
        floeberg_errors(location, request),
    ):
        return call(client, options)
