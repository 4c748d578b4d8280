"""Session tokens: what a login answers, for later calls.

A session token is sealed with the keys that coordinators and workers share, so that any of them
takes it, and none has to remember it. It can't be taken back before it expires, but for this: it
ends with the password that it was given for.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from floeberg.process.auth.principals import Method, Principal, is_name
from floeberg.protocol.bodies import dump_json
from floeberg.protocol.errors import Unauthenticated
from floeberg.protocol.sealing import Keyring, Purpose, open_message, seal_message

SESSION = Purpose("session")
PREFIX = "flb."


@dataclass(frozen=True, slots=True)
class Session:
    """A principal for a time. `stamp` is that of the password, None where none was given."""

    principal: Principal
    stamp: str | None


def seal_session(
    name: str,
    keyring: Keyring,
    *,
    expires_at_ms: int,
    stamp: str | None,
    random: Callable[[int], bytes] = os.urandom,
) -> str:
    """Return a session token of the principal `name`, who has given a password with that `stamp`,
    or whom a coordinator calls for."""
    content = {"principal": name, "expires_at_ms": expires_at_ms, "stamp": stamp}
    raw = seal_message(keyring, SESSION, dump_json(content), random)
    return PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def open_session(token: str, keyring: Keyring, *, now_ms: int) -> Session:
    """Return what a session token says. Raises `Unauthenticated`."""
    encoded = token.removeprefix(PREFIX)
    try:
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
        content = json.loads(open_message(keyring, SESSION, raw) or b"null")
        name, expires_at_ms = content["principal"], content["expires_at_ms"]
        stamp = content["stamp"]
    except (binascii.Error, ValueError, TypeError, KeyError):
        raise Unauthenticated(
            "the session token was damaged, or is another fleet's: log in again"
        ) from None
    if not (is_name(name) and isinstance(expires_at_ms, int) and isinstance(stamp, str | None)):
        raise Unauthenticated("another version of floeberg has made the session token")
    if now_ms >= expires_at_ms:
        raise Unauthenticated("the session has expired: log in again")
    method: Method = "coordinator" if stamp is None else "password"
    return Session(Principal(name, method), stamp)


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000
