"""Storage that is slow for as long as a test wants it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pyarrow as pa

from floeberg.process.storage import open_storage
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.storage import Storage, StorageConfig


class Holdup:
    """Keeps requests for locations with `part` in them from ending until `release`.

    `storage` gives storage over real files that is held up so, and that says it is far away.
    """

    def __init__(self, part: str) -> None:
        self._part = part
        self._released = threading.Event()
        self._lock = threading.Lock()
        self.held = 0
        """How many requests wait now."""

    def storage(self, config: StorageConfig) -> Storage:
        return _HeldStorage(open_storage(config), self)

    def release(self) -> None:
        self._released.set()

    def pass_by(self, location: str) -> None:
        if self._part not in location:
            return
        with self._lock:
            self.held += 1
        self._released.wait()
        with self._lock:
            self.held -= 1


class _HeldStorage:
    """Implements `Storage`."""

    def __init__(self, inner: Storage, holdup: Holdup) -> None:
        self._inner = inner
        self._holdup = holdup

    def read(self, location: str) -> bytes:
        self._holdup.pass_by(location)
        return self._inner.read(location)

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self._holdup.pass_by(location)
        return self._inner.read_ranges(location, ranges)

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> list[list[bytes] | FloebergError]:
        for location, _ in requests:
            self._holdup.pass_by(location)
        return self._inner.read_many(requests)

    def size(self, location: str) -> int:
        self._holdup.pass_by(location)
        return self._inner.size(location)

    def open(self, location: str) -> pa.NativeFile:
        self._holdup.pass_by(location)
        return self._inner.open(location)

    def list(self, location: str) -> Sequence[str]:
        self._holdup.pass_by(location)
        return self._inner.list(location)

    def is_directory(self, location: str) -> bool:
        self._holdup.pass_by(location)
        return self._inner.is_directory(location)

    def is_local(self, location: str) -> bool:
        return False
