"""A warehouse without a catalog service: directories, on a disk or in an object store.

`DIR/orders` is the table `orders`; `DIR/db/orders` and `DIR/db.db/orders` (as Hive lays it out) are
`db.orders`. A directory is a table when it has a `metadata` directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from floeberg.process.storage import open_storage
from floeberg.process.storage.locations import rebase_location, split_location
from floeberg.protocol.discovery import find_metadata
from floeberg.protocol.errors import BadConfig, UnknownTable
from floeberg.protocol.storage import Storage, StorageConfig, StorageFactory
from floeberg.protocol.suggestions import nearest
from floeberg.server.catalogs.catalog import LoadedTable
from floeberg.server.catalogs.metadata_cache import MetadataCache

_METADATA = "metadata"
_HIVE_SUFFIX = ".db"
_SUFFIXES = ("", _HIVE_SUFFIX)


class WarehouseCatalog:
    """The tables below one directory, at most one namespace deep; implements `Catalog`.

    `directory` is a path or a location. `properties` are FileIO properties, `rebase` replaces the
    prefixes of a warehouse that was copied here from elsewhere.
    """

    def __init__(
        self,
        name: str,
        directory: str,
        properties: Mapping[str, str] | None = None,
        rebase: Mapping[str, str] | None = None,
        *,
        storage_factory: StorageFactory = open_storage,
    ) -> None:
        self._name = name
        self._directory = _absolute(directory)
        self._config = StorageConfig(properties or {}, rebase or {})
        self._storage: Storage = storage_factory(self._config)
        scheme, _ = split_location(rebase_location(self._directory, self._config.rebase))
        self._is_here = scheme == "file"
        self.metadata_cache = MetadataCache()

    @property
    def name(self) -> str:
        return self._name

    @property
    def kind(self) -> str:
        return "warehouse"

    def list_tables(self) -> Sequence[tuple[str, ...]]:
        """Return the identifiers of all tables, sorted.

        Lists the warehouse, and each directory in it once or twice; nothing below a table, and no
        directory whose name is hidden by a leading `.` or `_`.
        """
        return sorted(set(self._tables()))

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        for directory in self._candidates(identifier):
            if _METADATA in self._storage.list(directory):
                location = find_metadata(self._storage, directory)
                metadata = self.metadata_cache.load(self._storage, location)
                # as it is listed: policies go by this name
                *namespace, table = identifier
                listed = (*(part.removesuffix(_HIVE_SUFFIX) for part in namespace), table)
                return LoadedTable(self._name, listed, metadata, location, self._config)
        raise UnknownTable(".".join(identifier))

    @property
    def is_local(self) -> bool:
        return self._is_here and self._storage.is_local(self._directory)

    @property
    def suggests_cheaply(self) -> bool:
        return self._is_here

    def neighbours(self, identifier: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        """Return all tables of a warehouse on this machine; in an object store, those of the same
        namespace whose names are nearest."""
        if self._is_here:
            return self.list_tables()
        if not 1 <= len(identifier) <= 2 or not all(map(_is_plain, identifier)):
            return ()
        *namespace, table = identifier
        parents = [f"{self._directory}/{n}{suffix}" for n in namespace for suffix in _SUFFIXES]
        return [
            (*namespace, name)
            for parent in parents or [self._directory]
            for name in nearest(table, filter(_is_plain, self._storage.list(parent)))
            if _METADATA in self._storage.list(f"{parent}/{name}")
        ]

    def _tables(self) -> Iterator[tuple[str, ...]]:
        for entry, children in self._directories(self._directory):
            if _METADATA in children:
                yield (entry,)
                continue
            namespace = entry.removesuffix(_HIVE_SUFFIX)
            for table, inside in self._directories(f"{self._directory}/{entry}", children):
                if _METADATA in inside:
                    yield (namespace, table)

    def _directories(
        self, parent: str, entries: Sequence[str] | None = None
    ) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield what could be a table or a namespace, with its own entries."""
        for entry in self._storage.list(parent) if entries is None else entries:
            if _is_plain(entry):
                yield entry, self._storage.list(f"{parent}/{entry}")

    def _candidates(self, identifier: tuple[str, ...]) -> Iterator[str]:
        """Yield the directories that `identifier` may be; none when a part is no plain name, since
        it would lead out of the warehouse or where listing does not go."""
        if not all(map(_is_plain, identifier)):
            return
        match identifier:
            case (table,):
                yield f"{self._directory}/{table}"
            case (namespace, table):
                for suffix in _SUFFIXES:
                    yield f"{self._directory}/{namespace}{suffix}/{table}"
            case _:
                return


def _is_plain(name: str) -> bool:
    """Tell whether a name is one path element that is not hidden."""
    return bool(name) and name[0] not in "._" and not any(c in name for c in "/\\\0")


def _absolute(directory: str) -> str:
    """Return a location without a trailing slash that means the same to every process."""
    if "://" in directory or directory.startswith("file:"):
        return directory.rstrip("/")
    if not os.path.isdir(directory):
        raise BadConfig(f"the warehouse {directory!r} is not a directory")
    return os.path.abspath(directory)
