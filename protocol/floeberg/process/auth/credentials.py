"""What a caller sends to say who it is: the `authorization` header."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from floeberg.protocol.errors import Unauthenticated

MAX_HEADER = 16 << 10
"""gRPC itself refuses headers beyond this."""


@dataclass(frozen=True, slots=True)
class Bearer:
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Basic:
    username: str
    password: str = field(repr=False)


Credentials: TypeAlias = Bearer | Basic


def parse_authorization(values: Sequence[str | bytes]) -> Credentials | None:
    """Return the credentials in the values of the `authorization` header; None if there are none.

    The same value may come more than once, as some clients send it. Raises `Unauthenticated`,
    which repeats nothing of a value, for different ones and for what cannot be read.

    >>> parse_authorization(["Basic YW5uOmh1c2gh"])
    Basic(username='ann')
    """
    distinct = {v.encode() if isinstance(v, str) else v for v in values} - {b""}
    if not distinct:
        return None
    if len(distinct) > 1:
        raise Unauthenticated("the call has several authorization headers; send one")
    (raw,) = distinct
    scheme, _, rest = raw.partition(b" ")
    rest = rest.strip()
    if len(raw) <= MAX_HEADER and rest:
        match scheme.lower():
            case b"bearer":
                if rest.isascii():
                    return Bearer(rest.decode("ascii"))
            case b"basic":
                found = _basic(rest)
                if found is not None:
                    return found
    raise Unauthenticated(
        "the authorization header can't be read; it is 'Bearer TOKEN', or 'Basic' with"
        " USERNAME:PASSWORD in base64"
    )


def _basic(encoded: bytes) -> Basic | None:
    try:
        # the ADBC driver leaves the padding out
        text = base64.b64decode(
            encoded.rstrip(b"=") + b"=" * (-len(encoded.rstrip(b"=")) % 4), validate=True
        ).decode()
    except (binascii.Error, ValueError):
        return None
    username, colon, password = text.partition(":")
    return Basic(username, password) if colon else None
