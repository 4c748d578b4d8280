"""The worker's Flight service: DoGet redeems a ticket. A thin adapter over `Redeemer`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.process.failures import Failures
from floeberg.process.flight import FlightService
from floeberg.protocol.errors import BadCommand
from floeberg.protocol.requests import current_request
from floeberg.protocol.status import WorkerStatus
from floeberg.worker.streams import Redeemer

STATUS_ACTION = "floeberg.worker-status"


class WorkerServer(FlightService):
    """Answers calls from the moment it is made; `shutdown` ends it."""

    answers = "DoGet with tickets that a coordinator's GetFlightInfo gives"

    def __init__(
        self,
        location: str,
        redeemer: Redeemer,
        status: Callable[[], WorkerStatus],
        failures: Failures,
        tls: list[tuple[str, str]] | None = None,
    ) -> None:
        self._redeemer = redeemer
        self._status = status
        super().__init__(location, failures, tls)

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.FlightDataStream:
        # A refusal must be raised here: clients try an endpoint's next location only until the
        # first message, and the schema is one.
        with self.answering(context):
            stream = self._redeemer.redeem(ticket.ticket, context.is_cancelled)
            request = current_request()  # the ticket's
        sent = self.answering_with(stream.batches, context, request)
        # the stubs don't know that a batch may come with its app_metadata
        batches = cast(Iterator[pa.RecordBatch], sent)
        return fl.GeneratorStream(stream.schema, batches)

    # the stubs ask for Action and bytes where pyarrow takes tuples and Result
    def list_actions(  # type: ignore[override]
        self, context: fl.ServerCallContext
    ) -> list[tuple[str, str]]:
        return [(STATUS_ACTION, "what this worker is busy with, as JSON")]

    def do_action(  # type: ignore[override]
        self, context: fl.ServerCallContext, action: fl.Action
    ) -> Iterator[fl.Result]:
        with self.answering(context):
            if action.type != STATUS_ACTION:
                raise BadCommand(
                    f"a worker has no action {action.type!r}; it has {STATUS_ACTION}, and the"
                    " coordinator has the others"
                )
            body = self._status().model_dump_json().encode()
        return iter([fl.Result(pa.py_buffer(body))])
