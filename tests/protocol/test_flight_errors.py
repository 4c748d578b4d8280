"""Errors over a real Flight server on the loopback interface."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol import errors, flight_errors
from floeberg.protocol.errors import BadFilter, FloebergError, WorkerBusy, error_from_code
from floeberg.protocol.flight_errors import (
    CODE_TRAILER,
    STATUSES,
    Status,
    as_flight_errors,
    from_flight,
    switch_tracebacks_off,
    to_flight,
)
from floeberg.protocol.requests import RequestContext, working_on

SCHEMA = pa.schema([("a", pa.int64())])
MESSAGE = "it's über 'x'. Detail: [NOT_A_CODE] at 100%: no"


def all_errors(cls: type[FloebergError] = FloebergError) -> Iterator[type[FloebergError]]:
    yield cls
    for sub in cls.__subclasses__():
        if sub.__module__ == errors.__name__:
            yield from all_errors(sub)


ALL = sorted(all_errors(), key=lambda cls: cls.code)


def test_every_error_has_a_code_of_its_own_and_a_status():
    assert len({cls.code for cls in ALL}) == len(ALL)
    assert set(STATUSES) == set(ALL)


# --- through a real server -----------------------------------------------------------------------


class FailingServer(fl.FlightServerBase):
    """Raises `failure` from whatever handler is called."""

    failure: Callable[[], BaseException]

    def _fail(self, context: fl.ServerCallContext) -> None:
        with as_flight_errors(context):
            try:
                Path("/no/such/secret").read_bytes()
            except OSError as exc:
                raise self.failure() from exc

    def get_flight_info(
        self, context: fl.ServerCallContext, descriptor: fl.FlightDescriptor
    ) -> fl.FlightInfo:
        self._fail(context)
        raise AssertionError

    def get_schema(
        self, context: fl.ServerCallContext, descriptor: fl.FlightDescriptor
    ) -> fl.SchemaResult:
        self._fail(context)
        raise AssertionError

    def list_flights(
        self, context: fl.ServerCallContext, criteria: bytes
    ) -> Iterator[fl.FlightInfo]:
        self._fail(context)
        return iter(())

    def do_action(self, context: fl.ServerCallContext, action: fl.Action) -> list[bytes]:
        self._fail(context)
        return []

    def do_get(self, context: fl.ServerCallContext, ticket: fl.Ticket) -> fl.FlightDataStream:
        if ticket.ticket == b"refused":
            self._fail(context)
        batches = 3 if ticket.ticket == b"broken" else 0

        def stream() -> Iterator[pa.RecordBatch]:
            for _ in range(batches):
                yield pa.record_batch([[1]], schema=SCHEMA)
            self._fail(context)

        return fl.GeneratorStream(SCHEMA, stream())


class Trailers(fl.ClientMiddlewareFactory):
    """Keeps the codes that trailers of a client's calls have brought."""

    def __init__(self) -> None:
        self.codes: list[str] = []

    def start_call(self, info: fl.CallInfo) -> fl.ClientMiddleware:
        return _Receiver(self.codes)


class _Receiver(fl.ClientMiddleware):
    def __init__(self, codes: list[str]) -> None:
        self.codes = codes

    def received_headers(self, headers: dict[str, list[str]]) -> None:
        self.codes.extend(headers.get(CODE_TRAILER, []))


@pytest.fixture(scope="module")
def server() -> Iterator[FailingServer]:
    limit = getattr(sys, "tracebacklimit", None)
    switch_tracebacks_off()
    with FailingServer("grpc://127.0.0.1:0") as running:
        yield running
    if limit is None:
        del sys.tracebacklimit
    else:
        sys.tracebacklimit = limit


@pytest.fixture(scope="module")
def trailers() -> Trailers:
    return Trailers()


@pytest.fixture(scope="module")
def client(server: FailingServer, trailers: Trailers) -> Iterator[fl.FlightClient]:
    with fl.connect(f"grpc://127.0.0.1:{server.port}", middleware=[trailers]) as connected:
        yield connected


