"""A record of every request to storage, so that a person can see what a process reads."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow as pa

from floeberg.protocol.storage import Storage

logger = logging.getLogger(__name__)


class LoggedStorage:
    """Passes requests on and logs each at DEBUG, with the operation, the location as asked for, and
    the bytes."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    def read(self, location: str) -> bytes:
        data = self._inner.read(location)
        _log("read", location, len(data))
        return data

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        parts = self._inner.read_ranges(location, ranges)
        _log("read_ranges", location, sum(map(len, parts)))
        return parts

    def size(self, location: str) -> int:
        size = self._inner.size(location)
        _log("size", location)
        return size

    def open(self, location: str) -> pa.NativeFile:
        file = self._inner.open(location)
        _log("open", location)
        return file

    def list(self, location: str) -> Sequence[str]:
        names = self._inner.list(location)
        _log("list", location)
        return names

    def is_directory(self, location: str) -> bool:
        found = self._inner.is_directory(location)
        _log("is_directory", location)
        return found


def _log(operation: str, location: str, length: int | None = None) -> None:
    logger.debug(
        "storage request",
        extra={"operation": operation, "location": location, "length_bytes": length},
    )
