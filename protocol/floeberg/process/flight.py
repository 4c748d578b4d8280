"""A Flight server on which every call has an answer and a caller: what a service doesn't serve, it
says so.

Left to pyarrow, such a call fails without a word and without a code. Who calls is decided by a
`Gate`; its middleware keeps what a call's headers say until the call's handler asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, NoReturn, TypeVar, cast

import pyarrow.flight as fl

from floeberg.process.auth import Gate, Principal
from floeberg.process.connections import close_connections
from floeberg.process.failures import Failures
from floeberg.process.flight_requests import MIDDLEWARE, RequestMiddlewareFactory, request_of_call
from floeberg.process.stalls import StalledClients
from floeberg.process.tracing import span
from floeberg.protocol.errors import Unsupported
from floeberg.protocol.flight_errors import as_flight_errors
from floeberg.protocol.requests import RequestContext, new_request, working_on
from floeberg.protocol.types import Json

T = TypeVar("T")

_CALL = "floeberg"

_ASKED_EVERY_SECONDS = 0.05


def cancellation(
    context: fl.ServerCallContext, now_seconds: Callable[[], float] = time.monotonic
) -> Callable[[], bool]:
    """Return what tells, within 50 ms, whether nobody waits for a call's answer any more.

    It may be asked at every step: gRPC, which looks through the call's events and holds the GIL
    meanwhile, for longer than many a step takes, is only asked now and then.
    """
    cancelled = False
    ask_at = now_seconds() + _ASKED_EVERY_SECONDS

    def is_cancelled() -> bool:
        nonlocal cancelled, ask_at
        now = now_seconds()
        if not cancelled and now >= ask_at:
            ask_at = now + _ASKED_EVERY_SECONDS
            cancelled = context.is_cancelled()
        return cancelled

    return is_cancelled


ONE_ENDPOINT_HEADER = "x-floeberg-single-endpoint"
"""Asks, where it is `true`, for answers of one endpoint that is read where the answer came from:
some clients read no other."""


class _Call(fl.ServerMiddleware):
    """What one call's headers say of its caller, and a token to answer it with."""

    def __init__(
        self,
        authorization: Sequence[str | bytes],
        cookies: Sequence[str | bytes] = (),
        token: str | None = None,
        *,
        wants_one_endpoint: bool = False,
    ) -> None:
        self.authorization = authorization
        self.cookies = cookies
        self.wants_one_endpoint = wants_one_endpoint
        self._token = token

    def sending_headers(self) -> dict[str, list[str] | list[bytes]]:
        return {} if self._token is None else {"authorization": [f"Bearer {self._token}"]}


