"""What was loaded from files, kept while there is room, for all who ask for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Protocol, TypeVar, cast

from floeberg.protocol.errors import Unavailable

DEFAULT_CACHE_BYTES = 256 << 20

# how soon a caller that waits for another's load notices that nobody waits for it
_CHECK_SECONDS = 0.05


class Sized(Protocol):
    @property
    def size_bytes(self) -> int: ...


T = TypeVar("T", bound=Sized)


class LoadingCache:
    """A cache bounded in bytes, least recently used first out. Safe to share between threads.

    When several threads ask for one thing at once, one loads it and the others wait for it.
    """

    def __init__(self, max_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, Future[Sized]] = OrderedDict()
        self._bytes = 0
        self.hits = 0
        """How often something was there, or being loaded by another thread."""
        self.misses = 0
        self.evictions = 0
        """How much was forgotten to make room."""

    def get(
        self, key: Hashable, load: Callable[[], T], check: Callable[[], None] = lambda: None
    ) -> T:
        """Return what `load` gave for `key`, calling it only when that is not in the cache.

        A `load` that raises leaves nothing behind; whoever waited for it gets its error too, unless
        that may pass: a load ends early when the client of its own stream has gone. `key` decides
        the type of what is kept, so one key always goes with one kind of `load`. `check` is called
        several times a second while another thread loads; what it raises comes out of here.
        """
        while True:
            with self._lock:
                found = self._entries.get(key)
                entry: Future[Sized] = Future() if found is None else found
                self._entries[key] = entry
                self._entries.move_to_end(key)
                if found is None:
                    self.misses += 1
                else:
                    self.hits += 1
            if found is None:
                return self._load(key, entry, load)
            while not _is_done(entry):
                check()
            try:
                return cast(T, entry.result())
            except Unavailable:
                continue  # our own load may fare better

    def find(self, key: Hashable) -> Sized | None:
        """Return what is kept under `key`; None where there is nothing, or not yet."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or not entry.done():
                return None
            self._entries.move_to_end(key)
            self.hits += 1
        return entry.result()

    def holds(self, key: Hashable) -> bool:
        """Say whether `key` is in the cache, or being loaded."""
        with self._lock:
            return key in self._entries

    def discard(self, key: Hashable) -> None:
        """Forget what is kept under `key`, if anything is: it has proved to be wrong."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.done():
                del self._entries[key]
                self._bytes -= entry.result().size_bytes

    def _load(self, key: Hashable, entry: Future[Sized], load: Callable[[], T]) -> T:
        try:
            value = load()
        except BaseException as exc:
            with self._lock:
                del self._entries[key]
            entry.set_exception(exc)
            raise
        with self._lock:
            entry.set_result(value)
            if value.size_bytes > self._max_bytes:
                del self._entries[key]  # all others would go for it, and then itself
            else:
                self._bytes += value.size_bytes
                self._make_room()
        return value

    def _make_room(self) -> None:
        """Forget the oldest entries until the rest fits; those still loading have no size yet."""
        while self._bytes > self._max_bytes:
            oldest = next(key for key, entry in self._entries.items() if entry.done())
            self._bytes -= self._entries.pop(oldest).result().size_bytes
            self.evictions += 1

    @property
    def size_bytes(self) -> int:
        """Bytes of what is kept."""
        return self._bytes


def _is_done(entry: Future[Sized]) -> bool:
    """Say whether an entry is loaded, or has failed, within a moment."""
    try:
        entry.exception(_CHECK_SECONDS)
    except TimeoutError:
        return False
    return True
