"""What was made of statements lately, so that one that comes again is not worked on again.

Trees take a hundred times the memory of the text that they are made of, and more. So it is texts
that are counted, and not statements: a thousand short ones are kept, or a few with long lists.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

CHARACTERS = 1 << 18
"""Trees of so much text take 30 MB with lists of numbers, and 200 with the shortest names."""


class Remembered(Generic[K, V]):
    """What was made last, of texts of `characters` in all. Safe to use from several threads."""

    def __init__(self, characters: int = CHARACTERS) -> None:
        self._most = characters
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._characters = 0

    def get(self, key: K, characters: int, make: Callable[[], V]) -> V:
        """Return what was made for `key`, a text of so many `characters`, or `make` it. What that
        raises is not remembered; two threads may make the same."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept[0]
        made = make()
        with self._lock:
            if key not in self._kept and characters <= self._most:
                self._kept[key] = made, characters
                self._characters += characters
                while self._characters > self._most:
                    _, (_, freed) = self._kept.popitem(last=False)
                    self._characters -= freed
        return made