class _Calls(fl.ServerMiddlewareFactory):
    """Logs in who sends a Handshake; every other call is admitted by its handler."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def start_call(self, info: fl.CallInfo, headers: Mapping[str, list[Any]]) -> _Call:
        authorization = headers.get("authorization", [])
        if info.method != fl.FlightMethod.HANDSHAKE or not self._gate.demands:
            asked = [_text(value).lower() for value in headers.get(ONE_ENDPOINT_HEADER, [])]
            return _Call(
                authorization, headers.get("cookie", []), wants_one_endpoint="true" in asked
            )
        with as_flight_errors():
            return _Call((), token=self._gate.log_in(authorization))
        raise AssertionError("as_flight_errors raises what is raised within")


class _Handshakes(fl.ServerAuthHandler):
    """Lets every Handshake and every call pass: the middleware has decided, or the handler will."""

    def authenticate(self, outgoing: object, incoming: object) -> None:
        return None

    # the stubs have a bool, and pyarrow takes a peer's identity
    def is_valid(self, token: object) -> str:  # type: ignore[override]
        return ""


def _text(raw: bytes | str) -> str:
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw


def _call(context: fl.ServerCallContext) -> _Call:
    call = context.get_middleware(_CALL)
    assert isinstance(call, _Call), "every call has one"
    return call


class FlightService(fl.FlightServerBase):
    """Base of the Flight services. `answers` completes "this service answers …", for the message
    that refuses other calls with `Unsupported`.
    """

    answers: ClassVar[str]

    def __init__(
        self,
        location: str,
        gate: Gate,
        failures: Failures,
        tls: list[tuple[str, str]] | None = None,
        client_roots: str | None = None,
        stall_seconds: float = 0.0,
    ) -> None:
        """Listen at `location`, with TLS if there is a certificate; with `client_roots`, clients
        must show one that is signed by those. Who takes nothing for `stall_seconds` is cut off; 0
        is for ever."""
        self._gate = gate
        self._stalled = StalledClients(
            stall_seconds, lambda peer: close_connections(peer, self.port) > 0
        )
        self._failures = failures
        super().__init__(
            location,
            # only with an auth handler does pyarrow take a Handshake
            auth_handler=_Handshakes() if gate.takes_passwords else None,
            tls_certificates=tls,
            verify_client=client_roots is not None,
            # the stubs have bytes, and pyarrow takes text as well
            root_certificates=cast(Any, client_roots),
            # the stubs know middleware by names of bytes
            middleware={MIDDLEWARE: RequestMiddlewareFactory(), _CALL: _Calls(gate)},
        )

    @contextmanager
    def answering(
        self, context: fl.ServerCallContext, request: RequestContext | None = None
    ) -> Iterator[None]:
        """Answer a part of a call within the block, for its request, or another one that turned out
        to be meant. What is raised there gets the form that clients get, and is counted.
        """
        with (
            working_on(request or request_of_call(context)),
            self._failures.counted(),
            as_flight_errors(context),
        ):
            yield

    @contextmanager
    def answering_whole(self, context: fl.ServerCallContext, call: str) -> Iterator[None]:
        """Answer a call within the block as `answering` does, in a span that `call` names.

        What the call leads to elsewhere becomes a part of the span.
        """
        request = request_of_call(context) or new_request()
        with (
            self.answering(context, request),
            span(
                call,
                {"request_id": request.request_id},
                is_call=True,
                traceparent=request.traceparent,
            ) as made,
            working_on(replace(request, traceparent=made.traceparent or request.traceparent)),
        ):
            yield

    def answering_with(
        self,
        items: Generator[T, None, None],
        context: fl.ServerCallContext,
        request: RequestContext | None = None,
    ) -> Generator[T, None, None]:
        """Yield `items`, each made as a part of the call's answer, and close them."""
        try:
            while True:
                with self.answering(context, request):
                    try:
                        item = next(items)
                    except StopIteration:
                        return
                yield item
        finally:
            with working_on(request or request_of_call(context)):
                items.close()

    def streaming(
        self,
        batches: Generator[T, None, None],
        context: fl.ServerCallContext,
        request: RequestContext | None = None,
    ) -> Generator[T, None, None]:
        """Yield the batches of a stream as `answering_with` does, to a client that may stall."""
        sent = self.answering_with(batches, context, request)
        return self._stalled.follow(_text(context.peer()), sent)

    def shutdown(self) -> None:
        self._stalled.close()
        super().shutdown()

    def principal(self, context: fl.ServerCallContext) -> Principal | None:
        """Return who calls, None where nobody needs to say so.

        Every handler begins with it. Raises `Unauthenticated`, and what verifying raises.
        """
        return self._gate.admit(
            _call(context).authorization, _text(context.peer_identity()), _text(context.peer())
        )

    def wants_one_endpoint(self, context: fl.ServerCallContext) -> bool:
        """Say whether the call asks so by `ONE_ENDPOINT_HEADER`."""
        return _call(context).wants_one_endpoint

    def carried(self, context: fl.ServerCallContext) -> Mapping[str, Json]:
        """Return what the client carries for this service, after `principal` has let it in. Raises
        `Unauthenticated` where it can't be read."""
        call = _call(context)
        return self._gate.carried(call.authorization, call.cookies)

    def have_carried(self, context: fl.ServerCallContext, content: Mapping[str, Json]) -> None:
        """Tell the client, in the headers of the answer, to carry `content` from now on. Raises
        `BadCommand` for too much."""
        call = _call(context)
        for name, value in self._gate.to_carry(call.authorization, content, call.cookies):
            context.add_header(name, value)

    def _refuse(self, context: fl.ServerCallContext, call: str) -> NoReturn:
        with self.answering(context):
            self.principal(context)
            raise Unsupported(f"{call} is not served here: this service answers {self.answers}")
        raise AssertionError("as_flight_errors raises what is raised within")

    # the stubs have text for the criteria's bytes, and a bare schema for GetSchema's result
    def list_flights(  # type: ignore[override]
        self, context: fl.ServerCallContext, criteria: bytes
    ) -> Iterator[fl.FlightInfo]:
        self._refuse(context, "ListFlights")

    def get_flight_info(
        self, context: fl.ServerCallContext, descriptor: fl.FlightDescriptor
    ) -> fl.FlightInfo:
        self._refuse(context, "GetFlightInfo")

    def get_schema(  # type: ignore[override]
        self, context: fl.ServerCallContext, descriptor: fl.FlightDescriptor
    ) -> fl.SchemaResult:
        self._refuse(context, "GetSchema")

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.FlightDataStream:
        self._refuse(context, "DoGet")

    def do_put(
        self,
        context: fl.ServerCallContext,
        descriptor: fl.FlightDescriptor,
        reader: fl.MetadataRecordBatchReader,
        writer: fl.FlightMetadataWriter,
    ) -> None:
        self._refuse(context, "DoPut")

    def do_exchange(
        self,
        context: fl.ServerCallContext,
        descriptor: fl.FlightDescriptor,
        reader: fl.MetadataRecordBatchReader,
        writer: fl.MetadataRecordBatchWriter,
    ) -> None:
        self._refuse(context, "DoExchange")

    # the stubs ask for Action and bytes where pyarrow takes tuples and Result
    def do_action(  # type: ignore[override]
        self, context: fl.ServerCallContext, action: fl.Action
    ) -> Iterator[fl.Result]:
        self._refuse(context, "DoAction")

    def list_actions(  # type: ignore[override]
        self, context: fl.ServerCallContext
    ) -> list[tuple[str, str]]:
        self._refuse(context, "ListActions")
