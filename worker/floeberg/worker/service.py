"""The worker's Flight service: DoGet redeems a ticket, and coordinators ask who it is. A thin
adapter over `Redeemer` and `Answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.process.auth import Gate, Principal
from floeberg.process.failures import Failures
from floeberg.process.flight import FlightService, cancellation
from floeberg.protocol.errors import BadCommand
from floeberg.protocol.registration import ASK_WORKER
from floeberg.protocol.requests import current_request
from floeberg.protocol.status import StreamEntry, WorkerStatus
from floeberg.worker.asked import Answers
from floeberg.worker.streams import Redeemer

STATUS_ACTION = "floeberg.worker-status"


class WorkerServer(FlightService):
    """Answers calls from the moment it is made; `shutdown` ends it."""

    answers = "DoGet with tickets that a coordinator's GetFlightInfo gives"

    def __init__(
        self,
        location: str,
        redeemer: Redeemer,
        answers: Answers,
        status: Callable[[], WorkerStatus],
        gate: Gate,
        failures: Failures,
        tls: list[tuple[str, str]] | None = None,
        client_roots: str | None = None,
        stall_seconds: float = 0.0,
    ) -> None:
        self._redeemer = redeemer
        self._answers = answers
        self._status = status
        super().__init__(location, gate, failures, tls, client_roots, stall_seconds)

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.FlightDataStream:
        # A refusal must be raised here: clients try an endpoint's next location only until the
        # first message, and the schema is one.
        with self.answering(context):
            caller = self.principal(context)
            stream = self._redeemer.redeem(ticket.ticket, cancellation(context), caller)
            request = current_request()  # the ticket's
        sent = self.streaming(stream.batches, context, request)
        # the stubs don't know that a batch may come with its app_metadata, or with none
        batches = cast(Iterator[pa.RecordBatch], sent)
        return fl.GeneratorStream(stream.schema, batches)

    # the stubs ask for Action and bytes where pyarrow takes tuples and Result
    def list_actions(  # type: ignore[override]
        self, context: fl.ServerCallContext
    ) -> list[tuple[str, str]]:
        with self.answering(context):
            self.principal(context)
        return [
            (STATUS_ACTION, "what this worker is busy with, as JSON"),
            (ASK_WORKER, "a coordinator asks who this is (sealed)"),
        ]

    def do_action(  # type: ignore[override]
        self, context: fl.ServerCallContext, action: fl.Action
    ) -> Iterator[fl.Result]:
        with self.answering(context):
            if action.type == ASK_WORKER:  # coordinators prove themselves by the seal
                answer = self._answers.answer(action.body.to_pybytes())
            else:
                answer = self._status_for(self.principal(context), action.type)
        return iter([fl.Result(pa.py_buffer(answer))])

    def _status_for(self, caller: Principal | None, action: str) -> bytes:
        if action != STATUS_ACTION:
            raise BadCommand(
                f"a worker has no action {action!r}; it has {STATUS_ACTION}, and the coordinator"
                " has the others"
            )
        status = self._status()
        if caller is not None:
            status = without_others(status, caller)
        return status.model_dump_json().encode()


def without_others(status: WorkerStatus, caller: Principal) -> WorkerStatus:
    """Return a status without the streams of others: policies may keep their tables' names from
    who asks, and a worker does not know the policies."""

    def own(streams: tuple[StreamEntry, ...]) -> tuple[StreamEntry, ...]:
        return tuple(stream for stream in streams if stream.principal == caller.name)

    return status.model_copy(update={"running": own(status.running), "recent": own(status.recent)})
