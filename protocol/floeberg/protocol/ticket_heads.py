"""What every kind of ticket says before what is to be read: whose it is, how long it holds, where
it comes from, and what workers hold its query to.

As bytes, it is the length of the JSON that follows, 4 bytes, and `{"principal": …, "bound": …,
"expires_at_ms": …, "origin": {…}, "limits": {…}}`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.errors import BadTicket
from floeberg.protocol.types import Json

_LENGTH = struct.Struct(">I")
_UNDECODABLE = (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a ticket comes from, for people who look at logs and pages: the request that was
    planned, its trace, and the table's name. Each may be missing.

    A client may give several plans one request id; `query_id` is a plan's own.
    """

    query_id: str | None = None
    request_id: str | None = None
    table: str | None = None
    traceparent: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return what there is, by name."""
        named = {
            "query_id": self.query_id,
            "request_id": self.request_id,
            "table": self.table,
            "traceparent": self.traceparent,
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """What workers hold a query to; None is no limit.

    `rows` are those of all the query's streams together. `until_ms` is when the query must be done,
    in ms since the epoch: it may take `seconds`. `is_counted` asks workers to tell at once when a
    stream begins and ends: how many queries of its principal go on at once is limited.
    """

    rows: int | None = None
    seconds: float | None = None
    until_ms: int | None = None
    is_counted: bool = False

    def to_json(self) -> dict[str, Json]:
        """Return what there is, by name."""
        named: dict[str, Json] = {
            "rows": self.rows,
            "seconds": self.seconds,
            "until_ms": self.until_ms,
            "is_counted": self.is_counted or None,
        }
        return {name: value for name, value in named.items() if value is not None}


NO_LIMITS = StreamLimits()
NO_ORIGIN = Origin()


@dataclass(frozen=True, slots=True)
class TicketHead:
    """`principal` is who asked for the ticket, None for nobody who is known; where it is `bound`,
    nobody else may redeem it."""

    principal: str | None
    expires_at_ms: int
    bound: bool = False
    origin: Origin = NO_ORIGIN
    limits: StreamLimits = NO_LIMITS


def encode_head(head: TicketHead) -> bytes:
    """Return `head` as bytes, its length before it."""
    text = dump_json(
        {
            "principal": head.principal,
            "bound": head.bound,
            "expires_at_ms": head.expires_at_ms,
            "origin": head.origin.to_json(),
            "limits": head.limits.to_json(),
        }
    )
    return _LENGTH.pack(len(text)) + text


def decode_head(content: bytes) -> tuple[TicketHead, bytes]:
    """Return the head of an authenticated ticket's content, and what follows it.

    Raises `BadTicket` for what is none.
    """
    try:
        (size,) = _LENGTH.unpack_from(content)
        end = _LENGTH.size + size
        raw = json.loads(content[_LENGTH.size : end])
        # tickets of before it was written were bound to a principal that they named
        head = TicketHead(
            raw["principal"],
            raw["expires_at_ms"],
            raw.get("bound", raw["principal"] is not None),
            _origin(raw.get("origin", {})),
            _limits(raw.get("limits", {})),
        )
    except _UNDECODABLE as exc:
        raise BadTicket("ticket sealed by another version of floeberg: its head") from exc
    is_whole = isinstance(head.principal, str | None) and isinstance(head.expires_at_ms, int)
    if not (is_whole and isinstance(head.bound, bool)):
        raise BadTicket("ticket sealed by another version of floeberg: its head")
    return head, content[end:]


def _origin(raw: Mapping[str, object]) -> Origin:
    """Return what is known of an origin; an earlier version has none, a later one may say more."""
    found = {field.name: raw.get(field.name) for field in fields(Origin)}
    return Origin(**{name: value for name, value in found.items() if isinstance(value, str)})


def _limits(raw: Mapping[str, object]) -> StreamLimits:
    """Return the limits, of which an earlier version has none. Raises ValueError for what is no
    number: a limit is kept or refused."""
    rows, seconds, until_ms = (raw.get(name) for name in ("rows", "seconds", "until_ms"))
    if (
        isinstance(rows, int | None)
        and isinstance(seconds, int | float | None)
        and isinstance(until_ms, int | None)
    ):
        return StreamLimits(rows, seconds, until_ms, raw.get("is_counted") is True)
    raise ValueError("limits that are no numbers")
