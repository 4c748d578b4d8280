"""A file over an object that is fetched range by range, as it is read."""

from __future__ import annotations

import io
from collections.abc import Callable


class RemoteFile(io.RawIOBase):
    """A read-only file of known size; each read is one fetch of exactly its bytes.

    There is no read-ahead: it multiplies what is fetched, and the readers here know their ranges.
    `fetch` returns the bytes of (start, length); what it raises comes out of `read`.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        super().__init__()
        self._fetch = fetch
        self._size = size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        if origin + offset < 0:
            raise ValueError(f"seek to {origin + offset}, before the file's start")
        self._place = origin + offset
        return self._place

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._place, 0)
        length = left if size is None or size < 0 else min(size, left)
        if length == 0:
            return b""
        data = self._fetch(self._place, length)
        self._place += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()
