"""What a client carries from call to call on a server's behalf, so that no server has to keep it.

A carrier is a token that takes the place of the client's own bearer token, which is sealed in it
beside the content: who calls is found by that token, as if it had been sent itself, and ends with
it. The content also travels as a cookie, without any credential, for clients that keep cookies.

Whoever can read a carrier off the wire has what the bearer token would have given them, and no
more.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.errors import Unauthenticated
from floeberg.protocol.sealing import Keyring, Purpose, open_message, seal_message
from floeberg.protocol.types import Json

CARRIER = Purpose("carrier")
PREFIX = "flo."
COOKIE = "floeberg-session"


@dataclass(frozen=True, slots=True)
class Carrier:
    """What a client carries: `content`, and the bearer token that is its own, None for none.

    `turn` counts how often the content was replaced: of a token and a cookie, the later one counts.
    ADBC's driver loses the token of an answer now and then (2 to 6 of 1000, measured).
    """

    content: Mapping[str, Json]
    bearer: str | None = field(default=None, repr=False)
    turn: int = 0


def seal_carrier(
    carrier: Carrier, keyring: Keyring, random: Callable[[int], bytes] = os.urandom
) -> str:
    raw = dump_json(
        {"bearer": carrier.bearer, "content": dict(carrier.content), "turn": carrier.turn}
    )
    sealed = seal_message(keyring, CARRIER, raw, random)
    return PREFIX + base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def open_carrier(token: str, keyring: Keyring) -> Carrier:
    """Raises `Unauthenticated`: whose call it is, or in which session, can't be told."""
    encoded = token.removeprefix(PREFIX)
    try:
        raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
        found = json.loads(open_message(keyring, CARRIER, raw) or b"null")
        bearer, content, turn = found["bearer"], found["content"], found["turn"]
    except (binascii.Error, ValueError, TypeError, KeyError):
        raise Unauthenticated(
            "the session's token was damaged, or is another fleet's: connect again"
        ) from None
    kinds = isinstance(bearer, str | None), isinstance(content, dict), isinstance(turn, int)
    if not all(kinds):
        raise Unauthenticated("another version of floeberg has made the session's token")
    return Carrier(content, bearer, turn)


def cookie_values(headers: Sequence[str | bytes]) -> Iterator[str]:
    """Yield the values of our cookie in those of the `cookie` header.

    >>> list(cookie_values(["a=b; floeberg-session=flo.x", b"c=d"]))
    ['flo.x']
    """
    for header in headers:
        text = header.decode("latin-1") if isinstance(header, bytes) else header
        for pair in text.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == COOKIE:
                yield value.strip('"')


def set_cookie(value: str | None) -> str:
    """Return the `set-cookie` header that has a client keep our cookie, or drop it for None."""
    return f"{COOKIE}={value or ''}; Path=/; HttpOnly" + ("" if value else "; Max-Age=0")
