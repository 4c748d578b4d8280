"""Storage that stops asking once nobody waits for the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from floeberg.protocol.errors import FloebergError
from floeberg.protocol.storage import Storage


class InterruptibleStorage:
    """Passes requests on, and calls `check` before each: `check` raises when it is over.

    A stream notices a cancelled call only when it has a batch to give, and a plan at its end. Under
    a filter that leaves nothing, either would ask on for a client that is gone.
    """

    def __init__(self, inner: Storage, check: Callable[[], None]) -> None:
        self._inner = inner
        self._check = check

    def read(self, location: str) -> bytes:
        self._check()
        return self._inner.read(location)

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self._check()
        return self._inner.read_ranges(location, ranges)

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> list[list[bytes] | FloebergError]:
        self._check()
        return self._inner.read_many(requests)

    def size(self, location: str) -> int:
        self._check()
        return self._inner.size(location)

    def open(self, location: str) -> pa.NativeFile:
        self._check()
        return self._inner.open(location)

    def list(self, location: str) -> Sequence[str]:
        self._check()
        return self._inner.list(location)

    def is_directory(self, location: str) -> bool:
        self._check()
        return self._inner.is_directory(location)

    def is_local(self, location: str) -> bool:
        return self._inner.is_local(location)
