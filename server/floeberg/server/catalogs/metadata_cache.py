"""Parsed table metadata, kept while a table has not changed.

A metadata file is never rewritten, but a location may be used again: a table in a file-system
warehouse that is dropped and made again starts over at `v1.metadata.json`. So only a name that
holds a UUID is trusted without reading the file, and any other by its content.

Asking for a file's size and time instead would not do. On a disk, a file that is written twice
within a tick of the clock may have the same of both, and reading it costs little more than asking.
In an object store an ETag would tell, but asking for it is a request like reading is, and takes as
long but for the largest metadata. What takes time is parsing, and that is spared either way.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from threading import Lock
from typing import Protocol, runtime_checkable

from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.storage import Storage

_UUID_IN_NAME = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}[^/]*\Z", re.IGNORECASE)
# a table's metadata is kilobytes to a few megabytes: parsing takes the time, so few entries pay
_MAX_ENTRIES = 64
_Key = str | bytes  # a location, or a digest of the content


class MetadataCache:
    """The metadata that was used last, by where it is. Safe to use from several threads; two that
    miss at once both parse. What was not parsed is a hit, though it may have been read."""

    def __init__(self, max_entries: int = _MAX_ENTRIES) -> None:
        self.hits = 0
        self.misses = 0
        self._max_entries = max_entries
        self._lock = Lock()
        self._entries: OrderedDict[_Key, TableMetadata] = OrderedDict()

    def load(self, storage: Storage, location: str) -> TableMetadata:
        """Return the metadata at `location`; raises as `load_metadata` does."""
        if (known := self._get(_by_name(location))) is not None:
            return known
        raw = storage.read(location)
        return self._parsed(raw, location, location)

    def parse(self, document: object, location: str | None, where: str) -> TableMetadata:
        """Return the metadata in a JSON document that a catalog sent along, written at `location`;
        errors call it `where`."""
        if (known := self._get(_by_name(location))) is not None:
            return known
        return self._parsed(json.dumps(document).encode(), location, where)

    def _parsed(self, raw: bytes, location: str | None, where: str) -> TableMetadata:
        key = _by_name(location) or _by_content(raw)
        known = self._get(key)
        if known is not None:
            return known
        with self._lock:
            self.misses += 1
        return self._put(key, TableMetadata.parse(raw, where))

    def _get(self, key: _Key | None) -> TableMetadata | None:
        if key is None:
            return None
        with self._lock:
            metadata = self._entries.get(key)
            if metadata is not None:
                self._entries.move_to_end(key)
                self.hits += 1
            return metadata

    def _put(self, key: _Key, metadata: TableMetadata) -> TableMetadata:
        with self._lock:
            self._entries[key] = metadata
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
        return metadata


@runtime_checkable
class RemembersMetadata(Protocol):
    """A catalog that has a cache."""

    metadata_cache: MetadataCache


def _by_name(location: str | None) -> _Key | None:
    return location if location is not None and _UUID_IN_NAME.search(location) else None


def _by_content(raw: bytes) -> _Key:
    return hashlib.blake2b(raw, digest_size=16).digest()
