"""The worker's Flight service: DoGet redeems a ticket. A thin adapter over `Redeemer`."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from typing import cast

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.process.auth import Gate
from floeberg.process.flight import FlightService
from floeberg.protocol.errors import BadCommand
from floeberg.protocol.flight_errors import as_flight_errors
from floeberg.worker.streams import Redeemer

STATUS_ACTION = "floeberg.worker-status"


class WorkerServer(FlightService):
    """Answers calls from the moment it is made; `shutdown` ends it."""

    answers = "DoGet with tickets that a coordinator's GetFlightInfo gives"

    def __init__(
        self,
        location: str,
        redeemer: Redeemer,
        status: Callable[[], dict[str, object]],
        gate: Gate,
        tls: list[tuple[str, str]] | None = None,
        client_roots: str | None = None,
    ) -> None:
        self._redeemer = redeemer
        self._status = status
        super().__init__(location, gate, tls, client_roots)

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.FlightDataStream:
        # A refusal must be raised here: clients try an endpoint's next location only until the
        # first message, and the schema is one.
        with as_flight_errors(context):
            caller = self.caller(context)
            stream = self._redeemer.redeem(ticket.ticket, context.is_cancelled, caller)
        # the stubs don't know that a batch may come with its app_metadata
        batches = cast(Iterator[pa.RecordBatch], _relay(stream.batches, context))
        return fl.GeneratorStream(stream.schema, batches)

    # the stubs ask for Action and bytes where pyarrow takes tuples and Result
    def list_actions(  # type: ignore[override]
        self, context: fl.ServerCallContext
    ) -> list[tuple[str, str]]:
        with as_flight_errors(context):
            self.caller(context)
        return [(STATUS_ACTION, "what this worker is busy with, as JSON")]

    def do_action(  # type: ignore[override]
        self, context: fl.ServerCallContext, action: fl.Action
    ) -> Iterator[fl.Result]:
        with as_flight_errors(context):
            self.caller(context)
            if action.type != STATUS_ACTION:
                raise BadCommand(
                    f"a worker has no action {action.type!r}; it has {STATUS_ACTION}, and the"
                    " coordinator has the others"
                )
            body = json.dumps(self._status()).encode()
        return iter([fl.Result(pa.py_buffer(body))])


def _relay(
    batches: Generator[tuple[pa.RecordBatch, bytes], None, None], context: fl.ServerCallContext
) -> Iterator[tuple[pa.RecordBatch, bytes]]:
    """Yield what `batches` yields, its errors in the form that keeps their code on the wire."""
    with as_flight_errors(context):
        yield from batches
