"""Fresh credentials for the tables that a worker reads, from its coordinators.

They are shared by all streams of a table: one asks, once at a time, and all go on with the answer.
"""

from __future__ import annotations

import base64
import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from floeberg.process.storage.credentials import earliest_expiry_ms, fingerprint
from floeberg.process.storage.renewals import CredentialSource, Ends, Renewals, TableKey
from floeberg.protocol.errors import CredentialsUnavailable, FloebergError, Unavailable
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.registration import AskCredentials, LentCredentials
from floeberg.protocol.storage import CredentialRenewal, StorageConfig, StorageCredential

logger = logging.getLogger(__name__)

# a coordinator may have to wait for its catalog, which has this long for a call
_CALL_SECONDS = 30.0


class Lender(Protocol):
    """A coordinator, as one who needs credentials sees it. Safe to use from several threads."""

    def lend(self, message: AskCredentials, seconds: float) -> LentCredentials:
        """Return the answer. Raises `FloebergError`."""
        ...

    def close(self) -> None: ...


class WorkerCredentials:
    """The credentials of the tables that a worker reads. Safe to use from several threads.

    `coordinators` says who may be asked now, in that order, and `connect` leads there.
    """

    def __init__(
        self,
        worker_id: str,
        coordinators: Callable[[], Sequence[str]],
        connect: Callable[[str], Lender],
        renewals: Renewals,
    ) -> None:
        self.renewals = renewals
        self._worker_id = worker_id
        self._coordinators = coordinators
        self._connect = connect
        self._lock = threading.Lock()
        self._lenders: dict[str, Lender] = {}

    def source(self, plan: ReadPlan) -> CredentialSource | None:
        """Return where fresh credentials for a plan's files come from, None where its ticket holds
        none that could be renewed."""
        renewal = plan.storage.renewal
        if renewal is None:
            return None
        return _Source(self, TableKey(renewal.table, plan.metadata.table_uuid), renewal)

    def ask(self, renewal: CredentialRenewal, refused: str | None) -> StorageConfig:
        """Return credentials from the first coordinator that gives some.

        Raises `CredentialsUnavailable` where one that is away might have, and else what the first
        has said.
        """
        refusal: FloebergError | None = None
        silence: FloebergError | None = None
        coordinators = self._coordinators()
        self._forget_others(coordinators)
        for uri in coordinators:
            question = secrets.token_hex(12)
            message = AskCredentials(
                worker_id=self._worker_id,
                question=question,
                table=base64.b64encode(renewal.token).decode(),
                refused=refused,
            )
            try:
                return _config_of(self._lender(uri).lend(message, _CALL_SECONDS))
            except FloebergError as error:
                logger.warning(
                    "coordinator lent no credentials",
                    extra={"coordinator": uri, "code": error.code, "error": str(error)},
                )
                if isinstance(error, Unavailable):
                    silence = silence or error
                else:
                    refusal = refusal or error
        if refusal is not None and silence is None:
            raise refusal
        why = (
            f"no coordinator answered: {silence}"
            if silence is not None
            else "this worker knows no coordinator to ask: give it 'coordinator', or coordinators"
            " that look for workers 'advertise'"
        )
        raise CredentialsUnavailable(why) from silence

    def close(self) -> None:
        with self._lock:
            lenders, self._lenders = list(self._lenders.values()), {}
        for lender in lenders:
            lender.close()

    def _forget_others(self, coordinators: Sequence[str]) -> None:
        """Keep connections to `coordinators` only: others may never come back to their addresses.

        They are not closed, as another table's call may be under way: that holds its own as long
        as it lasts.
        """
        with self._lock:
            for uri in self._lenders.keys() - set(coordinators):
                del self._lenders[uri]

    def _lender(self, uri: str) -> Lender:
        with self._lock:
            lender = self._lenders.get(uri)
            if lender is None:
                lender = self._lenders[uri] = self._connect(uri)
            return lender


@dataclass(frozen=True, slots=True)
class _Source:
    """The credentials of one plan's table; implements `CredentialSource`."""

    credentials: WorkerCredentials
    table: TableKey
    renewal: CredentialRenewal

    def current(self, held: StorageConfig, ends: Ends = earliest_expiry_ms) -> StorageConfig:
        renew = partial(self.credentials.ask, self.renewal, None)
        return self.credentials.renewals.current(self.table, held, renew, ends)

    def after_refusal(self, refused: StorageConfig) -> StorageConfig:
        renew = partial(self.credentials.ask, self.renewal, fingerprint(refused))
        return self.credentials.renewals.after_refusal(self.table, refused, renew)


def _config_of(lent: LentCredentials) -> StorageConfig:
    return StorageConfig(
        lent.properties,
        credentials=tuple(
            StorageCredential(prefix, shared.properties)
            for shared in lent.credentials
            for prefix in shared.prefixes
        ),
    )
