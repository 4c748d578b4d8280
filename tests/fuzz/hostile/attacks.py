"""Send what was tampered with, and judge what comes of it.

Whatever is sent, the answer is rows that the caller may have, or an error with a code of ours that
is no fault of ours (`INTERNAL`), holds no traceback, and tells no secret.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

from floeberg.protocol.actions import DESCRIPTIONS
from floeberg.protocol.registration import ASK_WORKER, LEND_CREDENTIALS, RENEW_WORKER
from floeberg.protocol.sql_tickets import is_sql_ticket
from tests.fuzz.hostile.mutations import STRANGE, changed_bytes, changed_json, changed_text
from tests.fuzz.hostile.target import PASSWORD, PEOPLE, TOKEN, Target, unpadded
from tests.support.callers import bearing

_CODE = re.compile(r"\[([A-Z][A-Z0-9_]{2,40})\] ")
_TRACEBACK = re.compile(r"Traceback|File \"|\.py(:\d|\", line)|line \d+, in ")
_COMMANDS: tuple[dict[str, Any], ...] = (
    {"table": "db.people", "filter": "id > 3 AND region = 'us'", "select": ["id", "region"]},
    {"table": ["db", "people"], "filter": ["and", [">", "id", 3], ["is-null", "team"]]},
    {"table": "warehouse.db.people", "ref": "half", "limit": 3, "case_sensitive": False},
    {"table": "db.people", "as_of": "2024-05-01T12:00:00Z", "split_size": 1, "ordered": True},
    {"table": "hr.pay", "select": ["id"]},
)
_ACTIONS = (*(name for name, _ in DESCRIPTIONS), "floeberg.worker-status")


@dataclass(frozen=True)
class Attack:
    """What was sent, for a person to look at, and what is wrong with the answer, if anything is."""

    sent: str
    wrong: str | None


def attack(target: Target, random: Random) -> Attack:
    """Make one attack."""
    kinds = random.choices(_KINDS, _WEIGHTS)[0]
    return kinds(target, random)


def _ticket(target: Target, random: Random) -> Attack:
    """A ticket other than the genuine ones; its own principal sends it, so that only the seal
    keeps the rows."""
    genuine = random.choice(target.tickets)
    sent = changed_bytes(genuine, random)
    client = random.choice((target.worker, target.worker, target.coordinator))
    found = _answer(lambda: client.do_get(fl.Ticket(sent), bearing(TOKEN)).read_all())
    is_told = _outside_place(sent) in map(_outside_place, target.tickets)
    return Attack(f"ticket {sent.hex()}", _judged(target, found, may_answer=is_told))


def _stolen_ticket(target: Target, random: Random) -> Attack:
    """A genuine ticket, with credentials that are not its principal's."""
    token = changed_text(random.choice(target.tokens), random)
    ticket = fl.Ticket(random.choice(target.tickets))
    client = random.choice((target.worker, target.coordinator))
    found = _answer(lambda: client.do_get(ticket, bearing(token)).read_all())
    return Attack(f"ticket with token {token!r}", _judged(target, found, _is_same(token, target)))


def _token(target: Target, random: Random) -> Attack:
    token = changed_text(random.choice(target.tokens), random)
    scheme = random.choice(("Bearer ", "Bearer ", "bearer ", "", "Basic ", "Bearer  Bearer "))
    # the stubs ask for text, and pyarrow for bytes
    headers: Any = [(b"authorization", (scheme + token).encode())]
    if random.randrange(10) == 0:
        headers = [*headers, (b"authorization", f"Bearer {TOKEN}".encode())]
    options = fl.FlightCallOptions(headers=headers)
    found = _answer(random.choice(_CALLS)(target, options))
    is_same = scheme.strip().lower() == "bearer" and _is_same(token, target)
    # an empty header beside a genuine one is none
    is_same |= len(headers) > 1 and not (scheme + token).strip()
    return Attack(f"authorization {headers!r}", _judged(target, found, is_same))


def _login(target: Target, random: Random) -> Attack:
    genuine = f"ann:{PASSWORD}"
    credentials = changed_bytes(genuine.encode(), random)
    header = b"Basic " + base64.b64encode(credentials).rstrip(b"=")
    if random.randrange(2):
        header = changed_text(header.decode(), random).encode()
    headers: Any = [(b"authorization", header)]
    options = fl.FlightCallOptions(headers=headers)
    found = _answer(lambda: target.coordinator.authenticate_basic_token("", "", options))
    is_same = unpadded(genuine) in header
    return Attack(f"login {header!r}", _judged(target, found, may_answer=is_same))


def _command(target: Target, random: Random) -> Attack:
    command = changed_json(random.choice(_COMMANDS), random)
    descriptor = fl.FlightDescriptor.for_command(command)
    ask = random.choice((target.coordinator.get_flight_info, target.coordinator.get_schema))
    found = _answer(lambda: ask(descriptor, bearing(TOKEN)))
    return Attack(f"command {command[:2000]!r}", _judged(target, found))


