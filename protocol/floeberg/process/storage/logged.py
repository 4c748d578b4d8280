"""A record of every request to storage, so that a person can see what a process reads."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa

from floeberg.protocol.errors import FloebergError
from floeberg.protocol.storage import Storage

logger = logging.getLogger(__name__)


class LoggedStorage:
    """Passes requests on and logs each at DEBUG, with the operation, the location as asked for, the
    bytes, and the outcome: `ok` or an error's code."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    def read(self, location: str) -> bytes:
        with _logged("read", location) as fields:
            data = self._inner.read(location)
            fields["length_bytes"] = len(data)
            return data

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with _logged("read_ranges", location) as fields:
            parts = self._inner.read_ranges(location, ranges)
            fields["length_bytes"] = sum(map(len, parts))
            return parts

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> list[list[bytes] | FloebergError]:
        found = self._inner.read_many(requests)
        for (location, _), parts in zip(requests, found, strict=True):
            with suppress(FloebergError), _logged("read_many", location) as fields:
                if isinstance(parts, FloebergError):
                    raise parts
                fields["length_bytes"] = sum(map(len, parts))
        return found

    def size(self, location: str) -> int:
        with _logged("size", location):
            return self._inner.size(location)

    def open(self, location: str) -> pa.NativeFile:
        with _logged("open", location):
            return self._inner.open(location)

    def list(self, location: str) -> Sequence[str]:
        with _logged("list", location):
            return self._inner.list(location)

    def is_directory(self, location: str) -> bool:
        with _logged("is_directory", location):
            return self._inner.is_directory(location)

    def is_local(self, location: str) -> bool:
        return self._inner.is_local(location)


@contextmanager
def _logged(operation: str, location: str) -> Iterator[dict[str, object]]:
    """Log a request when it is over, whether it succeeded or not."""
    fields: dict[str, object] = {
        "operation": operation,
        "location": location,
        "length_bytes": None,
        "outcome": "ok",
    }
    try:
        yield fields
    except FloebergError as error:
        fields["outcome"] = error.code
        raise
    finally:
        logger.debug("storage request", extra=fields)
