"""Seal small messages with keys that coordinators and workers share.

A sealed message is authenticated and encrypted: whoever lacks the key can neither read, change nor
make one. Whoever holds the key can do all three, so a worker could mint tickets.

Each message is encrypted with AES-256-GCM under a key of its own, derived by HKDF-SHA256 from the
shared key, what the message is for, and half of a random 24-byte nonce; the other half is GCM's. A
ticket is thereby never taken for a registration, and no fleet seals enough messages for a nonce to
come twice; plain GCM with random nonces allows 2^32 messages a key. (AES-GCM-SIV was the
alternative; builds of `cryptography` on an OpenSSL before 3.2 lack it.)
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NewType

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from floeberg.protocol.errors import BadConfig

KEY_BYTES = 32
SALT_BYTES = 12
NONCE_BYTES = SALT_BYTES + 12
TAG_BYTES = 16
OVERHEAD_BYTES = NONCE_BYTES + TAG_BYTES
"""How much longer a sealed message is than what is in it."""

_KEY_ID = re.compile(r"[A-Za-z0-9_.-]{1,16}")

Purpose = NewType("Purpose", str)
"""What a message is for. A message opens only for the purpose that it was sealed for."""

TICKET = Purpose("ticket")
REGISTRATION = Purpose("registration")
SQL_TICKET = Purpose("sql-ticket")


@dataclass(frozen=True, slots=True)
class Key:
    """One shared key. Its id is public and travels along; the repr hides the secret."""

    key_id: str
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        # the id is left out of the message: a line with its parts swapped would print the secret
        if _KEY_ID.fullmatch(self.key_id) is None:
            raise BadConfig("a key id is 1 to 16 letters, digits, '_', '.' or '-'")
        if len(self.secret) != KEY_BYTES:
            raise BadConfig(f"key {self.key_id!r} is not {KEY_BYTES} bytes long")

    def seal(self, purpose: Purpose, message: bytes, associated: bytes, nonce: bytes) -> bytes:
        """Return `nonce` and the encrypted `message`.

        `associated` is authenticated with it, and not included. `nonce` is `NONCE_BYTES` fresh
        random bytes.
        """
        if len(nonce) != NONCE_BYTES:
            raise ValueError(f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}")
        return nonce + self._cipher(purpose, nonce).encrypt(nonce[SALT_BYTES:], message, associated)

    def open(self, purpose: Purpose, sealed: bytes, associated: bytes) -> bytes | None:
        """Return the message, or None where it, `associated` or the key differs in any bit."""
        if len(sealed) < OVERHEAD_BYTES:
            return None
        nonce = sealed[:NONCE_BYTES]
        try:
            return self._cipher(purpose, nonce).decrypt(
                nonce[SALT_BYTES:], sealed[NONCE_BYTES:], associated
            )
        except InvalidTag:
            return None

    def _cipher(self, purpose: Purpose, nonce: bytes) -> AESGCM:
        derive = HKDF(
            SHA256(), KEY_BYTES, salt=nonce[:SALT_BYTES], info=b"floeberg 1 " + purpose.encode()
        )
        return AESGCM(derive.derive(self.secret))


@dataclass(frozen=True)
class Keyring:
    """The keys that a process knows. The first one seals, every one opens.

    To rotate without refusing a ticket: append the new key everywhere, then move it to the front
    everywhere, and drop the old one when the last ticket that it sealed has expired.
    """

    keys: tuple[Key, ...]

    def __post_init__(self) -> None:
        if not self.keys:
            raise BadConfig("a keyring needs at least one key")
        ids = [key.key_id for key in self.keys]
        if len(set(ids)) != len(ids):
            raise BadConfig(f"key ids must differ: {', '.join(ids)}")

    @property
    def active(self) -> Key:
        return self.keys[0]

    def find(self, key_id: str) -> Key | None:
        return next((key for key in self.keys if key.key_id == key_id), None)

    @classmethod
    def generate(cls, random: Callable[[int], bytes] = os.urandom) -> Keyring:
        """Return a keyring with one new key; its id is random too, to tell two fleets' keys apart.

        >>> Keyring.generate(lambda n: bytes(n))
        Keyring(keys=(Key(key_id='k00000000'),))
        """
        return cls((Key(f"k{random(4).hex()}", random(KEY_BYTES)),))

    @classmethod
    def from_text(cls, text: str, where: str = "keyring") -> Keyring:
        """Parse lines `id:key`, the key 32 bytes in base64url, the active one first.

        Empty lines and those that start with `#` don't count; a comma separates as a line's end
        does, for the environment. Raises `BadConfig`, which names the line by number and never
        shows what is in it.
        """
        return cls(tuple(_parse_lines(text, where)))

    @classmethod
    def from_file(cls, path: str | Path) -> Keyring:
        """Read a keyring in `from_text`'s form.

        Raises `BadConfig`, also for a file to which others than owner and group have access.
        """
        try:
            with open(path, encoding="utf-8") as file:
                mode = os.fstat(file.fileno()).st_mode
                text = file.read()
        except OSError as exc:
            raise BadConfig(f"keyring {path} cannot be read: {exc.strerror}") from exc
        except UnicodeDecodeError:
            # the cause would show bytes of the file
            raise BadConfig(f"keyring {path} is not text") from None
        # the group may read: so Kubernetes mounts a secret for a process that is not root
        if mode & (stat.S_IRWXO | stat.S_IWGRP):
            raise BadConfig(
                f"keyring {path} has mode {stat.S_IMODE(mode):04o}: only its owner, and its group"
                " for reading, may have access (chmod 600)"
            )
        return cls.from_text(text, f"keyring {path}")

    def to_text(self) -> str:
        """Return the secrets, in the form that `from_text` takes."""
        return "".join(
            f"{key.key_id}:{base64.urlsafe_b64encode(key.secret).decode().rstrip('=')}\n"
            for key in self.keys
        )

    def write(self, path: str | Path) -> None:
        """Write a new file that only its owner may read. Raises `BadConfig` if there is one."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as exc:
            raise BadConfig(f"keyring {path} cannot be written: {exc.strerror}") from exc
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(self.to_text())


