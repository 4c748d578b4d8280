"""Bearer tokens from a list: each stands for a principal.

A line of the list is `principal:token`, or `principal:sha256$HEX` with the token's hash in its
place. Empty lines and those that start with `#` don't count. A principal may have several tokens,
which is how one is replaced.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from floeberg.process.auth.principals import Principal, is_name
from floeberg.protocol.errors import BadConfig

SHORTEST_TOKEN = 16
_HASHED = "sha256$"
_HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class TokenList:
    """The principals by the SHA-256 of their tokens: the tokens themselves are not kept.

    A plain SHA-256 will do, where passwords need a slow hash, for tokens that are made at random.
    """

    by_hash: dict[str, str] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> TokenList:
        """Raises `BadConfig`, which names the line by number and shows nothing of it."""
        found: dict[str, str] = {}
        for number, name, token in _lines(text):
            if not is_name(name):
                raise BadConfig(f"line {number}: a line is written principal:token")
            if token.startswith(_HASHED):
                digest = token.removeprefix(_HASHED).lower()
                if not _HEX.fullmatch(digest):
                    raise BadConfig(f"line {number}: {_HASHED} is followed by 64 hex digits")
            elif len(token) < SHORTEST_TOKEN or not (token.isascii() and token.isprintable()):
                raise BadConfig(
                    f"line {number}: a token is {SHORTEST_TOKEN} or more printable ASCII characters"
                )
            else:
                digest = _digest(token)
            if found.setdefault(digest, name) != name:
                raise BadConfig(f"line {number}: the token is another principal's too")
        return cls(found)

    def find(self, token: str) -> Principal | None:
        """Return whose token it is."""
        # A dictionary's lookup is not of constant time; what it may tell is the hash.
        name = self.by_hash.get(_digest(token))
        return None if name is None else Principal(name, "token")


def new_token(
    principal: str, random: Callable[[int], str] = secrets.token_urlsafe
) -> tuple[str, str]:
    """Return a new token, and the line for the list, which holds its hash. Raises `BadConfig` for
    what is no principal's name.

    >>> token, line = new_token("ann", lambda n: "x" * n)
    >>> TokenList.parse(line).find(token)
    Principal(name='ann', method='token')
    """
    if not is_name(principal) or ":" in principal or principal.startswith("#"):
        raise BadConfig(
            "a principal in a list of tokens is 1 to 256 printable characters, without ':' and not"
            " beginning with '#'"
        )
    token = random(32)
    return token, f"{principal}:{_HASHED}{_digest(token)}\n"


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, _, token = line.partition(":")
            yield number, name.strip(), token.strip()