CALLS: dict[str, Callable[[fl.FlightClient], object]] = {
    "GetFlightInfo": lambda c: c.get_flight_info(fl.FlightDescriptor.for_command(b"")),
    "GetSchema": lambda c: c.get_schema(fl.FlightDescriptor.for_command(b"")),
    "ListFlights": lambda c: list(c.list_flights()),
    "DoAction": lambda c: list(c.do_action(fl.Action("any", b""))),
    "DoGet": lambda c: c.do_get(fl.Ticket(b"refused")).read_all(),
    "first batch": lambda c: c.do_get(fl.Ticket(b"empty")).read_all(),
    "fourth batch": lambda c: c.do_get(fl.Ticket(b"broken")).read_all(),
}


def failed(client: fl.FlightClient, call: str) -> Exception:
    try:
        CALLS[call](client)
    except Exception as error:
        return error
    raise AssertionError(f"{call} did not fail")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.code)
def test_an_error_arrives_whole_and_nothing_else_does(
    server: FailingServer,
    client: fl.FlightClient,
    trailers: Trailers,
    cls: type[FloebergError],
    call: str,
):
    server.failure = lambda: error_from_code(cls.code, MESSAGE)
    trailers.codes.clear()

    raised = failed(client, call)

    arrived = from_flight(raised)
    assert type(arrived) is cls
    assert str(arrived) == MESSAGE
    assert trailers.codes == [cls.code]
    told = str(raised)
    if call == "GetSchema":
        told = told.removeprefix("Unknown error: ")
    assert told.startswith(f"[{cls.code}] {MESSAGE}")
    if call in ("GetFlightInfo", "ListFlights", "DoAction"):
        # a stream's client repeats what it was told itself, as GetSchema does with Flight's errors
        assert told.count(MESSAGE) == 1
    for leak in ("Traceback", "File ", ".py", "/no/such/secret", "direct cause"):
        assert leak not in str(raised)
        assert leak.encode() not in (getattr(raised, "extra_info", None) or b"")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "failure", [ValueError, KeyError, OSError, pa.ArrowInvalid, RecursionError, MemoryError]
)
def test_an_unexpected_error_shows_an_incident_and_no_more(
    server: FailingServer,
    client: fl.FlightClient,
    caplog: pytest.LogCaptureFixture,
    failure: type[Exception],
    call: str,
):
    server.failure = lambda: failure("s3://bucket/secret.py")

    with caplog.at_level(logging.ERROR, logger=flight_errors.__name__):
        raised = failed(client, call)

    arrived = from_flight(raised)
    assert type(arrived) is errors.InternalError
    assert "secret" not in str(raised)
    logged = caplog.records[-1]
    assert logged.exc_info is not None
    assert "s3://bucket/secret.py" in str(logged.exc_info[1])
    assert str(arrived).endswith(f"under incident {logged.__dict__['incident']}")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("letter", ["x", "ü", "雪", "%", "\n", "\0", "\udc80"])
@pytest.mark.parametrize("cls", [errors.BadFilter, errors.CorruptManifest])
def test_a_message_too_long_for_headers_arrives_shortened(
    server: FailingServer,
    client: fl.FlightClient,
    cls: type[FloebergError],
    letter: str,
    call: str,
):
    server.failure = lambda: cls(letter * 20_000)

    arrived = from_flight(failed(client, call))

    assert type(arrived) is cls
    assert len(str(arrived)) > 100
    assert set(str(arrived)[:-1]) <= {letter, "?"}
    assert str(arrived).endswith("…")


@pytest.mark.parametrize("call", CALLS)
def test_an_error_of_a_server_behind_keeps_its_code(
    server: FailingServer, client: fl.FlightClient, call: str
):
    behind = to_flight(errors.WorkerBusy("worker w1 has 8 streams"))
    server.failure = lambda: behind

    arrived = from_flight(failed(client, call))

    assert type(arrived) is errors.WorkerBusy
    assert str(arrived) == "worker w1 has 8 streams"


def test_a_call_past_its_deadline_has_timed_out(server: FailingServer, client: fl.FlightClient):
    answered = threading.Event()

    def late() -> BaseException:
        answered.wait()
        return errors.BadRequest("late")

    server.failure = late

    with pytest.raises(fl.FlightTimedOutError) as raised:
        client.get_flight_info(
            fl.FlightDescriptor.for_command(b""), fl.FlightCallOptions(timeout=0.05)
        )
    answered.set()

    assert type(from_flight(raised.value)) is errors.TimedOut


def test_a_server_that_is_not_there_is_unavailable():
    with FailingServer("grpc://127.0.0.1:0") as gone:
        port = gone.port
    with fl.connect(f"grpc://127.0.0.1:{port}") as client:
        for call in CALLS:
            assert type(from_flight(failed(client, call))) is errors.ServerUnavailable