def _entries(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.lstrip().startswith("#"):
            yield from ((number, entry.strip()) for entry in line.split(",") if entry.strip())


def _parse_lines(text: str, where: str) -> Iterator[Key]:
    for number, entry in _entries(text):
        key_id, colon, encoded = entry.partition(":")
        try:
            secret = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if not colon or len(secret) != KEY_BYTES or _KEY_ID.fullmatch(key_id) is None:
            raise BadConfig(
                f"{where}, line {number}: a key is written id:key, the id 1 to 16 letters, digits,"
                f" '_', '.' or '-', and the key {KEY_BYTES} bytes in base64url"
            )
        yield Key(key_id, secret)


# --- whole messages ------------------------------------------------------------------------------

_MESSAGE_VERSION = 1


def seal_message(
    keyring: Keyring, purpose: Purpose, message: bytes, random: Callable[[int], bytes] = os.urandom
) -> bytes:
    """Return `message` sealed with the active key: header, nonce, ciphertext."""
    header = message_header(keyring.active, _MESSAGE_VERSION)
    return header + keyring.active.seal(purpose, message, header, random(NONCE_BYTES))


def open_message(keyring: Keyring, purpose: Purpose, raw: bytes) -> bytes | None:
    """Return what was sealed, or None for what no key of the ring has sealed for `purpose`."""
    split = split_header(raw, _MESSAGE_VERSION)
    if split is None:
        return None
    key_id, header = split
    key = keyring.find(key_id)
    return None if key is None else key.open(purpose, raw[len(header) :], header)


def message_header(key: Key, version: int) -> bytes:
    """Return what stands in clear before a message: its version, the key id's length, the key id.

    It is authenticated together with the message.
    """
    return bytes([version, len(key.key_id)]) + key.key_id.encode()


def split_header(raw: bytes, version: int) -> tuple[str, bytes] | None:
    """Return the key id and the whole header in front of `raw`, or None if there is none."""
    if len(raw) < 2 or raw[0] != version:
        return None
    header = raw[: 2 + raw[1]]
    key_id = header[2:].decode("ascii", errors="replace")
    return (key_id, header) if _KEY_ID.fullmatch(key_id) else None
