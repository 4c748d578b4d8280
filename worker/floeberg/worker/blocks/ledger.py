"""Which blocks are kept, and which are worth keeping.

A block that there is room for is kept. When the room is full, a new one takes the place of the one
that was used least recently, and only if it has been asked for more often lately: a scan of
everything, which asks for each block once, throws out nothing that is asked for again and again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from floeberg.worker.blocks.frequencies import Frequencies


class Ledger:
    """The blocks of a cache of `max_bytes`, by their keys, with their bytes on disk.

    It knows of those that other processes keep in the same place what it was told. Safe to share
    between threads.
    """

    def __init__(self, max_bytes: int, block_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._frequencies = Frequencies(max(1, max_bytes // block_bytes))
        self._sizes: OrderedDict[bytes, int] = OrderedDict()
        self.size_bytes = 0

    def ask(self, key: bytes) -> None:
        """Note that the block was asked for."""
        with self._lock:
            self._frequencies.add(key)
            if key in self._sizes:
                self._sizes.move_to_end(key)

    def admits(self, key: bytes, size: int) -> bool:
        """Say whether the block, of `size` bytes, is to be kept."""
        with self._lock:
            if key in self._sizes or self.size_bytes + size <= self._max_bytes:
                return True
            if size > self._max_bytes or not self._sizes:
                return False
            victim = next(iter(self._sizes))
            return self._frequencies.of(key) > self._frequencies.of(victim)

    def keep(self, key: bytes, size: int) -> list[bytes]:
        """Note that the block is kept; return those that have to go for it."""
        with self._lock:
            self._set(key, size)
            victims: list[bytes] = []
            while self.size_bytes > self._max_bytes:
                victim, victim_size = self._sizes.popitem(last=False)
                self.size_bytes -= victim_size
                victims.append(victim)
            return victims

    def find(self, key: bytes, size: int) -> None:
        """Note that the block is kept, as another process did, it may be."""
        with self._lock:
            self._set(key, size)

    def drop(self, key: bytes) -> None:
        """Note that the block is not kept."""
        with self._lock:
            self.size_bytes -= self._sizes.pop(key, 0)

    def replace(self, blocks: Iterable[tuple[bytes, int]]) -> list[bytes]:
        """Note that these blocks are kept, and no others, with their sizes and the least recently
        used first; return those that are too many.

        One that is heard of for the first time counts as asked for once: it has been.
        """
        with self._lock:
            before, self._sizes = self._sizes, OrderedDict(blocks)
            for key in self._sizes:
                if key not in before and not self._frequencies.of(key):
                    self._frequencies.add(key)
            self.size_bytes = sum(self._sizes.values())
            victims: list[bytes] = []
            while self.size_bytes > self._max_bytes:
                victim, size = self._sizes.popitem(last=False)
                self.size_bytes -= size
                victims.append(victim)
            return victims

    def _set(self, key: bytes, size: int) -> None:
        self.size_bytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        self._sizes.move_to_end(key)
