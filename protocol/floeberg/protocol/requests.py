"""What names a request on its way from the client to the coordinator to the workers.

A request's id comes in the header `x-request-id`; from a client that sends W3C trace context
(`traceparent`) instead, it is the trace's id; for any other it is made up. It stands in logs, in
errors, on status pages, and in tickets, so that a worker knows it from a client that sends no
header.

Whoever calls chooses the id: it says which lines belong together, and is trusted for nothing.
"""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

REQUEST_ID_HEADER = "x-request-id"
TRACEPARENT_HEADER = "traceparent"

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
# version 00 of https://www.w3.org/TR/trace-context/; a later one may have more behind it
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


Headers = Mapping[str, Sequence[str] | Sequence[bytes] | Sequence[str | bytes]]


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What a call belongs to. `traceparent` is the header's value, None without valid one."""

    request_id: str
    traceparent: str | None = None


def new_request_id(random: Callable[[int], str] = secrets.token_hex) -> str:
    """Return an id of 16 hex digits."""
    return random(8)


def new_request() -> RequestContext:
    """Return a request of its own, a part of the trace that this thread's program is in.

    Whoever traces has imported OpenTelemetry; nobody else needs to.
    """
    return RequestContext(new_request_id(), _traceparent_of_program())


def _traceparent_of_program() -> str | None:
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    span = api.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"


def trace_id_of(traceparent: str) -> str | None:
    """Return the id of a trace, or None for what is no trace context.

    >>> trace_id_of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    '0af7651916cd43dd8448eb211c80319c'
    """
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None or not found[1].strip("0") or not found[2].strip("0"):
        return None
    return found[1]


def request_of(
    headers: Headers,
    new_id: Callable[[], str] = new_request_id,
) -> RequestContext:
    """Return the request that a call's headers, their names in lower case, tell of.

    Headers that are not what they should be are passed over, as if they were not there.
    """
    traceparent = _first(headers, TRACEPARENT_HEADER)
    trace_id = trace_id_of(traceparent)
    request_id = _first(headers, REQUEST_ID_HEADER)
    if not _REQUEST_ID.fullmatch(request_id):
        request_id = trace_id or new_id()
    return RequestContext(request_id, traceparent if trace_id else None)


def _first(headers: Headers, name: str) -> str:
    for value in headers.get(name, ()):
        return value.decode("latin-1") if isinstance(value, bytes) else value
    return ""


# --- the request of this thread ------------------------------------------------------------------

_current: ContextVar[RequestContext | None] = ContextVar("floeberg_request", default=None)


def current_request() -> RequestContext | None:
    """Return the request that this thread works on, None where it works on none."""
    return _current.get()


@contextmanager
def working_on(request: RequestContext | None) -> Iterator[None]:
    """Have the block's thread work on `request`, and then on what it did before."""
    before = _current.get()
    _current.set(request)
    try:
        yield
    finally:
        # not by a token: the generator of a stream may be closed in another context
        _current.set(before)


def adopt(request: RequestContext) -> None:
    """Say what this thread turned out to work on, up to the end of `working_on`'s block; outside of
    one, nothing is said."""
    if _current.get() is not None:
        _current.set(request)
