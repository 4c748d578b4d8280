"""Spans of what a process does for a request, for whoever collects traces.

There are none unless `configure_tracing` was told to by the environment; until then a span costs
next to nothing, and OpenTelemetry is not even imported.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from floeberg.protocol.errors import FloebergError, InternalError

logger = logging.getLogger(__name__)

Value = str | int | float | bool


class Span(Protocol):
    """Something that takes time. Whoever begins it ends it."""

    @property
    def traceparent(self) -> str | None:
        """What to hand on, so that others' spans become parts of this one (W3C trace context)."""
        ...

    def event(self, name: str, **attributes: Value) -> None:
        """Note something that happens now."""
        ...

    def end(self, code: str | None = None, **attributes: Value) -> None:
        """End it; with the `code` of an error, as failed."""
        ...


class Tracer(Protocol):
    """Makes spans; each is part of the one that is current, or of what `traceparent` names."""

    def begin(
        self,
        name: str,
        attributes: Mapping[str, Value],
        is_call: bool,
        traceparent: str | None,
        began_ns: int | None,
    ) -> Span: ...

    def current(self, span: Span) -> AbstractContextManager[None]:
        """Have spans that begin in the block be parts of `span`."""
        ...


class _NoSpan:
    traceparent = None

    def event(self, name: str, **attributes: Value) -> None:
        pass

    def end(self, code: str | None = None, **attributes: Value) -> None:
        pass


_NO_SPAN = _NoSpan()
_NOTHING: Mapping[str, Value] = {}
_tracer: Tracer | None = None


def use_tracer(tracer: Tracer | None) -> None:
    """Have every span of this process be made by `tracer`; None is for no spans."""
    global _tracer
    _tracer = tracer


def begin_span(
    name: str,
    attributes: Mapping[str, Value | None] = _NOTHING,
    *,
    is_call: bool = False,
    traceparent: str | None = None,
    began_ns: int | None = None,
) -> Span:
    """Return a span that its caller ends: for what goes on while others work in the same thread.

    It is a part of what `traceparent` names, else of the current span. It begins now, or began at
    `began_ns` (since the epoch). `is_call` is the span of a whole call to this service. Attributes
    that are None are left out.
    """
    if _tracer is None:
        return _NO_SPAN
    given = {key: value for key, value in attributes.items() if value is not None}
    return _tracer.begin(name, given, is_call, traceparent, began_ns)


@contextmanager
def span(
    name: str,
    attributes: Mapping[str, Value | None] = _NOTHING,
    *,
    is_call: bool = False,
    traceparent: str | None = None,
) -> Iterator[Span]:
    """Give a span that lasts as long as the block, and is the current one there."""
    if _tracer is None:
        yield _NO_SPAN
        return
    made = begin_span(name, attributes, is_call=is_call, traceparent=traceparent)
    code: str | None = None
    try:
        with _tracer.current(made):
            yield made
    except BaseException as error:
        code = error.code if isinstance(error, FloebergError) else InternalError.code
        raise
    finally:
        made.end(code)


def configure_tracing(service: str, environ: Mapping[str, str]) -> None:
    """Collect spans as OpenTelemetry's standard variables say; without any of them, don't.

    `service` is the name of the service, unless `OTEL_SERVICE_NAME` says another. The environment
    may be that of a whole cluster: what can't be done is logged, and no reason not to start.
    """
    exporter = _wanted_exporter(environ)
    if exporter is None:
        return
    try:
        from floeberg.process.opentelemetry_tracer import make_tracer

        use_tracer(make_tracer(service, exporter, environ))
    except ImportError as error:
        logger.warning(
            "traces are not collected: a package is missing (pip install 'floeberg[otel]')",
            extra={"missing": error.name, "exporter": exporter},
        )
    except ValueError as error:
        logger.warning("traces are not collected", extra={"why": str(error)})
    else:
        logger.info("traces are collected", extra={"exporter": exporter})


def _wanted_exporter(environ: Mapping[str, str]) -> str | None:
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    named = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if named:
        return None if named == "none" else named
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return "otlp" if any(environ.get(name) for name in endpoints) else None
