"""Change bytes and JSON as somebody might who is curious, or malicious, or has a broken proxy."""

from __future__ import annotations

import json
from random import Random
from typing import Any

STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308),
    *("", " ", ".", "..", "a" * 5000, "\x00", "é", "\U0001f9ca", "../../etc/passwd", "%2e%2e%2f"),
    *("'; DROP TABLE x; --", "{0}", "%s%n", "__class__", "db.people", "hr.pay", "_file", "email"),
    *("email = 'x' OR true", "((((((((((", "a" * 300 + " = 1", "NOT " * 200 + "true"),
    *([], {}, [[]], [None], {"": ""}, ["and"], ["=", "id"], ["in", "id", []], ["not"]),
    ["and", *[["=", "id", n] for n in range(50)]],
)


def changed_bytes(raw: bytes, random: Random) -> bytes:
    """Return `raw` with one to four changes. It may come out as it was."""
    out = bytearray(raw)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        place = random.randrange(len(out) + 1)
        length = random.choice((1, 1, 2, 8, 100))
        match random.randrange(7):
            case 0 if place < len(out):
                out[place] ^= 1 << random.randrange(8)
            case 1:
                out[place : place + length] = random.randbytes(length)
            case 2:
                del out[place : place + length]
            case 3:
                out[place:place] = random.randbytes(length)
            case 4:
                out[place:] = b""
            case 5:
                out[place:place] = out[place : place + length]
            case _:
                out[place : place + length] = bytes(length)
    return bytes(out)


def changed_text(text: str, random: Random) -> str:
    """Return printable ASCII, as headers hold, that differs in some letters."""
    raw = changed_bytes(text.encode(), random)
    return "".join(chr(32 + byte % 95) for byte in raw).strip()


def changed_json(value: Any, random: Random) -> bytes:
    """Return JSON, or what is nearly that, with a change somewhere in `value`."""
    match random.randrange(12):
        case 0:
            return changed_bytes(json.dumps(value).encode(), random)
        case 1:
            depth = random.choice((50, 500, 20_000))
            return b"[" * depth + b"]" * random.choice((0, depth))
        case _:
            text = json.dumps(_changed(value, random, may_replace=False))
            return text.replace("NaN", random.choice(("NaN", "Infinity", "-Infinity"))).encode()


def _changed(value: Any, random: Random, may_replace: bool = True) -> Any:
    if (may_replace and random.randrange(4) == 0) or not value:
        return random.choice((*STRANGE, float("nan")))
    match value:
        case dict():
            key = random.choice(list(value))
            match random.randrange(12):
                case 0:
                    return {k: v for k, v in value.items() if k != key}
                case 1:
                    return {**value, str(random.choice(STRANGE))[:100]: random.choice(STRANGE)}
                case 2:
                    return {**value, key.upper(): value[key]}
                case _:
                    return {**value, key: _changed(value[key], random)}
        case list():
            place = random.randrange(len(value))
            return [*value[:place], _changed(value[place], random), *value[place + 1 :]]
        case str():
            return changed_text(value, random) if random.randrange(2) else value * 2
        case _:
            return random.choice(STRANGE)
