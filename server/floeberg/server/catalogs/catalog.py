"""What a catalog is to the coordinator: names that lead to tables.

A catalog is asked afresh for every scan, so that a commit, or a table that was dropped and made
again under its old name, is seen at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.storage import StorageConfig


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as its catalog had it at one moment.

    `identifier` is the table's name within `catalog`, namespaces first. `metadata_location` is
    where the metadata was written, or None when a catalog hands out metadata alone. `storage`
    reaches the table's files, with the credentials that the catalog lent for them, if any.
    """

    catalog: str
    identifier: tuple[str, ...]
    metadata: TableMetadata
    metadata_location: str | None
    storage: StorageConfig

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