# --- without one ---------------------------------------------------------------------------------


def test_without_tracebacks_off_no_plain_exception_is_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(sys, "tracebacklimit", raising=False)

    raised = to_flight(errors.UnknownTable("db.x"))

    assert type(raised) is fl.FlightServerError
    assert type(from_flight(raised)) is errors.UnknownTable


def test_the_details_are_a_status_whose_code_is_the_calls():
    raised = to_flight(errors.WorkerBusy("no room"))

    assert isinstance(raised, fl.FlightUnavailableError)
    # google.rpc.Status{code: 14, message, details: [Any{type_url, ErrorInfo{reason, domain}}]}
    info = b"\x0a\x0bWORKER_BUSY" + b"\x12\x08floeberg"
    packed = b"\x0a\x28type.googleapis.com/google.rpc.ErrorInfo" + b"\x12\x17" + info
    assert (
        raised.extra_info == b"\x08\x0e" + b"\x12\x15[WORKER_BUSY] no room" + b"\x1a\x43" + packed
    )


def test_details_and_trailer_name_the_request_that_is_worked_on():
    trailers: dict[str, str] = {}

    class Context:
        def add_trailer(self, key: str, value: str) -> None:
            trailers[key] = value

    with working_on(RequestContext("nightly-7")):
        raised = to_flight(WorkerBusy("no room"), Context())
        unnamed_details = to_flight(BadFilter("no"), Context())

    assert trailers["x-request-id"] == "nightly-7"
    assert from_flight(raised).request_id == "nightly-7"
    assert from_flight(unnamed_details).code == "BAD_FILTER"
    assert from_flight(to_flight(WorkerBusy("no room"))).request_id is None


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (fl.FlightUnavailableError("Socket closed"), errors.ServerUnavailable),
        (fl.FlightTimedOutError("Deadline Exceeded"), errors.TimedOut),
        (fl.FlightCancelledError("Cancelled"), errors.Cancelled),
        (fl.FlightUnauthenticatedError("who?"), errors.Unauthenticated),
        (fl.FlightUnauthorizedError("no"), errors.Denied),
        (fl.FlightServerError("Stream removed"), errors.ServerUnavailable),
        (fl.FlightInternalError("Received RST_STREAM with error code 2"), errors.ServerUnavailable),
        (fl.FlightInternalError("odd"), errors.InternalError),
        (fl.FlightServerError("odd"), FloebergError),
        (pa.ArrowInvalid("bad"), errors.BadRequest),
        (pa.ArrowKeyError("none"), errors.BadRequest),
        (pa.ArrowNotImplementedError("no"), errors.Unsupported),
        (OSError("reset"), errors.ServerUnavailable),
        (fl.FlightServerError("[FROM_THE_FUTURE] new"), FloebergError),
        (errors.UnknownRef("x", []), errors.UnknownRef),
    ],
)
def test_an_error_without_our_code_is_told_by_its_kind(
    raised: Exception, expected: type[FloebergError]
):
    assert type(from_flight(raised)) is expected


@given(st.binary(max_size=100))
def test_details_of_other_servers_are_passed_over(raw: bytes):
    assert str(from_flight(fl.FlightServerError("odd", raw))) == "odd"


@given(st.integers(0, 200))
def test_truncated_details_leave_the_code_in_the_message(size: int):
    whole = to_flight(errors.WorkerBusy("no room"))
    assert isinstance(whole, fl.FlightError)

    arrived = from_flight(fl.FlightUnavailableError(str(whole), whole.extra_info[:size]))

    assert type(arrived) is errors.WorkerBusy
    assert str(arrived) == "no room"


def test_every_status_can_be_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "tracebacklimit", 0, raising=False)
    kinds = {status: type(to_flight(cls.__new__(cls))) for cls, status in STATUSES.items()}

    assert set(kinds) == set(Status)
    assert len(set(kinds.values())) == len(Status)


def test_the_documentation_lists_every_code_with_its_status():
    page = Path(__file__).parents[2] / "docs" / "wire-format.md"
    listed = re.findall(r"^\| `([A-Z_]+)` \| ([A-Z_]+) \|", page.read_text(), re.MULTILINE)

    assert dict(listed) == {cls.code: status.name for cls, status in STATUSES.items()}
