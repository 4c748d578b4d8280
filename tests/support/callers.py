"""Files that say who may call a fleet under test, and callers that they know."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.flight as fl

from floeberg.process.auth.passwords import PasswordList, hash_password

ANN, BOB = "anns-token-of-24-letters", "bobs-token-of-24-letters"


def secret_file(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def token_file(folder: Path, tokens: Mapping[str, str] | None = None) -> str:
    """Write `auth_tokens`: of ann and bob, unless `tokens` names others by principal."""
    listed = {"ann": ANN, "bob": BOB} if tokens is None else tokens
    return secret_file(folder / "tokens", "".join(f"{p}:{t}\n" for p, t in listed.items()))


def password_file(folder: Path, **passwords: str) -> str:
    """Write `auth_passwords`."""
    users = PasswordList({name: hash_password(p) for name, p in passwords.items()})
    return secret_file(folder / "users", users.to_text())


def bearing(token: str | None) -> fl.FlightCallOptions:
    """Return the options of a stock client's call with a bearer token."""
    # the stubs ask for text, and pyarrow for bytes
    headers: Any = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    return fl.FlightCallOptions(headers=headers)
