"""What a REST catalog lends for its tables' files, and how a coordinator renews that.

Credentials are asked for alone where the catalog can do that (`loadCredentials` of Iceberg's REST
specification, or where its `…refresh-credentials-endpoint` says), and else with the whole table.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias, TypeVar

from floeberg.process.storage.credentials import (
    earliest_expiry_ms,
    expiry_ms,
    fingerprint,
    identity,
    layered,
)
from floeberg.process.storage.renewals import CredentialSource, Ends, Renewals, TableKey
from floeberg.protocol.errors import UnknownTable
from floeberg.protocol.storage import StorageConfig, StorageCredential
from floeberg.server.catalogs.file_properties import file_properties, storage_credentials
from floeberg.server.catalogs.foreign_errors import NOT_FOUND
from floeberg.server.catalogs.rest_tables import RestTable, RestTables, may_be_renewed

_MAX_TABLES = 4096

Identifier: TypeAlias = tuple[str, ...]
T = TypeVar("T")


class AskCatalog(Protocol):
    def __call__(self, request: Callable[[RestTables], T], /) -> T:
        """Return what `request` returns. Raises floeberg's errors, and `NOT_FOUND`."""
        ...


@dataclass(frozen=True, slots=True)
class _Lent:
    """What came with a table when it was loaded last. `told` is the catalog's own configuration."""

    config: StorageConfig
    told: Mapping[str, object] = field(repr=False)
    table_uuid: str | None

    @property
    def is_renewed_alone(self) -> bool:
        """Whether credentials can be asked for without the table: what ends is among them, by its
        prefix."""
        own = self.config.properties
        return bool(self.config.credentials) and (expiry_ms(own) is None or bool(self._twins))

    @property
    def _twins(self) -> list[StorageCredential]:
        """The credentials that are the same as those for all files, which catalogs send for clients
        that know no prefixes."""
        own = identity(self.config.properties)
        return [c for c in self.config.credentials if own and identity(c.properties) == own]

    def reaches(self, fresh: Sequence[StorageCredential]) -> bool:
        """Whether `fresh` are for places that the credentials here are for too."""
        own = tuple(c.prefix for c in self.config.credentials)
        return all(c.prefix.startswith(own) for c in fresh)

    def with_credentials(self, fresh: tuple[StorageCredential, ...]) -> StorageConfig:
        """Return the configuration with `fresh` in the place of what was lent."""
        properties: Mapping[str, str] = self.config.properties
        twins = {twin.prefix for twin in self._twins}
        for credential in fresh:
            if credential.prefix in twins:
                properties = layered(properties, identity(credential.properties))
        return replace(self.config, properties=properties, credentials=fresh)


class Lending:
    """The credentials that one catalog lends. Safe to use from several threads.

    `ask` reaches the catalog, whose tables are called `name`, a dot, and their own name.
    """

    def __init__(
        self, name: str, rebase: Mapping[str, str], ask: AskCatalog, renewals: Renewals
    ) -> None:
        self._name = name
        self._rebase = rebase
        self._ask = ask
        self._renewals = renewals
        self._lock = threading.Lock()
        self._lent: OrderedDict[Identifier, _Lent] = OrderedDict()

    def take(
        self, identifier: Identifier, answer: RestTable, configured: Mapping[str, object]
    ) -> tuple[StorageConfig, CredentialSource | None]:
        """Return how the files of a table are reached that was just loaded, and where fresh
        credentials for them come from, None where the catalog lends none or does not renew."""
        lent = self._of(answer, configured)
        lends = identity(file_properties({}, answer.config)) or lent.config.credentials
        if not lends or not may_be_renewed(answer.config):
            return lent.config, None
        with self._lock:
            self._lent[identifier] = lent
            self._lent.move_to_end(identifier)
            while len(self._lent) > _MAX_TABLES:
                self._lent.popitem(last=False)
        return lent.config, _Source(self, identifier, lent.table_uuid)

    def lend(
        self, identifier: Identifier, table_uuid: str | None, refused: str | None
    ) -> StorageConfig | None:
        """Return credentials for a table that was loaded before, None if it was not, or is another
        table of that name now, or has nothing that is lent.

        `refused` is the fingerprint of what a store did not take. Raises as `CredentialSource`.
        """
        with self._lock:
            lent = self._lent.get(identifier)
        if lent is None or lent.table_uuid != table_uuid:
            return None
        source = _Source(self, identifier, table_uuid)
        held = self._renewals.held(self._table(identifier, table_uuid)) or lent.config
        if refused is not None and fingerprint(held) == refused:
            return source.after_refusal(held)
        return source.current(held)

    def current(
        self, identifier: Identifier, table_uuid: str | None, held: StorageConfig, ends: Ends
    ) -> StorageConfig:
        table = self._table(identifier, table_uuid)
        return self._renewals.current(table, held, self._renewal(identifier, table_uuid), ends)

    def after_refusal(
        self, identifier: Identifier, table_uuid: str | None, refused: StorageConfig
    ) -> StorageConfig:
        table = self._table(identifier, table_uuid)
        renew = self._renewal(identifier, table_uuid)
        return self._renewals.after_refusal(table, refused, renew)

    def _table(self, identifier: Identifier, table_uuid: str | None) -> TableKey:
        return TableKey(".".join((self._name, *identifier)), table_uuid)

    def _of(self, answer: RestTable, configured: Mapping[str, object]) -> _Lent:
        config = StorageConfig(
            file_properties(configured, answer.config),
            self._rebase,
            storage_credentials(answer.credentials),
        )
        uuid = answer.metadata.get("table-uuid")
        return _Lent(config, answer.config, uuid if isinstance(uuid, str) else None)

    def _renewal(
        self, identifier: Identifier, table_uuid: str | None
    ) -> Callable[[], StorageConfig]:
        gone = UnknownTable(self._table(identifier, table_uuid).name)

        def renew() -> StorageConfig:
            with self._lock:
                lent = self._lent.get(identifier)
            if lent is None or lent.table_uuid != table_uuid:
                raise gone  # another has its name now
            try:
                return self._ask(lambda client: self._fresh(client, identifier, lent))
            except NOT_FOUND:
                pass  # outside, so that the library's error is not what the caller's is about
            raise gone

        return renew

    def _fresh(self, client: RestTables, identifier: Identifier, lent: _Lent) -> StorageConfig:
        if lent.is_renewed_alone:
            answer = client.load_credentials_answer(identifier, lent.told)
            # the answer does not say of which table it is: for other places it may be another's
            if answer and lent.reaches(credentials := storage_credentials(answer)):
                return lent.with_credentials(credentials)
        loaded = self._of(client.load_answer(identifier), client.properties)
        if loaded.table_uuid != lent.table_uuid:
            # it was made again under its name: what opens its files is not for the old one
            raise UnknownTable(self._table(identifier, lent.table_uuid).name)
        return loaded.config


@dataclass(frozen=True, slots=True)
class _Source:
    """The credentials of one table; implements `CredentialSource`."""

    lending: Lending
    identifier: Identifier
    table_uuid: str | None

    def current(self, held: StorageConfig, ends: Ends = earliest_expiry_ms) -> StorageConfig:
        return self.lending.current(self.identifier, self.table_uuid, held, ends)

    def after_refusal(self, refused: StorageConfig) -> StorageConfig:
        return self.lending.after_refusal(self.identifier, self.table_uuid, refused)
