"""Remember decoded manifests between plans.

Manifest lists and manifests never change once written, so what was decoded stays right for as long
as it is kept. Snapshots share most of their manifests: a new one costs only what is new in it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from copy import copy
from typing import Generic, NamedTuple, TypeVar

from floeberg.protocol.files import ManifestFile
from floeberg.protocol.manifests import ManifestEntry

DEFAULT_CACHE_BYTES = 256 * 1024 * 1024

# Measured in CPython 3.11: an entry without statistics, and each statistic of a column.
_ENTRY_BYTES = 1200
_STATISTIC_BYTES = 85
_MANIFEST_FILE_BYTES = 800

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ListKey(NamedTuple):
    table_uuid: str | None
    location: str


class ManifestKey(NamedTuple):
    """A manifest and what its entries inherit, which another snapshot may state differently.

    The table's UUID keeps apart tables that were made one after the other at the same location.
    """

    table_uuid: str | None
    location: str
    spec_id: int
    sequence_number: int
    added_snapshot_id: int | None
    first_row_id: int | None


class ManifestCache:
    """Decoded manifests, the least recently used given up beyond about `max_bytes`.

    Safe to share between threads and plans: all that it hands out is immutable.
    """

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self._store: Hashable = None
        self._lists: _Lru[tuple[Hashable, ListKey], tuple[ManifestFile, ...]] = _Lru(max_bytes // 8)
        self._manifests: _Lru[tuple[Hashable, ManifestKey], tuple[ManifestEntry, ...]] = _Lru(
            max_bytes - max_bytes // 8
        )

    def within(self, store: Hashable) -> ManifestCache:
        """Return the same cache as it is seen by tables of one store (`StorageConfig.store`).

        Whoever plans tables of several stores needs it: copies of a table in two of them spell
        their locations alike.
        """
        view = copy(self)
        view._store = store
        return view

    def manifest_list(self, key: ListKey) -> tuple[ManifestFile, ...] | None:
        return self._lists.get((self._store, key))

    def keep_manifest_list(self, key: ListKey, manifests: tuple[ManifestFile, ...]) -> None:
        size_bytes = _MANIFEST_FILE_BYTES * (1 + len(manifests))
        self._lists.put((self._store, key), manifests, size_bytes)

    def entries(self, key: ManifestKey) -> tuple[ManifestEntry, ...] | None:
        return self._manifests.get((self._store, key))

    def keep_entries(self, key: ManifestKey, entries: tuple[ManifestEntry, ...]) -> None:
        size_bytes = sum(map(_entry_bytes, entries), _ENTRY_BYTES)
        self._manifests.put((self._store, key), entries, size_bytes)

    @property
    def size_bytes(self) -> int:
        """About how much memory the cache holds."""
        return self._lists.size_bytes + self._manifests.size_bytes

    @property
    def hits(self) -> int:
        return self._lists.hits + self._manifests.hits

    @property
    def misses(self) -> int:
        return self._lists.misses + self._manifests.misses


def _entry_bytes(entry: ManifestEntry) -> int:
    m = entry.file.metrics
    statistics = (
        len(m.column_sizes)
        + len(m.value_counts)
        + len(m.null_value_counts)
        + len(m.nan_value_counts)
        + len(m.lower_bounds)
        + len(m.upper_bounds)
    )
    return _ENTRY_BYTES + _STATISTIC_BYTES * statistics


class _Lru(Generic[K, V]):
    """A dictionary bounded by the sum of its values' sizes. An oversized value is not kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._items: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size_bytes = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._items.get(key)
            if found is None:
                self.misses += 1
                return None
            self.hits += 1
            self._items.move_to_end(key)
            return found[0]

    def put(self, key: K, value: V, size_bytes: int) -> None:
        with self._lock:
            replaced = self._items.pop(key, None)
            if replaced is not None:
                self.size_bytes -= replaced[1]
            if size_bytes > self._max_bytes:
                return
            self._items[key] = value, size_bytes
            self.size_bytes += size_bytes
            while self.size_bytes > self._max_bytes:
                _, (_, freed) = self._items.popitem(last=False)
                self.size_bytes -= freed
