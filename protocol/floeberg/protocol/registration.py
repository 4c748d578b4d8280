"""How a worker joins a fleet, stays in it and leaves: actions, sealed with the shared key.

A worker that knows its coordinators sends them three. A coordinator that knows where workers are
asks them with one, and a worker's answer stands for joining and renewing; it is sealed as well, and
names the question, so that an older answer is none. So is the answer to what a worker asks for
while it reads: credentials of a table.

The seal shows that who sends belongs to the fleet. A message also names its action, the time when
it was made and a number used once, so that an eavesdropper can't send it again: each side takes
each message once, and none that is more than a minute off its own clock. (After a restart, or at
another coordinator, a message of the last minute may be taken again. That joins a worker which is
there anyhow, or removes one that joins again with its next renewal.)
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from floeberg.protocol.bodies import dump_json, parse_body
from floeberg.protocol.errors import Unauthenticated
from floeberg.protocol.sealing import REGISTRATION, Keyring, open_message, seal_message

CLOCK_TOLERANCE_MS = 60_000

REGISTER_WORKER = "floeberg.register-worker"
RENEW_WORKER = "floeberg.renew-worker"
LEAVE_WORKER = "floeberg.leave-worker"
LEND_CREDENTIALS = "floeberg.lend-credentials"
SEALED_ACTIONS = (REGISTER_WORKER, RENEW_WORKER, LEAVE_WORKER, LEND_CREDENTIALS)
ASK_WORKER = "floeberg.ask-worker"
"""The one that a worker takes."""
ANSWER = "floeberg.ask-worker.answer"
LENT = "floeberg.lend-credentials.answer"
"""No actions: what an answer's seal says that it is."""

_LOCATION = re.compile(
    r"grpc(\+tcp|\+tls)?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})"
)


def is_location(text: str) -> bool:
    """Say whether `text` is a Flight URI that clients can dial: a scheme, a host and a port.

    >>> is_location("grpc+tls://worker-1.lake:8815"), is_location("grpc://worker 1:8815")
    (True, False)
    """
    found = _LOCATION.fullmatch(text)
    return found is not None and 0 < int(found["port"]) < 1 << 16


def _location(text: str) -> str:
    if not is_location(text):
        raise ValueError(f"{text!r} is no Flight URI, such as grpc+tcp://worker-1:8815")
    return text


Name = Annotated[str, Field(min_length=1, max_length=256)]
# What can't be dialled, or not even written into a FlightInfo, must not reach the fleet: every scan
# would fail for one worker that was told a wrong address.
Location = Annotated[Name, AfterValidator(_location)]
Count = Annotated[int, Field(ge=0, strict=True)]
Seconds = Annotated[float, Field(gt=0, le=86400)]


class _Message(BaseModel):
    # a newer side may send more
    model_config = ConfigDict(extra="ignore", frozen=True)


class StreamReport(_Message):
    """How far a stream of a worker is: `tasks` are those that it is done with, `rows` and `bytes`
    what its client has taken, `outcome` None while it runs. `max_rows` is how many rows all streams
    of its query may have together, None for any number. `principal` is whose query it is, None of
    somebody who is not known, and from workers of earlier versions.
    """

    query_id: Name
    stream_id: Name
    tasks: Count
    rows: Count
    bytes: Count
    outcome: Literal["done", "failed", "cancelled"] | None = None
    max_rows: Count | None = None
    principal: str | None = None


MAX_REPORTS = 200


class WorkerLoad(_Message):
    """What a worker is busy with, and what it has sent since its start. `reports` are of streams
    under way and of those that ended lately.
    """

    streams: Count = 0
    bytes_in_flight: Count = 0
    rows_sent: Count = 0
    bytes_sent: Count = 0
    reports: Annotated[tuple[StreamReport, ...], Field(max_length=MAX_REPORTS)] = ()


class RegisterWorker(_Message):
    """A worker that wants to be given tasks.

    `worker_id` is made anew at each start, so that a worker which came back is not taken for the
    one that was there before. `location` is where clients reach it (`grpc://host:port`), which may
    differ from where it listens. From `max_bytes` in flight on it takes no stream: the memory that
    it has for streams.
    """

    worker_id: Name
    location: Location
    max_streams: Annotated[int, Field(ge=1, strict=True)]
    max_bytes: Annotated[int, Field(ge=1, strict=True)]
    version: Name
    zone: Name | None = None
    http_address: Name | None = None


class RenewWorker(_Message):
    """A worker that is still there. `draining`: it finishes its streams and wants no new ones."""

    worker_id: Name
    state: Literal["ready", "draining"] = "ready"
    load: WorkerLoad = WorkerLoad()


class LeaveWorker(_Message):
    """A worker that goes."""

    worker_id: Name


class Lease(_Message):
    """The answer to registering and renewing: renew within `lease_seconds`, or be dropped.

    `known` is false where a renewal names a worker that the coordinator does not have (it
    restarted, or the lease ran out): register again. `coordinator_id` changes with every start.
    `over` are queries of the worker's reports that have all the rows they may, by what all workers
    say.
    """

    coordinator_id: Name
    lease_seconds: Annotated[float, Field(gt=0)]
    known: bool = True
    over: tuple[Name, ...] = ()


