"""Usernames and passwords from a list that holds the passwords' scrypt hashes.

A line is `username:scrypt$LOG2N$R$P$SALT$HASH`, salt and hash in base64url; `hash_password` makes
it. Empty lines and those that start with `#` don't count.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from floeberg.process.auth.principals import Principal, is_name
from floeberg.protocol.errors import BadConfig, ServerBusy

_LOG2_N, _R, _P = 15, 8, 1  # 32 MiB and some 80 ms
_SALT_BYTES, _HASH_BYTES = 16, 32
_AT_ONCE, _IN_LINE = 4, 32

_turns = threading.BoundedSemaphore(_AT_ONCE)
_line = threading.BoundedSemaphore(_AT_ONCE + _IN_LINE)


@dataclass(frozen=True, slots=True)
class PasswordHash:
    """One password's hash with what it was made with."""

    log2_n: int
    r: int
    p: int
    salt: bytes = field(repr=False)
    digest: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> PasswordHash | None:
        """Return the hash that `to_text` wrote, None for anything else, and for costs that are
        too low to protect a password or too high to check one."""
        kind, *parts = text.split("$")
        if kind != "scrypt" or len(parts) != 5:
            return None
        try:
            log2_n, r, p = (int(part) for part in parts[:3])
            salt, digest = (
                base64.b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True)
                for part in parts[3:]
            )
        except (ValueError, binascii.Error):
            return None
        fits = 14 <= log2_n <= 18 and 8 <= r <= 16 and 1 <= p <= 4
        if not (fits and len(salt) >= 8 and len(digest) == _HASH_BYTES):
            return None
        return cls(log2_n, r, p, salt, digest)

    def to_text(self) -> str:
        salt, digest = (
            base64.urlsafe_b64encode(raw).decode().rstrip("=") for raw in (self.salt, self.digest)
        )
        return f"scrypt${self.log2_n}${self.r}${self.p}${salt}${digest}"

    def fits(self, password: str) -> bool:
        """Say whether it is `password`'s. Takes memory and time, as it must; at most four do at
        once. Raises `ServerBusy` where too many wait for their turn."""
        if not _line.acquire(blocking=False):
            raise ServerBusy("too many passwords are being checked; try again")
        try:
            with _turns:
                made = _scrypt(password, self.log2_n, self.r, self.p, self.salt)
        finally:
            _line.release()
        return hmac.compare_digest(made, self.digest)

    @property
    def stamp(self) -> str:
        """Return what differs from any other password's hash, and tells nothing of the password."""
        return hashlib.sha256(b"floeberg session" + self.digest).hexdigest()[:16]


def _scrypt(password: str, log2_n: int, r: int, p: int, salt: bytes) -> bytes:
    n = 1 << log2_n
    # OpenSSL's own limit of memory is just below what the default costs take
    most = 128 * r * (n + p + 4)
    return hashlib.scrypt(
        password.encode(), salt=salt, n=n, r=r, p=p, maxmem=most, dklen=_HASH_BYTES
    )


def hash_password(password: str, random: Callable[[int], bytes] = os.urandom) -> PasswordHash:
    """Return a new hash of `password`. Raises `BadConfig` for none."""
    if not password:
        raise BadConfig("the password is empty")
    salt = random(_SALT_BYTES)
    return PasswordHash(_LOG2_N, _R, _P, salt, _scrypt(password, _LOG2_N, _R, _P, salt))


_NOBODY = PasswordHash(_LOG2_N, _R, _P, bytes(_SALT_BYTES), bytes(_HASH_BYTES))
"""No password fits it: checking one takes as long as that of a user who is there."""


@dataclass(frozen=True, slots=True)
class PasswordList:
    """The hashes by username."""

    by_name: dict[str, PasswordHash] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> PasswordList:
        """Raises `BadConfig`, which names the line by number and shows nothing of it."""
        found: dict[str, PasswordHash] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            name, _, hashed = (part.strip() for part in line.partition(":"))
            parsed = PasswordHash.parse(hashed)
            if parsed is None or not is_name(name):
                raise BadConfig(
                    f"line {number}: a line is written username:scrypt$…, as `floeberg password`"
                    " writes it"
                )
            if name in found:
                raise BadConfig(f"line {number}: the user is there twice")
            found[name] = parsed
        return cls(found)

    def to_text(self) -> str:
        return "".join(f"{name}:{hashed.to_text()}\n" for name, hashed in self.by_name.items())

    def find(self, username: str, password: str) -> Principal | None:
        """Return the user whose password it is. Takes as long for a user who isn't there."""
        known = self.by_name.get(username)
        if (known or _NOBODY).fits(password) and known is not None:
            return Principal(username, "password")
        return None

    def stamp(self, username: str) -> str | None:
        """Return what changes with the user's password; None for a user who isn't there."""
        known = self.by_name.get(username)
        return None if known is None else known.stamp
