from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import cast

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from prometheus_client import CollectorRegistry

from floeberg.process.auth import Gate
from floeberg.process.failures import Failures
from floeberg.process.flight import FlightService, cancellation
from floeberg.protocol.errors import Unsupported
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.sealing import Keyring

TABLE = fl.FlightDescriptor.for_path("db", "orders")
SCHEMA = pa.schema([("id", pa.int64())])


class Silent(FlightService):
    answers = "nothing at all"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[fl.FlightClient]:
    monkeypatch.setattr(sys, "tracebacklimit", 0, raising=False)
    gate, failures = Gate(Keyring.generate()), Failures(CollectorRegistry())
    with (
        Silent("grpc://127.0.0.1:0", gate, failures) as server,
        fl.connect(f"grpc://127.0.0.1:{server.port}") as client,
    ):
        yield client


def put(client: fl.FlightClient) -> None:
    writer, _ = client.do_put(TABLE, SCHEMA)
    writer.write_batch(pa.record_batch([pa.array([1])], schema=SCHEMA))
    writer.close()


def exchange(client: fl.FlightClient) -> None:
    writer, reader = client.do_exchange(TABLE)
    with writer:
        reader.read_chunk()


@pytest.mark.parametrize(
    ("call", "ask"),
    [
        ("ListFlights", lambda client: list(client.list_flights())),
        ("GetFlightInfo", lambda client: client.get_flight_info(TABLE)),
        ("GetSchema", lambda client: client.get_schema(TABLE)),
        ("DoPut", put),
        ("DoExchange", exchange),
        ("DoGet", lambda client: client.do_get(fl.Ticket(b"x")).read_all()),
        ("DoAction", lambda client: list(client.do_action(fl.Action("x", b"")))),
        ("ListActions", lambda client: client.list_actions()),
    ],
)
def test_a_call_that_a_service_does_not_answer_is_refused_by_name(
    client: fl.FlightClient, call: str, ask: Callable[[fl.FlightClient], object]
) -> None:
    with pytest.raises(pa.ArrowNotImplementedError) as raised:
        ask(client)

    error = from_flight(raised.value)
    assert isinstance(error, Unsupported)
    assert str(error) == f"{call} is not served here: this service answers nothing at all"


def test_grpc_is_asked_now_and_then_whether_a_call_is_cancelled() -> None:
    class Context:
        asked = 0
        cancelled = False

        def is_cancelled(self) -> bool:
            self.asked += 1
            return self.cancelled

    context, now = Context(), [7.0]
    is_cancelled = cancellation(cast(fl.ServerCallContext, context), lambda: now[0])
    context.cancelled = True

    assert not is_cancelled()
    now[0] += 0.049
    assert (is_cancelled(), context.asked) == (False, 0)
    now[0] += 0.001
    assert (is_cancelled(), context.asked) == (True, 1)
    assert (is_cancelled(), context.asked) == (True, 1)
    now[0] += 1
    assert (is_cancelled(), context.asked) == (True, 1), "a call that is over has no context"
