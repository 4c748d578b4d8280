"""A Flight server on which every call has an answer: what a service doesn't serve, it says so.

Left to pyarrow, such a call fails without a word and without a code.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar, NoReturn, TypeVar

import pyarrow.flight as fl

from floeberg.process.failures import Failures
from floeberg.process.flight_requests import MIDDLEWARE, RequestMiddlewareFactory, request_of_call
from floeberg.process.tracing import span
from floeberg.protocol.errors import Unsupported
from floeberg.protocol.flight_errors import as_flight_errors
from floeberg.protocol.requests import RequestContext, new_request, working_on

T = TypeVar("T")


class FlightService(fl.FlightServerBase):
    """Base of the Flight services. `answers` completes "this service answers …", for the message
    that refuses other calls with `Unsupported`.
    """

    answers: ClassVar[str]

    def __init__(
        self, location: str, failures: Failures, tls: list[tuple[str, str]] | None = None
    ) -> None:
        self._failures = failures
        super().__init__(
            location,
            tls_certificates=tls,
            # the stubs know middleware by names of bytes
            middleware={MIDDLEWARE: RequestMiddlewareFactory()},
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

    def _refuse(self, context: fl.ServerCallContext, call: str) -> NoReturn:
        with self.answering(context):
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
