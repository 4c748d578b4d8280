"""Who calls: a name, and how it was proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeGuard

MAX_NAME = 256

Method = Literal["token", "jwt", "password", "certificate", "coordinator"]


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller who has proved to be `name`. Names of all methods are of one kind: `ann` with a
    token is `ann` with a password."""

    name: str
    method: Method


def is_name(text: object) -> TypeGuard[str]:
    """Say whether `text` can be a principal's name: 1 to 256 printable characters, none of them a
    space at either end."""
    return (
        isinstance(text, str)
        and 0 < len(text) <= MAX_NAME
        and text.isprintable()
        and text == text.strip()
    )
