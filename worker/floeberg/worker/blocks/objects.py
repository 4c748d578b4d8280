"""What a block is a part of: an object in a store, which never changes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from floeberg.protocol.files import DataFile, DeleteFile
from floeberg.protocol.tasks import FileScanTask
from floeberg.worker.blocks.layout import BLOCK_BYTES

_SAYS_WHICH_STORE = (
    "AWS_CONFIG_FILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_PROFILE",
    "AWS_REGION",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "STORAGE_EMULATOR_HOST",
)


_MOST_BYTES = 64 << 30
"""The largest object of which blocks are kept. Sizes are what manifests say: to forget an object
takes time for each of its blocks, which would never end for one that is said to be of exabytes."""


class StoredObject(NamedTuple):
    """An object: a digest of where it lies, and its size in bytes, which is in the digest too."""

    digest: bytes
    size: int

    @classmethod
    def of(cls, store: Hashable, location: str, size: int) -> StoredObject:
        """Return the object at `location` of a store, which the repr of `store` tells from
        others."""
        whole = [BLOCK_BYTES, repr(store), location, size]
        return cls(hashlib.sha256(json.dumps(whole).encode()).digest(), size)

    def block(self, index: int) -> bytes:
        """Return the key of one of its blocks."""
        return hashlib.sha256(self.digest + index.to_bytes(8, "little")).digest()

    @property
    def blocks(self) -> range:
        return range(-(-self.size // BLOCK_BYTES))


class PlannedObjects:
    """The objects of a plan's tasks, by their locations: as many tasks are looked at as it takes.

    Safe to share between threads.
    """

    def __init__(self, store: Hashable, tasks: Sequence[FileScanTask]) -> None:
        self._store = store
        self._files = _files(tasks)
        self._lock = threading.Lock()
        self._known: dict[str, StoredObject | None] = {}

    def at(self, location: str) -> StoredObject | None:
        """Return the object at `location`; None where no task names it, where it was forgotten, and
        where its size is none that is kept."""
        with self._lock:
            while location not in self._known:
                file = next(self._files, None)
                if file is None:
                    return None
                if file.location not in self._known:
                    self._known[file.location] = self._object(file)
            return self._known[location]

    def _object(self, file: DataFile | DeleteFile) -> StoredObject | None:
        if not 0 <= file.size_bytes <= _MOST_BYTES:
            return None
        return StoredObject.of(self._store, file.location, file.size_bytes)

    def forget(self, location: str) -> None:
        """Know nothing of the object from now on: it is not what tasks say."""
        with self._lock:
            self._known[location] = None


def environment_store(environ: Mapping[str, str]) -> Hashable:
    """Return what the environment says of the stores that locations lead to."""
    return tuple((name, environ[name]) for name in _SAYS_WHICH_STORE if environ.get(name))


def _files(tasks: Sequence[FileScanTask]) -> Iterator[DataFile | DeleteFile]:
    for task in tasks:
        yield task.data_file
        yield from task.delete_files