class AskWorker(_Message):
    """A coordinator that found a worker asks who it is, and how it is. With the answer it has that
    worker for `lease_seconds`. `question` is new each time. `over` are as in a `Lease`, of what the
    worker reported the time before. `location` is where the worker reaches the coordinator, which
    earlier versions do not say.
    """

    coordinator_id: Name
    question: Annotated[str, Field(min_length=16, max_length=64)]
    lease_seconds: Seconds
    over: tuple[Name, ...] = ()
    location: Location | None = None


class WorkerAnswer(_Message):
    """What a worker says when it is asked `question`: all that joining and renewing tell."""

    question: Annotated[str, Field(min_length=16, max_length=64)]
    introduction: RegisterWorker
    state: Literal["ready", "draining"] = "ready"
    load: WorkerLoad = WorkerLoad()


class AskCredentials(_Message):
    """A worker needs fresh credentials for a table. `table` is what its ticket holds, in base64
    (see `floeberg.protocol.lending`), `question` is new each time. `refused` is the fingerprint of
    those that the store did not take, None where they end.
    """

    worker_id: Name
    question: Annotated[str, Field(min_length=16, max_length=64)]
    table: Annotated[str, Field(max_length=8192)]
    refused: Name | None = None


class LentByPrefix(_Message):
    """What prefixes of locations share."""

    prefixes: tuple[str, ...]
    properties: Annotated[dict[str, str], Field(repr=False)]


class LentCredentials(_Message):
    """The answer to `question`: storage properties, and credentials by prefix as tickets have them.
    Secret: the repr leaves them out.
    """

    question: Annotated[str, Field(min_length=16, max_length=64)]
    properties: Annotated[dict[str, str], Field(repr=False)]
    credentials: Annotated[tuple[LentByPrefix, ...], Field(repr=False)] = ()


class _Envelope(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    action: str
    issued_at_ms: Annotated[int, Field(strict=True)]
    nonce: Annotated[str, Field(min_length=16, max_length=64)]
    body: dict[str, object]


Sealed: TypeAlias = (
    RegisterWorker
    | RenewWorker
    | LeaveWorker
    | AskWorker
    | WorkerAnswer
    | AskCredentials
    | LentCredentials
)
Message = TypeVar("Message", bound=Sealed)
_ACTIONS: dict[type[BaseModel], str] = {
    RegisterWorker: REGISTER_WORKER,
    RenewWorker: RENEW_WORKER,
    LeaveWorker: LEAVE_WORKER,
    AskWorker: ASK_WORKER,
    WorkerAnswer: ANSWER,
    AskCredentials: LEND_CREDENTIALS,
    LentCredentials: LENT,
}


def seal_registration(
    message: Sealed,
    keyring: Keyring,
    *,
    now_ms: int,
    random: Callable[[int], bytes] = os.urandom,
) -> bytes:
    """Return the body of the action that sends `message`, or of its result."""
    envelope = {
        "action": _ACTIONS[type(message)],
        "issued_at_ms": now_ms,
        "nonce": random(12).hex(),
        "body": message.model_dump(mode="json"),
    }
    return seal_message(keyring, REGISTRATION, dump_json(envelope), random)


class ReplayGuard:
    """Remembers the messages of the last minutes. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, int] = {}

    def is_new(self, nonce: str, issued_at_ms: int, now_ms: int) -> bool:
        """Say whether `nonce` comes for the first time, and remember it while it counts."""
        with self._lock:
            horizon = now_ms - CLOCK_TOLERANCE_MS
            for old in [n for n, issued in self._seen.items() if issued < horizon]:
                del self._seen[old]
            if nonce in self._seen:
                return False
            self._seen[nonce] = issued_at_ms
            return True


def open_registration(
    kind: type[Message], raw: bytes, keyring: Keyring, guard: ReplayGuard, *, now_ms: int
) -> Message:
    """Return the message of `kind` in the body of an action, or of its result.

    Raises `Unauthenticated` for what this fleet's keys have not sealed, for a clock that is off,
    and for a message that came before; `BadCommand` for a body that is no `kind`.
    """
    opened = open_message(keyring, REGISTRATION, raw)
    if opened is None:
        raise Unauthenticated(
            "the registration is not sealed with a key that this process has; give worker and"
            " coordinator the same keyring"
        )
    action = _ACTIONS[kind]
    envelope = parse_body(_Envelope, opened, action)
    if envelope.action != action:
        raise Unauthenticated(f"a message sealed for {envelope.action} was sent as {action}")
    off_ms = envelope.issued_at_ms - now_ms
    if abs(off_ms) > CLOCK_TOLERANCE_MS:
        side = "ahead of" if off_ms > 0 else "behind"
        raise Unauthenticated(
            f"the registration was made {abs(off_ms) / 1000:.0f} s {side} this process's clock;"
            " set both clocks"
        )
    if not guard.is_new(envelope.nonce, envelope.issued_at_ms, now_ms):
        raise Unauthenticated("the registration was sent before; each is taken only once")
    return parse_body(kind, dump_json(envelope.body), action)
