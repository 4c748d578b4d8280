"""The one place where errors become Flight statuses, and statuses errors again.

Every error has a stable code (`floeberg.protocol.errors`). Over Flight it stands in three places:

- in the message, which reads `[UNKNOWN_TABLE] no table 'db.x'`;
- in the trailer `x-floeberg-error-code`, for clients of gRPC that show trailers;
- in `extra_info` (`grpc-status-details-bin`), a google.rpc.Status with an ErrorInfo whose reason is
  the code and whose domain is `floeberg`, for clients that decode it, as ADBC does. Its metadata
  have the request's id, which is the trailer `x-request-id` as well.

What limits the choice of statuses (measured with pyarrow 26):

- pyarrow's Flight errors cover six gRPC codes. INVALID_ARGUMENT, NOT_FOUND and UNIMPLEMENTED exist
  only as plain Python exceptions, which carry no `extra_info`, and which pyarrow sends with their
  traceback, causes included, unless `sys.tracebacklimit` is 0. A server calls
  `switch_tracebacks_off` as it starts; in a process that did not, those three become UNKNOWN
  rather than leak. (Logging then needs an explicit `limit` to format a traceback.)
- CANCELLED is never sent: a pyarrow client takes it for Ctrl-C, and its main thread gets
  `KeyboardInterrupt` out of the read. `Cancelled` leaves as UNAVAILABLE.
- GetSchema alone sends each of pyarrow's Flight errors as UNKNOWN, without details, and puts
  `Unknown error: ` before the message; the code in the message and the trailer remain.
- gRPC refuses trailers above 8 KiB, and a message is in them up to five times: it is shortened.
"""

from __future__ import annotations

import logging
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Protocol
from urllib.parse import quote

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.protocol import errors
from floeberg.protocol.errors import FloebergError, error_from_code
from floeberg.protocol.requests import REQUEST_ID_HEADER, current_request

logger = logging.getLogger(__name__)

CODE_TRAILER = "x-floeberg-error-code"
DOMAIN = "floeberg"
MAX_MESSAGE_COST = 1400
"""How long a message may be after percent-encoding, which gRPC does to it."""


class Status(IntEnum):
    """The gRPC codes that pyarrow can send, by gRPC's numbers."""

    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


STATUSES: dict[type[FloebergError], Status] = {
    FloebergError: Status.UNKNOWN,
    # change the call
    errors.BadRequest: Status.INVALID_ARGUMENT,
    errors.UnknownTable: Status.NOT_FOUND,
    errors.UnknownCatalog: Status.NOT_FOUND,
    errors.UnknownColumn: Status.INVALID_ARGUMENT,
    errors.AmbiguousColumn: Status.INVALID_ARGUMENT,
    errors.BadFilter: Status.INVALID_ARGUMENT,
    errors.BadLiteral: Status.INVALID_ARGUMENT,
    errors.UnknownSnapshot: Status.NOT_FOUND,
    errors.UnknownRef: Status.NOT_FOUND,
    errors.NoSnapshotAsOf: Status.NOT_FOUND,
    errors.ConflictingSnapshot: Status.INVALID_ARGUMENT,
    errors.BadCommand: Status.INVALID_ARGUMENT,
    errors.BadSql: Status.INVALID_ARGUMENT,
    # UNIMPLEMENTED would make ADBC try the statement again by another road
    errors.UnsupportedSql: Status.INVALID_ARGUMENT,
    errors.ReadOnly: Status.INVALID_ARGUMENT,
    errors.BadConfig: Status.INVALID_ARGUMENT,
    errors.BadTicket: Status.INVALID_ARGUMENT,
    errors.ExpiredTicket: Status.INVALID_ARGUMENT,
    errors.StaleTicket: Status.INVALID_ARGUMENT,
    errors.BadHandle: Status.INVALID_ARGUMENT,
    errors.PlanTooLarge: Status.INVALID_ARGUMENT,
    errors.SqlFailed: Status.INVALID_ARGUMENT,
    errors.QueryTooLarge: Status.INVALID_ARGUMENT,
    errors.LimitExceeded: Status.INVALID_ARGUMENT,
    # present other credentials
    errors.Denied: Status.PERMISSION_DENIED,
    errors.Unauthenticated: Status.UNAUTHENTICATED,
    errors.NotPermitted: Status.PERMISSION_DENIED,
    errors.AccessDenied: Status.PERMISSION_DENIED,
    errors.ExpiredCredentials: Status.PERMISSION_DENIED,
    # valid, and not served
    errors.Unsupported: Status.UNIMPLEMENTED,
    errors.UnsupportedVersion: Status.UNIMPLEMENTED,
    # a damaged table: INTERNAL is left to our own faults, so that it can raise an alarm
    errors.CorruptTable: Status.UNKNOWN,
    errors.NotATable: Status.NOT_FOUND,
    errors.MissingFile: Status.UNKNOWN,
    errors.CorruptMetadata: Status.UNKNOWN,
    errors.CorruptManifest: Status.UNKNOWN,
    errors.CorruptDataFile: Status.UNKNOWN,
    errors.CorruptDeletes: Status.UNKNOWN,
    # try again
    errors.Unavailable: Status.UNAVAILABLE,
    errors.StorageUnavailable: Status.UNAVAILABLE,
    errors.CatalogUnavailable: Status.UNAVAILABLE,
    errors.CredentialsUnavailable: Status.UNAVAILABLE,
    errors.NoWorkers: Status.UNAVAILABLE,
    errors.WorkerBusy: Status.UNAVAILABLE,
    errors.FleetBusy: Status.UNAVAILABLE,
    errors.ServerUnavailable: Status.UNAVAILABLE,
    errors.TimedOut: Status.DEADLINE_EXCEEDED,
    errors.PlanTimeout: Status.DEADLINE_EXCEEDED,
    errors.ServerBusy: Status.UNAVAILABLE,
    errors.TooManyQueries: Status.UNAVAILABLE,
    errors.Cancelled: Status.UNAVAILABLE,
    # a fault of floeberg
    errors.InternalError: Status.INTERNAL,
}


