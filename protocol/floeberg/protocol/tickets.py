"""Tickets: read plans sealed for the wire.

A ticket is whole: any worker of the fleet redeems it, for any connection, as often as it is sent,
until it expires. Its bytes:

    magic, 3 bytes: "flb" | version, 1 byte: 1 | length of the key id, 1 byte | key id
    resume place: task, 4 bytes | row, 8 bytes
    nonce, 24 bytes | ciphertext of: length of the head, 4 bytes | head | plan | tag, 16 bytes

The head is that of `ticket_heads`, the plan that of `plan_codec`. All but the resume place is
sealed. A client that lost its stream writes there how far it has come, as the last batch said, and
sends the ticket to another worker. The place is checked against the plan's bounds, and trusted for
nothing: wherever it points, the rows are the plan's own.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass

from floeberg.protocol.errors import BadTicket, ExpiredTicket, PlanTooLarge
from floeberg.protocol.plan_codec import MalformedPlan, decode_plan, encode_plan
from floeberg.protocol.plans import START, ReadOptions, ReadPlan, ResumePlace
from floeberg.protocol.sealing import (
    NONCE_BYTES,
    TICKET,
    Keyring,
    message_header,
    split_header,
)
from floeberg.protocol.ticket_heads import (
    NO_LIMITS,
    NO_ORIGIN,
    Origin,
    StreamLimits,
    TicketHead,
    decode_head,
    encode_head,
)

__all__ = [
    "NO_LIMITS",
    "NO_ORIGIN",
    "START",
    "OpenTicket",
    "Origin",
    "ReadOptions",
    "ReadPlan",
    "ResumePlace",
    "StreamLimits",
    "decode_place",
    "decode_plan",
    "encode_place",
    "encode_plan",
    "open_ticket",
    "seal_encoded",
    "seal_ticket",
    "with_resume",
]

MAGIC = b"flb"
VERSION = 1
MAX_TICKET_BYTES = 64 << 20

_PLACE = struct.Struct(">IQ")
_MAX_ROW = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class OpenTicket:
    """What a ticket says. `principal` is who asked for it, None for nobody who is known; where it
    `is_bound`, nobody else may redeem it."""

    plan: ReadPlan
    principal: str | None
    expires_at_ms: int
    resume: ResumePlace
    origin: Origin = NO_ORIGIN
    is_bound: bool = False
    limits: StreamLimits = NO_LIMITS


def seal_ticket(
    plan: ReadPlan,
    keyring: Keyring,
    *,
    principal: str | None,
    expires_at_ms: int,
    bound: bool = False,
    origin: Origin = NO_ORIGIN,
    limits: StreamLimits = NO_LIMITS,
    random: Callable[[int], bytes] = os.urandom,
) -> bytes:
    """Return a ticket for `plan` from its start, sealed with the active key; with `bound`, for
    `principal` alone.

    Raises `PlanTooLarge` for a plan that is too large for one ticket.
    """
    return seal_encoded(
        encode_plan(plan),
        keyring,
        principal=principal,
        expires_at_ms=expires_at_ms,
        bound=bound,
        origin=origin,
        limits=limits,
        random=random,
    )


def seal_encoded(
    plan: bytes,
    keyring: Keyring,
    *,
    principal: str | None,
    expires_at_ms: int,
    bound: bool = False,
    origin: Origin = NO_ORIGIN,
    limits: StreamLimits = NO_LIMITS,
    random: Callable[[int], bytes] = os.urandom,
) -> bytes:
    """Return a ticket for a plan that is encoded already, see `PlanEncoder`.

    Raises `PlanTooLarge` for a plan that is too large for one ticket.
    """
    head = TicketHead(principal, expires_at_ms, bound, origin, limits)
    content = encode_head(head) + plan
    header = MAGIC + message_header(keyring.active, VERSION)
    sealed = keyring.active.seal(TICKET, content, header, random(NONCE_BYTES))
    ticket = header + encode_place(START) + sealed
    if len(ticket) > MAX_TICKET_BYTES:
        raise PlanTooLarge(
            f"a ticket of {len(ticket)} bytes is too large: {MAX_TICKET_BYTES} are read"
        )
    return ticket


def open_ticket(raw: bytes, keyring: Keyring, *, now_ms: int) -> OpenTicket:
    """Return what a ticket says, if a key of the ring has sealed it.

    Raises `ExpiredTicket`, and `BadTicket` for a bit that is not as it was sealed. Whether the
    caller is the principal is for the caller's service to check.
    """
    if len(raw) > MAX_TICKET_BYTES:
        raise BadTicket(f"ticket of {len(raw)} bytes; at most {MAX_TICKET_BYTES} are read")
    key_id, header = _header(raw)
    key = keyring.find(key_id)
    if key is None:
        raise BadTicket(f"ticket sealed with key {key_id!r}, which this process does not have")
    after = len(header) + _PLACE.size
    content = key.open(TICKET, raw[after:], header)
    if content is None:
        raise BadTicket("ticket that was damaged, or sealed with another key")
    head, plan_bytes = decode_head(content)
    if now_ms >= head.expires_at_ms:
        raise ExpiredTicket((now_ms - head.expires_at_ms) // 1000)
    try:
        plan = decode_plan(plan_bytes)
    except MalformedPlan as exc:
        raise BadTicket(f"ticket sealed by another version of floeberg: {exc}") from exc
    resume = _checked_place(decode_place(raw[len(header) : after]), len(plan.tasks))
    return OpenTicket(
        plan,
        head.principal,
        head.expires_at_ms,
        resume,
        head.origin,
        is_bound=head.bound,
        limits=head.limits,
    )


def with_resume(raw: bytes, place: ResumePlace) -> bytes:
    """Return the ticket for the rest of its rows, from `place` on. It takes no key."""
    _, header = _header(raw)
    return header + encode_place(place) + raw[len(header) + _PLACE.size :]


def encode_place(place: ResumePlace) -> bytes:
    """Return a place as a ticket holds it, and each batch's app_metadata: where to go on after it.

    >>> encode_place(ResumePlace(2, 1000)).hex()
    '0000000200000000000003e8'
    """
    try:
        return _PLACE.pack(*place)
    except struct.error:
        raise BadTicket(f"{place} is not a place to resume at") from None


def decode_place(raw: bytes) -> ResumePlace:
    """Return the place in a batch's app_metadata. More may follow it there in later versions."""
    if len(raw) < _PLACE.size:
        raise BadTicket(f"a place has {_PLACE.size} bytes, not {len(raw)}")
    return ResumePlace(*_PLACE.unpack_from(raw))


def _header(raw: bytes) -> tuple[str, bytes]:
    """Return the key id and all that stands before the resume place."""
    if raw[: len(MAGIC)] != MAGIC or len(raw) < len(MAGIC) + 2:
        raise BadTicket("these bytes are not a ticket of floeberg")
    version = raw[len(MAGIC)]
    if version != VERSION:
        raise BadTicket(f"ticket of version {version}; this version of floeberg reads {VERSION}")
    split = split_header(raw[len(MAGIC) :], VERSION)
    if split is None:
        raise BadTicket("ticket that was damaged: its key has no valid id")
    key_id, rest = split
    header = MAGIC + rest
    if len(raw) < len(header) + _PLACE.size:
        raise BadTicket("ticket that is cut short")
    return key_id, header


def _checked_place(place: ResumePlace, tasks: int) -> ResumePlace:
    if place.task > tasks or place.row > _MAX_ROW or (place.task == tasks and place.row > 0):
        raise BadTicket(f"ticket with {tasks} tasks to resume at {place}, which it has not")
    return place
