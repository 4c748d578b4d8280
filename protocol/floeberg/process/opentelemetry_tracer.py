"""Spans made by OpenTelemetry's SDK (extra `otel`). Only `tracing` imports this, when it is asked
to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SpanExporter,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from floeberg.process.tracing import Span, Value
from floeberg.process.version import floeberg_version
from floeberg.protocol.requests import TRACEPARENT_HEADER

_W3C = TraceContextTextMapPropagator()


class OpenTelemetrySpan:
    def __init__(self, made: trace.Span) -> None:
        self.made = made

    @property
    def traceparent(self) -> str | None:
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, trace.set_span_in_context(self.made))
        return carrier.get(TRACEPARENT_HEADER)

    def event(self, name: str, **attributes: Value) -> None:
        self.made.add_event(name, _named(attributes))

    def end(self, code: str | None = None, **attributes: Value) -> None:
        self.made.set_attributes(_named(attributes))
        if code is not None:
            self.made.set_attribute("error.type", code)
            self.made.set_status(trace.StatusCode.ERROR, code)
        self.made.end()


class OpenTelemetryTracer:
    def __init__(self, provider: trace.TracerProvider) -> None:
        self._tracer = provider.get_tracer("floeberg", floeberg_version())

    def begin(
        self,
        name: str,
        attributes: Mapping[str, Value],
        is_call: bool,
        traceparent: str | None,
        began_ns: int | None,
    ) -> Span:
        return OpenTelemetrySpan(
            self._tracer.start_span(
                name,
                None if traceparent is None else _W3C.extract({TRACEPARENT_HEADER: traceparent}),
                trace.SpanKind.SERVER if is_call else trace.SpanKind.INTERNAL,
                attributes=_named(attributes),
                start_time=began_ns,
            )
        )

    @contextmanager
    def current(self, span: Span) -> Iterator[None]:
        if not isinstance(span, OpenTelemetrySpan):
            yield
            return
        token = context.attach(trace.set_span_in_context(span.made))
        try:
            yield
        finally:
            context.detach(token)


def _named(attributes: Mapping[str, Value]) -> dict[str, Value]:
    """Return attributes under names of our own, as the conventions ask for."""
    return {f"floeberg.{key}": value for key, value in attributes.items()}


def make_tracer(service: str, exporter: str, environ: Mapping[str, str]) -> OpenTelemetryTracer:
    """Return a tracer that exports in batches from a thread of its own. The SDK reads the rest of
    the variables itself: sampler, resource, batches, endpoint, headers.

    Raises `ImportError` where a package is missing, `ValueError` for an exporter that is unknown.
    """
    names = {} if environ.get("OTEL_SERVICE_NAME") else {"service.name": service}
    provider = TracerProvider(resource=Resource.create(names))
    provider.add_span_processor(BatchSpanProcessor(_exporter(exporter, environ)))
    return OpenTelemetryTracer(provider)


def _exporter(name: str, environ: Mapping[str, str]) -> SpanExporter:
    match name:
        case "console":
            return ConsoleSpanExporter()
        case "otlp":
            protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get(
                "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"
            )
            if protocol != "http/protobuf":
                raise ValueError(f"OTLP is sent as http/protobuf, and not as {protocol!r}")
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            return OTLPSpanExporter()
        case _:
            raise ValueError(f"OTEL_TRACES_EXPORTER is otlp, console or none, and not {name!r}")