class _SaidOnce(Exception):
    """A plain exception whose message pyarrow sends once.

    It sends `MESSAGE. Detail: Python exception: ` and the exception as `traceback` formats it,
    which would have the message again: a person reads it twice, behind names of classes. So to
    that module alone, the message is nothing.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self._message = message

    def __str__(self) -> str:
        # there is no frame behind this one where pyarrow asks
        asking = sys._getframe().f_back
        if asking is not None and asking.f_globals.get("__name__") == "traceback":
            return ""
        return self._message


# what pyarrow sends for each is by the class that it derives from
class _Invalid(_SaidOnce, pa.ArrowInvalid): ...


class _NotFound(_SaidOnce, pa.ArrowKeyError): ...


class _Unserved(_SaidOnce, pa.ArrowNotImplementedError): ...


_PLAIN: dict[Status, type[_SaidOnce]] = {
    Status.INVALID_ARGUMENT: _Invalid,
    Status.NOT_FOUND: _NotFound,
    Status.UNIMPLEMENTED: _Unserved,
}
_DETAIL = ". Detail: Python exception: "
_SENT_AS = "Refused"
for _class in _PLAIN.values():
    # what is sent in the message's place: the class's name, after its module's unless that is this
    _class.__module__, _class.__qualname__ = "builtins", _SENT_AS
_FLIGHT: dict[Status, type[fl.FlightError]] = {
    Status.UNKNOWN: fl.FlightServerError,
    Status.DEADLINE_EXCEEDED: fl.FlightTimedOutError,
    Status.PERMISSION_DENIED: fl.FlightUnauthorizedError,
    Status.INTERNAL: fl.FlightInternalError,
    Status.UNAVAILABLE: fl.FlightUnavailableError,
    Status.UNAUTHENTICATED: fl.FlightUnauthenticatedError,
}


# --- leaving a server ----------------------------------------------------------------------------


class Trailers(Protocol):
    """The part of a Flight call's context that takes trailers."""

    def add_trailer(self, key: str, value: str) -> None: ...


def switch_tracebacks_off() -> None:
    """Keep tracebacks from clients, for the whole process: call it before a server starts."""
    sys.tracebacklimit = 0


