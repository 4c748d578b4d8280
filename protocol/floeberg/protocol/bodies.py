"""JSON bodies of commands and actions: read strictly, and refused in words that name the key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from floeberg.protocol.errors import BadCommand
from floeberg.protocol.suggestions import nearest, quoted
from floeberg.protocol.types import Json
from floeberg.protocol.validation import plain_reason

MAX_BODY_BYTES = 16 << 20

Body = TypeVar("Body", bound=BaseModel)


class Request(BaseModel):
    """What an action takes."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Reply(BaseModel):
    """One result of an action."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def parse_body(
    model: type[Body],
    raw: bytes | str,
    what: str,
    parse_float: Callable[[str], object] = float,
) -> Body:
    """Return the JSON object in `raw` as a `model`.

    Raises `BadCommand` for more than `MAX_BODY_BYTES`, for what is not a JSON object, and for one
    that is no `model` or has a key twice; the message calls it `what` and names the key that is
    wrong.
    """
    if len(raw) > MAX_BODY_BYTES:
        raise BadCommand(f"the {what} has {len(raw)} bytes; at most {MAX_BODY_BYTES} are read")
    try:
        parsed = json.loads(
            raw,
            parse_float=parse_float,
            parse_constant=_refuse_constant,
            object_pairs_hook=_once_each,
        )
    except (ValueError, RecursionError) as exc:
        reason = str(exc) if isinstance(exc, json.JSONDecodeError) else "it cannot be decoded"
        raise BadCommand(f"the {what} is not JSON: {reason}") from exc
    if not isinstance(parsed, dict):
        raise BadCommand(f"the {what} is not a JSON object")
    return validate_body(model, parsed, what)


def validate_body(model: type[Body], parsed: Json, what: str) -> Body:
    """Return parsed JSON as a `model`. Raises `BadCommand`, as `parse_body` does."""
    try:
        return model.model_validate(parsed)
    except ValidationError as exc:
        raise BadCommand(f"{what}: {_explain(model, exc)}") from exc


def dump_json(body: Json) -> bytes:
    """Return compact JSON in ASCII; NaN and infinities, which JSON lacks, raise `ValueError`."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _once_each(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return an object's members. JSON leaves open which of two with one name counts, so a proxy
    that checks commands may read another filter than we would.
    """
    members: dict[str, Json] = {}
    for key, value in pairs:
        if key in members:
            raise BadCommand(f"key {quoted(key)} is given twice")
        members[key] = value
    return members


def _explain(model: type[BaseModel], invalid: ValidationError) -> str:
    """Return one thing that is wrong: an unknown key before a missing one, since it may be both."""
    wrong = invalid.errors(include_url=False)
    first = next((e for e in wrong if e["type"] == "extra_forbidden"), wrong[0])
    place = first["loc"]
    if first["type"] == "extra_forbidden" and len(place) == 1:
        return unknown_key(str(place[0]), list(model.model_fields))
    if first["type"] == "extra_forbidden":
        return f"unknown key {_dotted(place)!r}"
    if first["type"] == "missing":
        return f"key {_dotted(place)!r} is missing"
    reason = plain_reason(first)
    return f"key {_dotted(place)!r}: {reason}" if place else reason


def _dotted(place: Iterable[int | str]) -> str:
    return ".".join(str(p) for p in place)[:80]


def unknown_key(key: str, known: Sequence[str]) -> str:
    """Return the part of a message that says so, with the nearest key that is known.

    >>> unknown_key("fitler", ["filter", "table"])
    "unknown key 'fitler'; did you mean 'filter'?"
    """
    near = nearest(key, known, n=1)
    listed = f"there are {', '.join(known)}" if known else "there are none"
    hint = f"did you mean {near[0]!r}?" if near else listed
    return f"unknown key {quoted(key)}; {hint}"
