"""A file over byte ranges of an object: what is needed is fetched together, before it is read."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from floeberg.process.storage.ranges import Range
from floeberg.protocol.storage import Storage
from floeberg.worker.files.windows import Ahead, Room, Windows

TAIL_BYTES = 512 << 10
"""Holds the footer of most files, and all of a small one."""


def tail_range(size: int) -> Range:
    """Return where the tail of an object of `size` bytes lies."""
    start = max(0, size - TAIL_BYTES)
    return start, size - start


class RangeFile(io.RawIOBase):
    """A seekable file over the object at `location`, which has `size` bytes.

    What is expected is fetched a window at a time, before it is read where `ahead` allows. Reads
    outside of it go to storage, `read_ahead` bytes at least; the last two of those are kept. Not
    safe to share between threads.
    """

    def __init__(
        self,
        storage: Storage,
        location: str,
        size: int,
        read_ahead: int = 0,
        ahead: Ahead | None = None,
        room: Room | None = None,
    ) -> None:
        self._storage = storage
        self._location = location
        self._size = size
        self._read_ahead = read_ahead
        self._ahead = ahead
        self._position = 0
        self._room = room or (Room(ahead.held_bytes) if ahead else Room())
        # no method: what is fetched would keep the file, and the file what is fetched
        self._fetch = partial(storage.read_ranges, location)
        self._windows = Windows(self._fetch, ahead, self._room)
        self._beside: list[RangeFile] = []
        self.tail = Part(size, b"")
        """The end of the file, which is kept as long as the file is open."""
        self._last: list[Part] = []

    def fetch_tail(self) -> None:
        start, length = tail_range(self._size)
        self.tail = self._fetch_part(start, length)

    def expect(self, windows: Sequence[Sequence[Range]]) -> None:
        """Say what will be read, in order and once: each window is one round of requests."""
        self._windows.expect(self._before_tail(windows))

    def _before_tail(self, windows: Sequence[Sequence[Range]]) -> list[list[Range]]:
        end = self.tail.start
        return [[(s, min(n, end - s)) for s, n in window if s < end] for window in windows]

    def close(self) -> None:
        """Give up what is held, and what is on its way."""
        for other in self._beside:
            other.close()
        self._windows.forget()
        self._last.clear()
        super().close()

    @property
    def unread_bytes(self) -> int:
        """Bytes that are expected to be read and have not been."""
        return self._windows.unread_bytes + sum(other.unread_bytes for other in self._beside)

    def beside(self) -> RangeFile:
        """Return another file over the same object, which expects windows of its own.

        It shares this one's room, and is closed with it at the latest.
        """
        other = RangeFile(
            self._storage, self._location, self._size, self._read_ahead, self._ahead, self._room
        )
        other.tail = self.tail
        self._beside.append(other)
        return other

    def for_arrow(self) -> pa.NativeFile:
        """Return this file as pyarrow reads it, at the same position, without copying the bytes."""
        return pa.PythonFile(_Uncopied(self), mode="r")

    # --- what a file does -------------------------------------------------------------------------

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def size(self) -> int:
        return self._size

    def read(self, length: int | None = -1) -> bytes:
        """Return `length` bytes, fewer only at the end of the file."""
        return self.read_buffer(-1 if length is None else length).to_pybytes()

    def read_buffer(self, length: int) -> pa.Buffer:
        """Return `length` bytes, or all that follow when it is negative, without copying them."""
        rest = max(0, self._size - self._position)
        length = rest if length < 0 else min(length, rest)
        data = self._read_at(self._position, length)
        self._position += data.size
        return data

    def _read_at(self, start: int, length: int) -> pa.Buffer:
        parts: list[pa.Buffer] = []
        at, end = start, start + length
        while at < end:
            part = self._take(at, end - at)
            if part.size == 0:
                break  # the object is shorter than was said
            parts.append(part)
            at += part.size
        if len(parts) == 1:
            return parts[0]
        return pa.py_buffer(b"".join(parts))

    def _take(self, start: int, length: int) -> pa.Buffer:
        """Return some of `length` bytes from `start` on, nothing only at the object's end."""
        for part in (self.tail, *self._last):
            if part.holds(start):
                return part.take(start, length)
        expected = self._windows.take(start, length)
        if expected is not None:
            return expected
        stops = (self._size, self.tail.start, self._windows.next_start(start) or self._size)
        stop = min(stop for stop in stops if stop > start)
        found = self._fetch_part(start, min(max(length, self._read_ahead), stop - start))
        self._last = [*self._last[-1:], found]
        return found.take(start, length)

    def _fetch_part(self, start: int, length: int) -> Part:
        [data] = self._fetch([(start, length)])
        return Part(start, data)


class _Uncopied(io.RawIOBase):
    """A `RangeFile` whose `read` gives buffers: pyarrow takes them, Python's own readers do not."""

    def __init__(self, file: RangeFile) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def read(self, length: int | None = -1) -> Any:
        """Return a `pyarrow.Buffer`, where a file would return bytes."""
        return self._file.read_buffer(length if length is not None else -1)


class Part:
    """The object's bytes from `start` on, as many as came."""

    __slots__ = ("_data", "start")

    def __init__(self, start: int, data: bytes) -> None:
        self.start = start
        self._data = pa.py_buffer(data)

    @property
    def size(self) -> int:
        return self._data.size

    def holds(self, place: int) -> bool:
        return self.start <= place < self.start + self._data.size

    def take(self, start: int, length: int) -> pa.Buffer:
        offset = start - self.start
        return self._data.slice(offset, min(length, self._data.size - offset))