@contextmanager
def as_flight_errors(context: Trailers | None = None) -> Iterator[None]:
    """Raise what a handler, or the generator of a stream, raises in the form that clients get.

    `context` is the call's, for the trailer; middleware has none.
    """
    try:
        yield
    except Exception as error:
        # with a cause, pyarrow would send the cause's text as well
        raise to_flight(error, context) from None


def to_flight(
    error: BaseException,
    context: Trailers | None = None,
    incident: Callable[[], str] = lambda: secrets.token_hex(4),
) -> Exception:
    """Return what to raise in a Flight handler for `error`; raise it `from None`.

    An error from another Flight server that was called keeps its code. Any other foreign exception
    becomes `InternalError` that shows `incident` and nothing else; the log has the rest under it.
    """
    known = _known_error(error, incident)
    status = STATUSES.get(type(known), Status.UNKNOWN)
    message = f"[{known.code}] {_shortened(str(known))}"
    request = current_request()
    request_id = None if request is None else request.request_id
    if context is not None:
        context.add_trailer(CODE_TRAILER, known.code)
        if request_id is not None:
            context.add_trailer(REQUEST_ID_HEADER, request_id)
    raised: Exception
    if status in _PLAIN and getattr(sys, "tracebacklimit", None) == 0:
        raised = _PLAIN[status](message)
    else:
        flight_class = _FLIGHT.get(status)
        if flight_class is None:
            status, flight_class = Status.UNKNOWN, fl.FlightServerError
        raised = flight_class(message, _status_details(status, message, known.code, request_id))
    raised.__suppress_context__ = True
    return raised


def _known_error(error: BaseException, incident: Callable[[], str]) -> FloebergError:
    if isinstance(error, FloebergError):
        return error
    if isinstance(error, fl.FlightError):
        return from_flight(error)
    name = incident()
    logger.error("unexpected error", exc_info=error, extra={"incident": name})
    return errors.InternalError(
        f"something went wrong inside the server; its log has the details under incident {name}"
    )


def _shortened(text: str) -> str:
    """Return `text`, cut where it is too long for HTTP headers."""
    # a letter costs at least one: quoting what lies beyond would be work for nothing
    kept = text[:MAX_MESSAGE_COST].encode("utf-8", "replace").decode()
    if len(kept) == len(text) and len(quote(kept)) <= MAX_MESSAGE_COST:
        return kept
    cost = 0
    for end, letter in enumerate(kept):
        cost += len(quote(letter))
        if cost > MAX_MESSAGE_COST:
            return kept[:end] + "…"
    return kept if len(kept) == len(text) else kept + "…"


# --- arriving at a client ------------------------------------------------------------------------

_CODED = re.compile(r"\[([A-Z][A-Z0-9_]{2,40})\] (.*)", re.DOTALL)
_GONE = re.compile(
    r"socket closed|connection reset|broken pipe|stream removed|rst_stream|goaway|eof"
    r"|failed to connect|connection refused|transport",
    re.IGNORECASE,
)


@contextmanager
def as_floeberg_errors() -> Iterator[None]:
    """Raise what a call to a Flight server raises as the error that it stands for.

    Reading on in a stream is such a call: some codes come out of it as Arrow's own exceptions.
    """
    try:
        yield
    except (fl.FlightError, pa.ArrowException, OSError) as error:
        raise from_flight(error) from error


def from_flight(error: Exception) -> FloebergError:
    """Return the error that a Flight call failed with, for what pyarrow's client raised.

    Without a code of ours (a proxy in between, a connection lost) the kind of exception decides.
    """
    if isinstance(error, FloebergError):
        return error
    details = _decode_details(getattr(error, "extra_info", None) or b"")
    text = details[1] if details else _message_of(str(error))
    coded = _CODED.match(text)
    if details:
        found = error_from_code(details[0], coded[2] if coded else text)
        found.request_id = details[2]
        return found
    if coded:
        return error_from_code(coded[1], coded[2])
    return _foreign(error, text)


