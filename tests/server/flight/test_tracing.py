"""Traces of a query: its plan and its streams are one, from whichever client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pyarrow.flight as fl
import pytest

from floeberg.client import connect
from floeberg.process.tracing import use_tracer
from tests.support.fleet import LocalFleet, read_all
from tests.support.waiting import wait_until

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from floeberg.process.opentelemetry_tracer import OpenTelemetryTracer

ORDERS = fl.FlightDescriptor.for_path("db", "orders")
TRACE, CALLER = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331


class Collected:
    """The spans that have ended, by name."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def all(self, name: str) -> list[ReadableSpan]:
        return [s for s in self.exporter.get_finished_spans() if s.name == name]

    def the(self, name: str) -> ReadableSpan:
        (found,) = self.all(name)
        return found

    def streams(self, number: int) -> list[ReadableSpan]:
        """Return the streams' spans, once there are as many."""
        wait_until(lambda: len(self.all("DoGet")) == number, f"{number} streams to end")
        return self.all("DoGet")


@pytest.fixture
def spans(fleet: LocalFleet) -> Iterator[Collected]:
    collected = Collected()
    use_tracer(OpenTelemetryTracer(collected.provider))
    yield collected
    use_tracer(None)


def parent_id(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def ids(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def traced_call() -> fl.FlightCallOptions:
    header = (b"traceparent", f"00-{TRACE:032x}-{CALLER:016x}-01".encode())
    return fl.FlightCallOptions(headers=cast(Any, [header]))


def test_streams_are_parts_of_the_plan_and_the_plan_of_its_caller_s_trace(
    client: fl.FlightClient, spans: Collected
) -> None:
    info = client.get_flight_info(ORDERS, traced_call())
    read_all(info)  # a stock client, which sends no header here

    plan = spans.the("GetFlightInfo")
    streams = spans.streams(len(info.endpoints))
    trace_id, plan_id = ids(plan)
    assert (trace_id, parent_id(plan)) == (TRACE, CALLER)
    assert {ids(s)[0] for s in streams} == {TRACE}
    assert {parent_id(s) for s in streams} == {plan_id}
    assert plan.kind is trace.SpanKind.SERVER
    for step in ("load the table", "bind names", "place tasks on workers", "seal tickets"):
        assert parent_id(spans.the(step)) == plan_id
    rows = [dict(s.attributes or {})["floeberg.rows"] for s in streams]
    assert sum(int(str(n)) for n in rows) == 800
    assert {dict(s.attributes or {})["floeberg.table"] for s in streams} == {"warehouse.db.orders"}


def test_a_plan_that_fails_ends_its_span_with_the_code(
    client: fl.FlightClient, spans: Collected
) -> None:
    with pytest.raises(Exception, match="UNKNOWN_TABLE"):
        client.get_flight_info(fl.FlightDescriptor.for_path("db", "none"))

    plan = spans.the("GetFlightInfo")
    assert plan.status.status_code is trace.StatusCode.ERROR
    assert dict(plan.attributes or {})["error.type"] == "UNKNOWN_TABLE"
    assert "none" not in str(plan.to_json())
    assert parent_id(plan) is None


def test_a_program_that_traces_itself_has_its_scans_in_its_trace(
    fleet: LocalFleet, spans: Collected
) -> None:
    tracer = spans.provider.get_tracer("program")
    with tracer.start_as_current_span("nightly"), connect(fleet.location) as lake:
        lake.table("db.orders").scan().to_arrow()

    trace_id, program_id = ids(spans.the("nightly"))
    plan = spans.the("GetFlightInfo")
    assert ids(plan)[0] == trace_id
    assert parent_id(plan) == program_id
    wait_until(lambda: spans.all("DoGet"), "a stream to end")
    assert {ids(s)[0] for s in spans.all("DoGet")} == {trace_id}