def _path(target: Target, random: Random) -> Attack:
    parts = [
        str(random.choice((*STRANGE, "db", "people", "hr", "pay", "warehouse")))[:300]
        for _ in range(random.randrange(4))
    ]
    descriptor = fl.FlightDescriptor.for_path(*parts)
    found = _answer(lambda: target.coordinator.get_flight_info(descriptor, bearing(TOKEN)))
    return Attack(f"path {parts!r}", _judged(target, found))


def _action(target: Target, random: Random) -> Attack:
    name = random.choice(_ACTIONS)
    if random.randrange(10) == 0:
        name = changed_text(name, random)
    body = changed_json(random.choice((*_COMMANDS, {"table": "db.people"}, {})), random)
    client = target.worker if random.randrange(8) == 0 else target.coordinator
    found = _answer(lambda: list(client.do_action(fl.Action(name, body), bearing(TOKEN))))
    return Attack(f"action {name!r} {body[:2000]!r}", _judged(target, found))


def _registration(target: Target, random: Random) -> Attack:
    body = changed_bytes(target.registration, random)
    found = _answer(lambda: list(target.coordinator.do_action(fl.Action(RENEW_WORKER, body))))
    is_same = body == target.registration
    return Attack(f"registration {body.hex()}", _judged(target, found, may_answer=is_same))


def _question(target: Target, random: Random) -> Attack:
    body = changed_bytes(target.question, random)
    found = _answer(lambda: list(target.worker.do_action(fl.Action(ASK_WORKER, body))))
    is_same = body == target.question
    return Attack(f"question {body.hex()}", _judged(target, found, may_answer=is_same))


def _lending(target: Target, random: Random) -> Attack:
    body = changed_bytes(target.lending, random)
    found = _answer(lambda: list(target.coordinator.do_action(fl.Action(LEND_CREDENTIALS, body))))
    is_same = body == target.lending
    return Attack(f"lending {body.hex()}", _judged(target, found, may_answer=is_same))


_KINDS: tuple[Callable[[Target, Random], Attack], ...] = (
    *(_ticket, _stolen_ticket, _token, _command, _action, _path, _registration, _question),
    _lending,
    _login,  # a password takes a tenth of a second
)
_WEIGHTS = (300, 100, 250, 150, 100, 50, 50, 50, 50, 1)

_CALLS: tuple[Callable[[Target, fl.FlightCallOptions], Callable[[], object]], ...] = (
    lambda target, options: lambda: target.coordinator.get_flight_info(PEOPLE, options),
    lambda target, options: lambda: list(target.coordinator.list_flights(None, options)),
    lambda target, options: lambda: target.coordinator.list_actions(options),
    lambda target, options: lambda: target.worker.list_actions(options),
)


def _answer(call: Callable[[], object]) -> object:
    """Return what a call gives, or the exception that it ends with."""
    try:
        return call()
    except (fl.FlightError, pa.ArrowException, OSError) as error:
        return error


def _judged(target: Target, found: object, may_answer: bool = True) -> str | None:
    """Return what is wrong with an answer."""
    if not isinstance(found, Exception):
        return _judged_answer(found) if may_answer else f"it was answered: {found!r}"
    told = str(found) + repr(getattr(found, "extra_info", b""))
    if _TRACEBACK.search(told):
        return f"a traceback: {told}"
    code = _CODE.search(told)
    if code is None:
        # what pyarrow's own client refuses to send
        return None if "Invalid" in told and "metadata" in told else f"no code: {told}"
    if code[1] == "INTERNAL":
        return f"a fault of the server: {told}"
    if secret := next((s for s in target.secrets if s in told), None):
        return f"{secret!r} is told: {told}"
    return None


def _judged_answer(found: object) -> str | None:
    match found:
        case pa.Table():
            if "email" in found.schema.names:
                return "a column that is hidden"
            regions = set(found["region"].to_pylist()) if "region" in found.schema.names else set()
            return "rows of others" if regions - {"eu"} else None
        case fl.FlightInfo():
            names = found.schema.names
        case _:
            told: Any = getattr(found, "schema", None)
            names = told.names if told is not None else []
    return "a column that is hidden" if "email" in names else None


def _outside_place(ticket: bytes) -> bytes:
    """Return a ticket without the place to resume at, which anybody may change; that of a statement
    has none."""
    if is_sql_ticket(ticket):
        return ticket
    place = 5 + (ticket[4] if len(ticket) > 4 else 0)
    return ticket[:place] + ticket[place + 12 :]


def _is_same(token: str, target: Target) -> bool:
    """Say whether `token` is one of the genuine ones, the last letters of its base64 aside: some of
    their bits mean nothing."""
    return any(_meant(token) == _meant(genuine) for genuine in target.tokens)


def _meant(token: str) -> list[bytes]:
    try:
        return [base64.urlsafe_b64decode(p + "=" * (-len(p) % 4)) for p in token.split(".")]
    except ValueError:
        return [token.encode()]
