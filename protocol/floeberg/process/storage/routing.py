"""One storage for all schemes: each location goes to the file system that it names."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import pyarrow as pa

from floeberg.process.storage.local import LocalStorage
from floeberg.process.storage.locations import rebase_location, split_location
from floeberg.process.storage.remote import RemoteStorage
from floeberg.protocol.storage import Storage, StorageConfig


def open_storage(config: StorageConfig | None = None) -> Storage:
    """Return storage that reads what `config` describes; without one, local files and the
    environment's credentials."""
    return RoutingStorage(config or StorageConfig())


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
                storage = RemoteStorage(scheme, self._config.properties)
                self._by_scheme[scheme] = storage
        return storage, actual

    def read(self, location: str) -> bytes:
        storage, actual = self._route(location)
        return storage.read(actual)

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        storage, actual = self._route(location)
        return storage.read_ranges(actual, ranges)

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
