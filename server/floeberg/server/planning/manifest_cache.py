"""Remember decoded manifests between plans.

Manifest lists and manifests never change once written, so what was decoded stays right for as long
as it is kept. Snapshots share most of their manifests: a new one costs only what is new in it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from copy import copy
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from floeberg.protocol.files import ManifestContent, ManifestFile
from floeberg.protocol.manifests import Segment
from floeberg.server.planning.fair_pool import Job
from floeberg.server.planning.manifest_list import ManifestList
from floeberg.server.planning.segment_files import FileKey, SegmentFiles

DEFAULT_CACHE_BYTES = 512 * 1024 * 1024

_MERGED_ONCE = 4096

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
    length: int
    content: ManifestContent
    spec_id: int
    sequence_number: int
    added_snapshot_id: int | None
    first_row_id: int | None

    @classmethod
    def of(cls, manifest: ManifestFile, table_uuid: str | None) -> ManifestKey:
        return cls(
            table_uuid,
            manifest.location,
            manifest.length,
            manifest.content,
            manifest.spec_id,
            manifest.sequence_number,
            manifest.added_snapshot_id,
            manifest.first_row_id,
        )


_Keys = ManifestKey | bytes


class Origin(Enum):
    """Where a plan has a segment from."""

    MEMORY = "memory"
    DISK = "disk"
    STORAGE = "storage"


class Loaded(NamedTuple):
    segment: Segment
    origin: Origin
    fetched_bytes: int = 0


class ManifestCache:
    """Decoded manifests, the least recently used given up beyond about `max_bytes`.

    With `files`, what is not in memory is looked for there, and what had to be decoded is written
    there. Safe to share between threads and plans: all that it hands out is immutable.
    """

    def __init__(
        self, max_bytes: int = DEFAULT_CACHE_BYTES, files: SegmentFiles | None = None
    ) -> None:
        self._store: Hashable = None
        self.files = files
        self._lists: _Lru[tuple[Hashable, ListKey], ManifestList] = _Lru(max_bytes // 8)
        self._segments: _Lru[tuple[Hashable, _Keys], Segment] = _Lru(max_bytes - max_bytes // 8)
        self._merged_once = _Recent(_MERGED_ONCE)
        self._under_way = _UnderWay()

    def within(self, store: Hashable) -> ManifestCache:
        """Return the same cache as it is seen by tables of one store (`StorageConfig.store`).

        Whoever plans tables of several stores needs it: copies of a table in two of them spell
        their locations alike.
        """
        view = copy(self)
        view._store = store
        return view

    def manifest_list(self, key: ListKey) -> ManifestList | None:
        return self._lists.get((self._store, key))

    def keep_manifest_list(self, key: ListKey, manifests: ManifestList) -> None:
        self._lists.put((self._store, key), manifests, manifests.memory_bytes)

    def segments(self, keys: Sequence[ManifestKey]) -> list[Segment | None]:
        """Return what is remembered of manifests, None for what is not."""
        return self._segments.get_many([(self._store, key) for key in keys])

    def segment_if_kept(self, key: ManifestKey) -> Segment | None:
        """Return the segment of one manifest; counts neither as a hit nor as a miss."""
        return self._segments.peek((self._store, key))

    def keep_segment(self, key: ManifestKey, segment: Segment) -> None:
        self._segments.put((self._store, key), segment, segment.memory_bytes)

    def merged(self, digests: bytes, manifests: int) -> Segment | None:
        """Return what is remembered of several manifests together, by all their digests.

        It counts as a hit of each of them, and else not at all: they are asked for one by one.
        """
        return self._segments.get_if_kept((self._store, digests), hits=manifests)

    def keep_merged(self, digests: bytes, segment: Segment) -> None:
        """Remember manifests together when this is the second time that a plan has them so.

        What a filter has made of the manifest list may never come again.
        """
        whole = self._store, digests
        if self._merged_once.has_or_puts(whole):
            self._segments.put(whole, segment, segment.memory_bytes + len(digests))

    def segment_from_disk(self, key: ManifestKey) -> Segment | None:
        """Return the segment of one manifest, and keep it in memory, if it is in a file."""
        file_key = self._file_key(key)
        if self.files is None or file_key is None:
            return None
        segment = self.files.get(file_key)
        if segment is not None:
            self.keep_segment(key, segment)
        return segment

    def keep_on_disk(self, key: ManifestKey, segment: Segment) -> None:
        file_key = self._file_key(key)
        if self.files is not None and file_key is not None:
            self.files.put(file_key, segment)

    def _file_key(self, key: ManifestKey) -> FileKey | None:
        """Without a UUID, a table may have been made anew at its location since a file was written:
        then there is no key.
        """
        if key.table_uuid is None:
            return None
        return FileKey.of(key.location, self._store, *key)

    def join(self, key: ManifestKey, own: Job[Loaded]) -> tuple[Job[Loaded], bool]:
        """Return the job by which `key` is being loaded, and whether that is one's `own`, because
        nobody else is at it; call `leave` when done with it.
        """
        return self._under_way.join((self._store, key), own)

    def leave(self, key: ManifestKey) -> None:
        """The last one that leaves a job cancels it, if it was not begun."""
        self._under_way.leave((self._store, key))

    @property
    def size_bytes(self) -> int:
        """About how much memory the cache holds."""
        return self._lists.size_bytes + self._segments.size_bytes

    @property
    def hits(self) -> int:
        return self._lists.hits + self._segments.hits

    @property
    def misses(self) -> int:
        return self._lists.misses + self._segments.misses

    @property
    def evictions(self) -> int:
        return self._lists.evictions + self._segments.evictions


class _UnderWay:
    """What plans are loading, so that what several of them want at a time is loaded once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[Hashable, tuple[Job[Loaded], int]] = {}

    def join(self, key: Hashable, own: Job[Loaded]) -> tuple[Job[Loaded], bool]:
        with self._lock:
            job, plans = self._jobs.get(key, (own, 0))
            self._jobs[key] = job, plans + 1
            return job, job is own

    def leave(self, key: Hashable) -> None:
        with self._lock:
            job, plans = self._jobs.pop(key)
            if plans > 1:
                self._jobs[key] = job, plans - 1
                return
        job.cancel()


