"""Storage that was asked beforehand, for what opening files fetches first: many in one round."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pyarrow as pa

from floeberg.process.background import Background, Job
from floeberg.process.storage.abandonable import Leavable
from floeberg.process.storage.ranges import Range
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.storage import Storage

Part = tuple[str, Range]
"""A location, and the bytes of it."""

_Answers = list[list[bytes] | FloebergError]


class PrimedStorage:
    """Passes requests on, but for those that `prime` made already: each of these is answered once
    from what came. Implements `Storage`; safe to use from several threads.
    """

    def __init__(self, inner: Storage, background: Background) -> None:
        self._inner = inner
        self._background = background
        self._lock = threading.Lock()
        self._primed: dict[Part, tuple[Job[_Answers], int]] = {}

    def check(self) -> None:
        """Raise when nobody waits for this storage any more."""
        if isinstance(self._inner, Leavable):
            self._inner.check()

    def prime(self, parts: Sequence[Part]) -> None:
        """Ask for `parts` in the background, all at once, to be read by exactly these ranges."""
        with self._lock:
            wanted = [part for part in dict.fromkeys(parts) if part not in self._primed]
            if not wanted:
                return
            requests = [(location, [place]) for location, place in wanted]
            job: Job[_Answers] = Job(lambda: self._inner.read_many(requests))
            for i, part in enumerate(wanted):
                self._primed[part] = (job, i)
        self._background.submit(job)

    def has_come(self, parts: Sequence[Part]) -> bool:
        """Say whether reading `parts` would wait for none that was asked for."""
        with self._lock:
            jobs = [self._primed[part][0] for part in parts if part in self._primed]
        return all(job.is_done for job in jobs)

    def forget(self, parts: Sequence[Part]) -> None:
        """Give up those of `parts` that nobody has read."""
        with self._lock:
            for part in parts:
                self._primed.pop(part, None)

    def close(self) -> None:
        """Give up everything that was asked for."""
        with self._lock:
            for job, _ in self._primed.values():
                job.drop()
            self._primed.clear()

    def read(self, location: str) -> bytes:
        return self._inner.read(location)

    def read_ranges(self, location: str, ranges: Sequence[Range]) -> list[bytes]:
        primed = None
        if len(ranges) == 1:
            with self._lock:
                primed = self._primed.pop((location, ranges[0]), None)
        if primed is None:
            return self._inner.read_ranges(location, ranges)
        job, place = primed
        answers = job.result()
        found, answers[place] = answers[place], []  # nobody else reads it
        if isinstance(found, FloebergError):
            raise found
        return found

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[Range]]]
    ) -> list[list[bytes] | FloebergError]:
        return self._inner.read_many(requests)

    def size(self, location: str) -> int:
        return self._inner.size(location)

    def open(self, location: str) -> pa.NativeFile:
        return self._inner.open(location)

    def list(self, location: str) -> Sequence[str]:
        return self._inner.list(location)

    def is_directory(self, location: str) -> bool:
        return self._inner.is_directory(location)

    def is_local(self, location: str) -> bool:
        return self._inner.is_local(location)
