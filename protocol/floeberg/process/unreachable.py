"""What to say when a server cannot be reached, or goes away: who, why, and what may help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from floeberg.protocol.errors import ServerUnavailable
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.requests import RequestContext

# gRPC's words, of a connection that did not come about
_NO_CONNECTION = re.compile(
    r"failed to connect|errors? resolving|DNS resolution|connection attempt timed out", re.I
)
_LAST_ERROR = re.compile(r"last error: \w+: ")


@contextmanager
def floeberg_errors(
    location: str, request: RequestContext, *, is_coordinator: bool = True
) -> Iterator[None]:
    """Raise what a Flight call to `location` raises as the `FloebergError` that it stands for, with
    the request's id."""
    try:
        yield
    except (pa.ArrowException, OSError) as exc:
        error = from_flight(exc)
        if type(error) is ServerUnavailable and f"[{error.code}]" not in str(exc):
            # gRPC's own words: they name nobody
            told = str(error)
            error = ServerUnavailable(_explain(location, told, is_coordinator))
            if _NO_CONNECTION.search(told):
                raise error from exc  # no server has seen the request
        error.request_id = error.request_id or request.request_id
        raise error from exc


def _explain(location: str, told: str, is_coordinator: bool) -> str:
    who = f"{'the coordinator' if is_coordinator else 'the worker'} {location}"
    if not _NO_CONNECTION.search(told):
        return f"{who} went away: {told}"
    reason = _LAST_ERROR.split(told)[-1]
    return f"{who} cannot be reached: {reason}; {_remedy(reason, location, is_coordinator)}"


def _remedy(reason: str, location: str, is_coordinator: bool) -> str:
    if "wrong version number" in reason or "WRONG_VERSION_NUMBER" in reason:
        return "it does not speak TLS: write grpc:// instead of grpc+tls://"
    if "CERTIFICATE_VERIFY_FAILED" in reason or "certificate" in reason:
        return "its certificate is not trusted: give the roots to trust (tls_roots, --tls-roots)"
    if "Socket closed" in reason and location.startswith("grpc+tls:"):
        return (
            "does it ask for a client certificate, or for one of another authority (tls_cert and"
            " tls_key, --tls-cert and --tls-key)?"
        )
    if "HTTP/2" in reason or "SETTINGS" in reason or "Socket closed" in reason:
        return (
            "something else listens there: is it the server's HTTP side port, or does it speak TLS"
            " (grpc+tls://)?"
        )
    if not is_coordinator:
        return (
            "a worker behind another network says where it is reached with --advertise, or the"
            " coordinator relays its streams with --redeem-at coordinator"
        )
    return "is it running (`floeberg up` starts one), and is the address right?"
