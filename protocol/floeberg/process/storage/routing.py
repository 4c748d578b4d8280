"""One storage for all schemes: each location goes to the file system that it names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock

import pyarrow as pa

from floeberg.process.storage.local import LocalStorage
from floeberg.process.storage.locations import rebase_location, split_location
from floeberg.process.storage.prefixed import PrefixedStorage, read_by_route
from floeberg.process.storage.ranges import Range
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.storage import Storage, StorageConfig, StorageFactory

_MAX_STORAGES = 32
_ConfigKey = tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]]


def open_storage(config: StorageConfig | None = None) -> Storage:
    """Return storage that reads what `config` describes; without one, local files and the
    environment's credentials."""
    if config is not None and config.credentials:
        return PrefixedStorage(config, RoutingStorage)
    return RoutingStorage(config or StorageConfig())


class StorageCache:
    """Opens storage, and gives the same one again for the same configuration; implements
    `StorageFactory`, safe to use from several threads.

    Opening S3 takes a few hundred milliseconds and a pool of connections, and a ticket brings its
    configuration each time. With vended credentials configurations come and go: only those used
    last are kept, and what is dropped closes its connections when its last reader is done. What
    several credentials open is kept by each: tables that have one in common share its connections.
    """

    def __init__(
        self, factory: StorageFactory = open_storage, max_entries: int = _MAX_STORAGES
    ) -> None:
        self._factory = factory
        self._max_entries = max_entries
        self._lock = Lock()
        self._entries: OrderedDict[_ConfigKey, Storage] = OrderedDict()

    def __call__(self, config: StorageConfig) -> Storage:
        if config.credentials:
            return PrefixedStorage(config, self)
        key = (frozenset(config.properties.items()), frozenset(config.rebase.items()))
        with self._lock:
            storage = self._entries.get(key)
            if storage is None:
                storage = self._entries[key] = self._factory(config)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
        return storage


def _open_remote(scheme: str, properties: Mapping[str, str]) -> Storage:
    # imported when it is needed: the libraries of object stores take longer to load than all else
    # that a question to a server, or a table of local files, takes
    def through_fsspec() -> Storage:
        from floeberg.process.storage.remote import RemoteStorage

        return RemoteStorage(scheme, properties)

    if scheme != "s3":
        return through_fsspec()
    from floeberg.process.storage.s3_storage import S3Storage

    return S3Storage(properties, through_fsspec)


class RoutingStorage:
    """Rebases a location and sends it to the storage of its scheme, opened when first needed."""

    def __init__(self, config: StorageConfig) -> None:
        self._config = config
        self._lock = Lock()
        self._by_scheme: dict[str, Storage] = {"file": LocalStorage()}

    def _route(self, location: str) -> tuple[Storage, str]:
        actual = rebase_location(location, self._config.rebase)
        scheme = split_location(actual)[0]
        with self._lock:
            storage = self._by_scheme.get(scheme)
            if storage is None:
                storage = _open_remote(scheme, self._config.properties)
                self._by_scheme[scheme] = storage
        return storage, actual

    def read(self, location: str) -> bytes:
        storage, actual = self._route(location)
        return storage.read(actual)

    def read_ranges(self, location: str, ranges: Sequence[Range]) -> list[bytes]:
        storage, actual = self._route(location)
        return storage.read_ranges(actual, ranges)

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[Range]]]
    ) -> list[list[bytes] | FloebergError]:
        return read_by_route(self._route, requests)

    def size(self, location: str) -> int:
        storage, actual = self._route(location)
        return storage.size(actual)

    def open(self, location: str) -> pa.NativeFile:
        storage, actual = self._route(location)
        return storage.open(actual)

    def list(self, location: str) -> Sequence[str]:
        storage, actual = self._route(location)
        return storage.list(actual)

    def is_directory(self, location: str) -> bool:
        storage, actual = self._route(location)
        return storage.is_directory(actual)

    def is_local(self, location: str) -> bool:
        # without a route: a storage that cannot be opened is an error when it is read
        return split_location(rebase_location(location, self._config.rebase))[0] == "file"
