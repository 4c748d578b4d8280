"""Lend the credentials of a table to a worker that reads it, when those of its ticket end.

The request is sealed as registrations are, and names its table by what a coordinator has put into a
ticket. Knows nothing of Flight.
"""

from __future__ import annotations

import base64
import binascii
import logging
import time
from collections.abc import Callable

from floeberg.protocol.errors import BadTicket, UnknownTable
from floeberg.protocol.lending import STREAM_MS, LentTable, open_table, seal_table
from floeberg.protocol.registration import (
    AskCredentials,
    LentByPrefix,
    LentCredentials,
    ReplayGuard,
    open_registration,
    seal_registration,
)
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.storage import CredentialRenewal, credentials_to_json
from floeberg.server.catalogs import Catalogs, LoadedTable
from floeberg.server.catalogs.catalog import LendsCredentials

logger = logging.getLogger(__name__)


def renewal_of(
    table: LoadedTable, keyring: Keyring, *, expires_at_ms: int
) -> CredentialRenewal | None:
    """Return what a worker shows that reads `table` by a ticket which expires then; None where
    nothing can be renewed."""
    if table.credentials is None:
        return None
    lent = LentTable(
        catalog=table.catalog,
        identifier=table.identifier,
        table_uuid=table.metadata.table_uuid,
        until_ms=expires_at_ms + STREAM_MS,
    )
    return CredentialRenewal(table.name, seal_table(lent, keyring))


class Lender:
    """Answers workers that ask for credentials. Safe to use from several threads."""

    def __init__(
        self,
        catalogs: Catalogs,
        keyring: Keyring,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._catalogs = catalogs
        self._keyring = keyring
        self._now_ms = now_ms
        self._guard = ReplayGuard()

    def lend(self, raw: bytes) -> bytes:
        """Return the sealed answer to a request.

        Raises `Unauthenticated` for what no worker of this fleet has asked just now, `BadTicket`
        and `ExpiredTicket` for a table that is in no ticket, or not any more, and what
        `LendsCredentials.lend` raises.
        """
        now_ms = self._now_ms()
        asked = open_registration(AskCredentials, raw, self._keyring, self._guard, now_ms=now_ms)
        try:
            token = base64.b64decode(asked.table, validate=True)
        except (binascii.Error, ValueError):
            raise BadTicket("the table to lend credentials for is no base64") from None
        table = open_table(token, self._keyring, now_ms=now_ms)
        name = ".".join((table.catalog, *table.identifier))
        catalog = self._catalogs.get(table.catalog)
        if not isinstance(catalog, LendsCredentials):
            raise UnknownTable(name)
        lent = catalog.lend(table.identifier, table.table_uuid, asked.refused)
        logger.info(
            "credentials lent",
            extra={
                "table": name,
                "worker": asked.worker_id,
                "refused": asked.refused is not None,
            },
        )
        answer = LentCredentials(
            question=asked.question,
            properties=dict(lent.properties),
            credentials=tuple(
                LentByPrefix.model_validate(one) for one in credentials_to_json(lent.credentials)
            ),
        )
        return seal_registration(answer, self._keyring, now_ms=now_ms)