class _Recent:
    """The keys, or rather their hashes, that were put last."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._hashes: OrderedDict[int, None] = OrderedDict()

    def has_or_puts(self, key: Hashable) -> bool:
        """Say whether the key was there; it is from now on."""
        with self._lock:
            known = hash(key) in self._hashes
            self._hashes[hash(key)] = None
            self._hashes.move_to_end(hash(key))
            if len(self._hashes) > self._count:
                self._hashes.popitem(last=False)
            return known


class _Lru(Generic[K, V]):
    """A dictionary bounded by the sum of its values' sizes. An oversized value is not kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._items: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size_bytes = 0
        self.hits = 0
        self.misses = 0
        self.evictions = 0

    def get(self, key: K) -> V | None:
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[K]) -> list[V | None]:
        """Return what is kept of each; in the order of use, the last one was used last."""
        found: list[V | None] = []
        with self._lock:
            for key in keys:
                item = self._items.get(key)
                if item is not None:
                    self._items.move_to_end(key)
                found.append(None if item is None else item[0])
            hits = sum(value is not None for value in found)
            self.hits += hits
            self.misses += len(keys) - hits
        return found

    def get_if_kept(self, key: K, hits: int) -> V | None:
        """Return what is kept, counting as many hits; nothing is counted where nothing is kept."""
        with self._lock:
            item = self._items.get(key)
            if item is None:
                return None
            self._items.move_to_end(key)
            self.hits += hits
            return item[0]

    def peek(self, key: K) -> V | None:
        with self._lock:
            item = self._items.get(key)
            return None if item is None else item[0]

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
                self.evictions += 1
