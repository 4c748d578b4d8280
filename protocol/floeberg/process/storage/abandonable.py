"""Storage whose requests can be left, however long they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from floeberg.protocol.errors import FloebergError
from floeberg.protocol.storage import Storage

T = TypeVar("T")


class Ask(Protocol):
    def __call__(self, request: Callable[[], T], /) -> T:
        """Return what `request` returns, or raise what it raises, unless it is left before."""
        ...


@runtime_checkable
class Leavable(Protocol):
    """What can say that it is not to be waited for any more."""

    def check(self) -> None:
        """Raise when nobody waits any more."""
        ...


class AbandonableStorage:
    """Has requests made by `ask`, which may leave them; implements `Storage`.

    Nothing can stop a thread that waits for a socket. So other threads do the waiting; one that is
    left goes on until its request ends or storage's own deadline passes. Local files are read by
    the caller, after a `check`: there is nothing to wait for.
    """

    def __init__(self, inner: Storage, ask: Ask, check: Callable[[], None]) -> None:
        self._inner = inner
        self._ask_for = ask
        self._check = check

    def check(self) -> None:
        self._check()

    def read(self, location: str) -> bytes:
        return self._ask(location, lambda: self._inner.read(location))

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return self._ask(location, lambda: self._inner.read_ranges(location, ranges))

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> list[list[bytes] | FloebergError]:
        if all(self._inner.is_local(location) for location, _ in requests):
            self._check()
            return self._inner.read_many(requests)
        return self._ask_for(lambda: self._inner.read_many(requests))

    def size(self, location: str) -> int:
        return self._ask(location, lambda: self._inner.size(location))

    def open(self, location: str) -> pa.NativeFile:
        return self._ask(location, lambda: self._inner.open(location))

    def list(self, location: str) -> Sequence[str]:
        return self._ask(location, lambda: self._inner.list(location))

    def is_directory(self, location: str) -> bool:
        return self._ask(location, lambda: self._inner.is_directory(location))

    def is_local(self, location: str) -> bool:
        return self._inner.is_local(location)

    def _ask(self, location: str, request: Callable[[], T]) -> T:
        if self._inner.is_local(location):
            self._check()
            return request()
        return self._ask_for(request)
