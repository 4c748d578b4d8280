"""What will be read of an object, fetched a window at a time, ahead of the decoder if it may be.

A decoder asks for one column chunk after another and waits each time. Over an object store the
waits add up, so whoever knows what will be read says so, and each window of it is one round of
concurrent requests. While one window is decoded, the next are fetched in the background, as many
as there is room for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from floeberg.process.background import Background, Job
from floeberg.process.storage.ranges import Range, coalesce

HELD_BYTES = 32 << 20
"""How much of an object is held, or on its way, before it has been read."""

Fetch: TypeAlias = Callable[[Sequence[Range]], list[bytes]]


@dataclass(frozen=True, slots=True)
class Ahead:
    """Leave to fetch before there is need, by the threads of `background`.

    As many bytes as `held_bytes` may be on their way or wait to be read, for each file that is
    being read, and none while the process has no memory to spare.
    """

    background: Background
    held_bytes: int = HELD_BYTES
    has_spare: Callable[[], bool] = lambda: True


class Room:
    """How many more bytes may be held; below zero after a single window that is larger."""

    def __init__(self, left_bytes: int = HELD_BYTES) -> None:
        self.left_bytes = left_bytes


class Windows:
    """The bytes of one object that are expected to be read, each once.

    With `ahead` the first window is fetched when it is expected, and the following ones once
    reading has begun, as far as there is room. What was read to its end is forgotten. Not safe to
    share between threads, nor is the room.
    """

    def __init__(self, fetch: Fetch, ahead: Ahead | None, room: Room) -> None:
        self._fetch = fetch
        self._ahead = ahead
        self._room = room
        self._has_begun = False
        self._held_bytes = 0
        self.unread_bytes = 0
        """Bytes that are expected to be read and have not been, fetched or not."""
        self._expected: deque[list[Range]] = deque()
        # in the order of their starts; they overlap in damaged files only
        self._pieces: list[_Piece] = []
        self._starts: list[int] = []

    def expect(self, windows: Sequence[Sequence[Range]]) -> None:
        """Say what will be read, in order, in place of what was expected before."""
        self.forget()
        self._expected.extend(_without_empty(windows))
        self.unread_bytes = sum(map(_size, self._expected))
        self._fetch_ahead()

    def forget(self) -> None:
        """Expect nothing, and give up what was fetched."""
        for piece in self._pieces:
            piece.source.drop()
        self._hold(-self._held_bytes)
        self.unread_bytes = 0
        self._expected.clear()
        self._pieces.clear()
        self._starts.clear()

    def next_start(self, place: int) -> int | None:
        """Return where the first piece behind `place` begins that is held or on its way."""
        i = bisect_right(self._starts, place)
        return self._starts[i] if i < len(self._starts) else None

    def take(self, start: int, length: int) -> pa.Buffer | None:
        """Return what is known of `length` bytes from `start` on: not all of them, it may be; None
        when the first of them is not expected.

        Raises what fetching them raised. The bytes may be shared: they are not to be changed.
        """
        if not self._has_begun:
            self._has_begun = True
            self._fetch_ahead()
        piece = self._piece_at(start)
        if piece is None and self._request(start):
            piece = self._piece_at(start)
        if piece is None:
            return None
        data = piece.read(start, length)
        if start + length >= piece.stop:
            self._remove(piece)
            self._fetch_ahead()
        return data

    def _piece_at(self, place: int) -> _Piece | None:
        i = bisect_right(self._starts, place) - 1
        return self._pieces[i] if i >= 0 and place < self._pieces[i].stop else None

    def _remove(self, piece: _Piece) -> None:
        i = self._pieces.index(piece, bisect_left(self._starts, piece.start))
        del self._pieces[i], self._starts[i]
        self._hold(-piece.length)
        self.unread_bytes -= piece.length

    def _hold(self, num_bytes: int) -> None:
        self._held_bytes += num_bytes
        self._room.left_bytes -= num_bytes

    def _fetch_ahead(self) -> None:
        if self._ahead is None:
            return
        while self._expected and self._may_fetch(self._expected[0], self._ahead):
            self._ahead.background.submit(self._add(self._expected.popleft()))

    def _may_fetch(self, window: Sequence[Range], ahead: Ahead) -> bool:
        return self._has_room(window) and (not self._pieces or ahead.has_spare())

    def _has_room(self, window: Sequence[Range]) -> bool:
        if not self._pieces:
            return True
        return self._has_begun and _size(window) <= self._room.left_bytes

    def _request(self, place: int) -> bool:
        """Ask for the window of `place`, and say whether it is in one."""
        for i, window in enumerate(self._expected):
            for part in window:
                if part[0] <= place < part[0] + part[1]:
                    if i == 0 and self._has_room(window):
                        self._add(self._expected.popleft())
                    else:
                        # Columns advance unevenly. Those ahead must not pile up what the others
                        # read later.
                        window.remove(part)
                        if not window:
                            del self._expected[i]
                        self._add([part])
                    return True
        return False

    def _add(self, window: Sequence[Range]) -> Job[list[bytes]]:
        fetched = _Round(self._fetch, window)
        for piece in fetched.pieces:
            i = bisect_right(self._starts, piece.start)
            self._pieces.insert(i, piece)
            self._starts.insert(i, piece.start)
            self._hold(piece.length)
        assert fetched.job is not None
        return fetched.job


class _Round:
    """Concurrent requests for one window, and the pieces that they bring."""

    def __init__(self, fetch: Fetch, window: Sequence[Range]) -> None:
        joined = coalesce(window)
        self._joined = joined
        self.pieces = [_Piece(start, length, self) for start, length in window]
        self.job: Job[list[bytes]] | None = Job(lambda: fetch(joined))

    def open(self) -> None:
        """Give the pieces their data, each once, and keep none of it."""
        assert self.job is not None, "it is opened by the first piece that is read"
        parts = [pa.py_buffer(part) for part in self.job.result()]
        starts = [start for start, _ in self._joined]
        for piece in self.pieces:
            i = bisect_right(starts, piece.start) - 1
            piece.data = _cut(parts[i], piece.start - starts[i], piece.length)
        self.job = None
        self.pieces = []

    def drop(self) -> None:
        if self.job is not None:
            self.job.drop()


class _Piece:
    __slots__ = ("data", "length", "source", "start")

    def __init__(self, start: int, length: int, source: _Round) -> None:
        self.start = start
        self.length = length
        self.source = source
        self.data: pa.Buffer | None = None

    @property
    def stop(self) -> int:
        return self.start + self.length

    def read(self, start: int, length: int) -> pa.Buffer:
        """Return up to `length` bytes from `start` on, fewer where the object ends early."""
        if self.data is None:
            self.source.open()
        assert self.data is not None, "opening the source gives it"
        return _cut(self.data, start - self.start, length)


def _cut(data: pa.Buffer, offset: int, length: int) -> pa.Buffer:
    """Return a part of `data` without copying it; a shorter one where `data` ends early."""
    offset = min(offset, data.size)
    return data.slice(offset, min(length, data.size - offset))


def _without_empty(windows: Sequence[Sequence[Range]]) -> list[list[Range]]:
    filled = ([part for part in window if part[1] > 0] for window in windows)
    return [window for window in filled if window]


def _size(window: Sequence[Range]) -> int:
    return sum(length for _, length in window)
