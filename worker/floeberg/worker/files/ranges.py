"""A file over byte ranges of an object: what is needed is fetched together, before it is asked for.

A decoder asks for one column chunk after another and waits each time. Over an object store the
waits add up, so whoever knows what will be read says so (`expect`), and each window of it is one
request.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from floeberg.protocol.storage import Storage

Range: TypeAlias = tuple[int, int]
"""Start and length, in bytes."""

TAIL_BYTES = 512 << 10
"""Holds the footer of most files, and all of a small one."""

_COALESCED_GAP_BYTES = 64 << 10
"""Ranges nearer than that are one: the bytes between cost less than another request."""


class RangeFile(io.RawIOBase):
    """A seekable file over the object at `location`, which has `size` bytes.

    What was fetched is kept as long as its window is the current one or the one before. Reads
    outside of what is expected go to storage, `read_ahead` bytes at least. Not safe to share
    between threads.
    """

    def __init__(self, storage: Storage, location: str, size: int, read_ahead: int = 0) -> None:
        self._storage = storage
        self._location = location
        self._size = size
        self._read_ahead = read_ahead
        self._position = 0
        self._windows: list[list[Range]] = []
        self._tail: list[_Piece] = []
        self._kept: list[list[_Piece]] = []

    def fetch_tail(self) -> None:
        """Fetch the end of the file, to keep as long as the file is open."""
        start = max(0, self._size - TAIL_BYTES)
        self._tail = self._fetch([(start, self._size - start)])

    def expect(self, windows: Sequence[Sequence[Range]]) -> None:
        """Say what will be read, in order: the ranges of one window are fetched in one request."""
        self._windows = [coalesce(window) for window in windows]

    def beside(self) -> RangeFile:
        """Return another file over the same object, which expects and fetches windows of its own;
        the caller closes it.
        """
        other = RangeFile(self._storage, self._location, self._size, self._read_ahead)
        other._tail = self._tail
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
        if length == 0:
            return pa.py_buffer(b"")
        for piece in self._pieces():
            if piece.holds(start, length):
                return piece.take(start, length)
        self._fetch_window_of(start, length)
        for piece in self._kept[-1]:
            if piece.holds(start, length):
                return piece.take(start, length)
        [data] = self._storage.read_ranges(self._location, [(start, length)])
        return pa.py_buffer(data)

    def _pieces(self) -> list[_Piece]:
        return [*self._tail, *(piece for window in self._kept for piece in window)]

    def _fetch_window_of(self, start: int, length: int) -> None:
        for i, window in enumerate(self._windows):
            if any(s <= start and start + length <= s + n for s, n in window):
                del self._windows[: i + 1]
                break
        else:
            window = [(start, min(max(length, self._read_ahead), self._size - start))]
        # the columns of a table do not all pass from one row group to the next at once
        self._kept = [*self._kept[-1:], self._fetch(window)]

    def _fetch(self, window: Sequence[Range]) -> list[_Piece]:
        parts = self._storage.read_ranges(self._location, window)
        return [_Piece(start, data) for (start, _), data in zip(window, parts, strict=True)]


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


class _Piece:
    __slots__ = ("_data", "_start")

    def __init__(self, start: int, data: bytes) -> None:
        self._start = start
        self._data = pa.py_buffer(data)

    def holds(self, start: int, length: int) -> bool:
        return self._start <= start and start + length <= self._start + self._data.size

    def take(self, start: int, length: int) -> pa.Buffer:
        return self._data.slice(start - self._start, length)


def coalesce(ranges: Sequence[Range], gap: int = _COALESCED_GAP_BYTES) -> list[Range]:
    """Return ranges in order that cover `ranges`, neighbours at most `gap` bytes apart joined.

    >>> coalesce([(300, 10), (0, 100), (120, 50)], gap=20)
    [(0, 170), (300, 10)]
    """
    joined: list[Range] = []
    for start, length in sorted(ranges):
        if joined and start <= joined[-1][0] + joined[-1][1] + gap:
            first, so_far = joined[-1]
            joined[-1] = (first, max(so_far, start + length - first))
        else:
            joined.append((start, length))
    return joined
