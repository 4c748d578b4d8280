"""Storage of which parts are on this machine's disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO

import pyarrow as pa

from floeberg.process.storage.abandonable import Leavable
from floeberg.process.storage.ranges import Range
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.storage import Storage
from floeberg.worker.blocks.cache import BlockCache
from floeberg.worker.blocks.objects import PlannedObjects, StoredObject


class BlockStorage:
    """Answers for ranges of `objects` out of `blocks`, and asks `inner` for the rest, which is then
    kept; implements `Storage`, safe to use from several threads.

    Passed on as they are: requests for other objects, for whole ones, and for local files, which
    are as near as the blocks.
    """

    def __init__(self, inner: Storage, blocks: BlockCache, objects: PlannedObjects) -> None:
        self._inner = inner
        self._blocks = blocks
        self._objects = objects

    def check(self) -> None:
        """Raise when nobody waits for this storage any more."""
        if isinstance(self._inner, Leavable):
            self._inner.check()

    def forget(self, location: str) -> None:
        """Keep nothing of an object, which has proved to be damaged."""
        found = self._object(location)
        if found is not None:
            self._blocks.forget(found)

    def read(self, location: str) -> bytes:
        return self._inner.read(location)

    def read_ranges(self, location: str, ranges: Sequence[Range]) -> list[bytes]:
        [found] = self.read_many([(location, ranges)])
        if isinstance(found, FloebergError):
            raise found
        return found

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[Range]]]
    ) -> list[list[bytes] | FloebergError]:
        self.check()
        lookups = [
            _Lookup(self._blocks, self._object(location), ranges) for location, ranges in requests
        ]
        incomplete = [i for i, lookup in enumerate(lookups) if lookup.missing]
        fetched: list[list[bytes] | FloebergError] = []
        if incomplete:
            asked = [(requests[i][0], lookups[i].missing) for i in incomplete]
            fetched = self._inner.read_many(asked)
        came = dict(zip(incomplete, fetched, strict=True))
        return [lookup.answer(came.get(i, [])) for i, lookup in enumerate(lookups)]

    def size(self, location: str) -> int:
        # asked for when it is in doubt: nothing is kept of what is not as its task says
        self.forget(location)
        self._objects.forget(location)
        return self._inner.size(location)

    def open(self, location: str) -> pa.NativeFile:
        return self._inner.open(location)

    def list(self, location: str) -> Sequence[str]:
        return self._inner.list(location)

    def is_directory(self, location: str) -> bool:
        return self._inner.is_directory(location)

    def is_local(self, location: str) -> bool:
        return self._inner.is_local(location)

    def _object(self, location: str) -> StoredObject | None:
        return None if self._inner.is_local(location) else self._objects.at(location)


class _Lookup:
    """What is kept of some ranges of an object; `missing` are the ranges to ask the store for."""

    def __init__(
        self, blocks: BlockCache, of: StoredObject | None, ranges: Sequence[Range]
    ) -> None:
        self._blocks = blocks
        self._of = of
        self._found = [_Found(blocks, of, start, length) for start, length in ranges]
        self.missing = [part for found in self._found for part in found.missing]

    def answer(self, fetched: Sequence[bytes] | FloebergError) -> list[bytes] | FloebergError:
        """Return the bytes of the ranges, where `fetched` are those of what was missing, which are
        kept if they are all that was asked for."""
        if isinstance(fetched, FloebergError):
            return fetched
        parts = iter(fetched)
        answers = [found.completed(parts) for found in self._found]
        if self._of is not None and fetched:
            came = zip(self.missing, fetched, strict=True)
            whole = [(start, data) for (start, length), data in came if len(data) == length]
            self._blocks.put(self._of, whole)
        return answers


class _Found:
    """What is kept of one range."""

    def __init__(
        self, blocks: BlockCache, of: StoredObject | None, start: int, length: int
    ) -> None:
        self._start, self._end = start, start + length
        self._bytes: BytesIO | None = None
        self.missing: list[Range] = [(start, length)]
        if of is None or start < 0 or length < 0:
            return  # there is no such range: the store says so in its own words
        filled = _blank(length)
        with filled.getbuffer() as target:
            missing = blocks.fill(of, start, target)
        if missing != self.missing:
            self._bytes, self.missing = filled, missing

    def completed(self, fetched: Iterator[bytes]) -> bytes:
        """Return the range, as far as the object goes, where the next of `fetched` are the bytes of
        what is missing."""
        if self._bytes is None:
            return next(fetched)
        end = self._end
        for (start, length), part in zip(self.missing, fetched, strict=False):
            if start < end:
                self._bytes.seek(start - self._start)
                self._bytes.write(part)
                end = end if len(part) == length else start + len(part)
        self._bytes.truncate(end - self._start)
        return self._bytes.getvalue()


def _blank(length: int) -> BytesIO:
    """Return `length` bytes to be filled in, which can then be taken without a copy: new memory
    costs more than reading does.
    """
    blank = BytesIO()
    if length > 0:
        blank.seek(length - 1)
        blank.write(b"\0")
    return blank