def _foreign(error: Exception, text: str) -> FloebergError:
    match error:
        case fl.FlightUnavailableError():
            return errors.ServerUnavailable(text)
        case fl.FlightTimedOutError():
            return errors.TimedOut(text)
        case fl.FlightCancelledError():
            return errors.Cancelled(text)
        case fl.FlightUnauthenticatedError():
            return errors.Unauthenticated(text)
        case fl.FlightUnauthorizedError():
            return errors.Denied(text)
        case pa.ArrowNotImplementedError():
            return errors.Unsupported(text)
        case pa.ArrowInvalid() | pa.ArrowKeyError():
            return errors.BadRequest(text)
        case fl.FlightError() if _GONE.search(text):
            return errors.ServerUnavailable(text)
        case OSError():
            return errors.ServerUnavailable(text)
        case fl.FlightInternalError():
            return errors.InternalError(text)
        case _:
            return FloebergError(text)


def _message_of(text: str) -> str:
    """Return the server's message without what pyarrow puts around it.

    A stream's error reads `M. Detail: D. gRPC client debug context: S:M. Detail: …`, where M may
    hold any of these words itself. D tells: it is a name of ours, or repeats M, as servers before
    it sent.

    >>> _message_of("[X] no. Detail: Python exception: Refused\\n")
    '[X] no'
    >>> _message_of("[X] no. Detail: Python exception: ValueError: [X] no")
    '[X] no'
    """
    for mark in ("Flight returned unavailable error, with message: ", "Unknown error: "):
        text = text.removeprefix(mark)
    message, ours, _ = text.partition(f"{_DETAIL}{_SENT_AS}\n")
    if ours:
        return message
    at = text.find(". Detail: ")
    while at >= 0:
        _, colon, repeated = text[at:].removeprefix(_DETAIL).partition(": ")
        if colon and repeated.startswith(text[:at]):
            return text[:at]
        at = text.find(". Detail: ", at + 1)
    for mark in (". Detail: ", ". gRPC client debug context: "):
        text = text.partition(mark)[0]
    return text


# --- google.rpc.Status, by hand ------------------------------------------------------------------
# Three small messages are not worth the protobuf package.

_REQUEST_ID = "request_id"
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


def _status_details(status: Status, message: str, code: str, request_id: str | None) -> bytes:
    """Return a google.rpc.Status with one google.rpc.ErrorInfo.

    Its code must be the call's own: ADBC takes any other for a broken answer.
    """
    info = _text(1, code) + _text(2, DOMAIN)
    if request_id is not None:
        info += _chunk(3, _text(1, _REQUEST_ID) + _text(2, request_id))
    any_info = _text(1, _ERROR_INFO) + _chunk(2, info)
    return b"\x08" + _varint(status) + _text(2, message) + _chunk(3, any_info)


def _decode_details(raw: bytes) -> tuple[str, str, str | None] | None:
    """Return code, message and request id of a google.rpc.Status that holds an ErrorInfo of
    ours.
    """
    try:
        status = _fields(raw)
        for packed in status.get(3, ()):
            wrapper = _fields(packed)
            if wrapper.get(1) != [_ERROR_INFO.encode()]:
                continue
            info = _fields(wrapper[2][0])
            if info.get(2) == [DOMAIN.encode()]:
                return info[1][0].decode(), status[2][0].decode(), _request_id(info.get(3, ()))
    except (ValueError, KeyError, IndexError):
        return None  # another server's details, or none
    return None


def _request_id(metadata: Iterable[bytes]) -> str | None:
    for packed in metadata:
        entry = _fields(packed)
        if entry.get(1) == [_REQUEST_ID.encode()]:
            return entry[2][0].decode()
    return None


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _chunk(field: int, payload: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(payload)) + payload


def _text(field: int, text: str) -> bytes:
    return _chunk(field, text.encode())


def _fields(raw: bytes) -> dict[int, list[bytes]]:
    """Return the length-delimited fields of a protobuf message; raise ValueError if it is none."""
    found: dict[int, list[bytes]] = {}
    at = 0
    while at < len(raw):
        tag, at = _read_varint(raw, at)
        size, at = _read_varint(raw, at)  # of a varint field, its value
        if tag & 7 == 2:
            if at + size > len(raw):
                raise ValueError("a field runs past the end")
            found.setdefault(tag >> 3, []).append(raw[at : at + size])
            at += size
        elif tag & 7 != 0:
            raise ValueError(f"wire type {tag & 7}")
    return found


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(raw) and shift < 64:
        byte = raw[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
    raise ValueError("a number runs past the end")
