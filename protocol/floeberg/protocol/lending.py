"""A table, sealed for whoever may ask for its credentials: what a ticket says for its worker.

A worker that needs fresh credentials shows this to a coordinator, and names the table in no other
way. So it can have those of no table but what it was given a ticket of, and a client, which can't
open its ticket, none at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from floeberg.protocol.bodies import dump_json, parse_body
from floeberg.protocol.errors import BadTicket, ExpiredTicket
from floeberg.protocol.sealing import Keyring, Purpose, open_message, seal_message

CREDENTIALS = Purpose("credentials")

STREAM_MS = 24 * 3_600_000
"""How much longer than its ticket a table may be shown: a stream may outlive its ticket, and must
not end for that."""


class LentTable(BaseModel):
    """A table whose credentials a catalog lends, and until when they may be asked for, in ms since
    the epoch. `table_uuid` tells it from another that has its name later."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    catalog: Annotated[str, Field(min_length=1)]
    identifier: Annotated[tuple[str, ...], Field(min_length=1)]
    table_uuid: str | None
    until_ms: Annotated[int, Field(strict=True)]


def seal_table(
    table: LentTable, keyring: Keyring, random: Callable[[int], bytes] = os.urandom
) -> bytes:
    """Return the table for a ticket's secrets."""
    message = dump_json(table.model_dump(mode="json"))
    return seal_message(keyring, CREDENTIALS, message, random)


def open_table(raw: bytes, keyring: Keyring, *, now_ms: int) -> LentTable:
    """Return the table. Raises `BadTicket` for what no key of the ring has sealed for this purpose,
    and `ExpiredTicket`."""
    opened = open_message(keyring, CREDENTIALS, raw)
    if opened is None:
        raise BadTicket(
            "the table to lend credentials for is not sealed with a key that this process has"
        )
    table = parse_body(LentTable, opened, "table to lend credentials for")
    if now_ms >= table.until_ms:
        raise ExpiredTicket((now_ms - table.until_ms) // 1000)
    return table
