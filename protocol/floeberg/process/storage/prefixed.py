"""One storage for the credentials of several prefixes: each location is read with its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeAlias

import pyarrow as pa

from floeberg.process.storage.credentials import credential_for, layered
from floeberg.process.storage.ranges import Range
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.storage import Storage, StorageConfig, StorageFactory

Route: TypeAlias = Callable[[str], tuple[Storage, str]]
"""Returns the storage of a location, and what the location is called there."""


def read_by_route(
    route: Route, requests: Sequence[tuple[str, Sequence[Range]]]
) -> list[list[bytes] | FloebergError]:
    """Return what `Storage.read_many` does, from the storages that `route` leads to, each asked
    once."""
    found: dict[int, list[bytes] | FloebergError] = {}
    by_storage: dict[Storage, list[tuple[int, str]]] = {}
    for i, (location, _) in enumerate(requests):
        try:
            storage, actual = route(location)
        except FloebergError as error:
            found[i] = error
        else:
            by_storage.setdefault(storage, []).append((i, actual))
    for storage, routed in by_storage.items():
        parts = storage.read_many([(actual, requests[i][1]) for i, actual in routed])
        found.update(zip((i for i, _ in routed), parts, strict=True))
    return [found[i] for i in range(len(requests))]


class PrefixedStorage:
    """Sends a location to a storage with the credentials of its longest prefix; implements
    `Storage`.

    `open_plain` opens storage without prefixes, when it is first needed.
    """

    def __init__(self, config: StorageConfig, open_plain: StorageFactory) -> None:
        self._config = config
        self._open_plain = open_plain
        self._lock = Lock()
        self._opened: dict[str | None, Storage] = {}

    def _route(self, location: str) -> tuple[Storage, str]:
        return self._of(location), location

    def _of(self, location: str) -> Storage:
        config = self._config
        found = credential_for(location, config.credentials)
        prefix = None if found is None else found.prefix
        with self._lock:
            storage = self._opened.get(prefix)
            if storage is None:
                lent = {} if found is None else found.properties
                plain = StorageConfig(layered(config.properties, lent), config.rebase)
                storage = self._opened[prefix] = self._open_plain(plain)
        return storage

    def read(self, location: str) -> bytes:
        return self._of(location).read(location)

    def read_ranges(self, location: str, ranges: Sequence[Range]) -> list[bytes]:
        return self._of(location).read_ranges(location, ranges)

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[Range]]]
    ) -> list[list[bytes] | FloebergError]:
        return read_by_route(self._route, requests)

    def size(self, location: str) -> int:
        return self._of(location).size(location)

    def open(self, location: str) -> pa.NativeFile:
        return self._of(location).open(location)

    def list(self, location: str) -> Sequence[str]:
        return self._of(location).list(location)

    def is_directory(self, location: str) -> bool:
        return self._of(location).is_directory(location)

    def is_local(self, location: str) -> bool:
        return self._of(location).is_local(location)
