"""What a catalog is to the coordinator: names that lead to tables.

A catalog is asked afresh for every scan, so that a commit, or a table that was dropped and made
again under its old name, is seen at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from floeberg.process.storage.renewals import CredentialSource, Renewals
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.storage import StorageConfig

CREDENTIAL_SECONDS = 600.0
"""How much longer lent credentials must be good when they are handed out, where nothing else is
said: a plan may take five minutes, and a stream some more."""


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as its catalog had it at one moment.

    `identifier` is the table's name within `catalog`, namespaces first. `metadata_location` is
    where the metadata was written, or None when a catalog hands out metadata alone. `storage`
    reaches the table's files, with the credentials that the catalog lent for them, if any; and
    `credentials` gives fresh ones, where there are such.
    """

    catalog: str
    identifier: tuple[str, ...]
    metadata: TableMetadata
    metadata_location: str | None
    storage: StorageConfig
    credentials: CredentialSource | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The name for people: `catalog.db.orders`."""
        return ".".join((self.catalog, *self.identifier))


@runtime_checkable
class Catalog(Protocol):
    """Finds tables by name. Safe to use from several threads.

    Its methods raise `CatalogUnavailable` when the catalog cannot be reached in time, and
    `AccessDenied` when it refuses the credentials that it was configured with.
    """

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str:
        """What sort of catalog it is, for people: `warehouse`, or PyIceberg's word."""
        ...

    def list_tables(self) -> Sequence[tuple[str, ...]]:
        """Return the identifiers of all tables, sorted."""
        ...

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        """Return the table as it is now; raises `UnknownTable`."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether `load` asks nothing but this machine's disks: it waits for no network."""
        ...

    @property
    def suggests_cheaply(self) -> bool:
        """Whether `neighbours` costs so little that it may be asked of a table that was looked for
        elsewhere: no request leaves the machine."""
        ...

    def neighbours(self, identifier: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        """Return tables among which `identifier`, which is none, may be misspelt: what a handful of
        requests finds, in any order.

        Also raises `BadConfig` where the catalog is such that nothing can ever be found in it.
        """
        ...


@runtime_checkable
class LendsCredentials(Protocol):
    """A catalog that lends credentials for its tables' files."""

    renewals: Renewals

    def lend(
        self, identifier: tuple[str, ...], table_uuid: str | None, refused: str | None = None
    ) -> StorageConfig:
        """Return how the files of a table are reached, with credentials that are good for a while.

        `refused` is the fingerprint of those that a store did not take, which are renewed if they
        are the ones at hand. Raises `UnknownTable` where there is no such table, or it is another
        than that of `table_uuid`, and `CredentialsUnavailable` and `ExpiredCredentials`.
        """
        ...
