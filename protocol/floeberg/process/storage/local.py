"""Files on a local disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from floeberg.process.storage.locations import split_location
from floeberg.protocol.errors import AccessDenied, MissingFile, StorageUnavailable


@contextmanager
def _named_errors(location: str) -> Iterator[None]:
    """Turn the operating system's errors into floeberg's, which name the location."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as exc:
        raise MissingFile(location) from exc
    except PermissionError as exc:
        raise AccessDenied(f"reading {location} is not permitted to this process") from exc
    except OSError as exc:
        raise StorageUnavailable(f"reading {location} failed: {exc.strerror or exc}") from exc


class LocalStorage:
    """Reads local files; implements `Storage`."""

    def read(self, location: str) -> bytes:
        with _named_errors(location), open(_path(location), "rb") as file:
            return file.read()

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with _named_errors(location), open(_path(location), "rb") as file:
            return [os.pread(file.fileno(), length, start) for start, length in ranges]

    def size(self, location: str) -> int:
        with _named_errors(location):
            return os.stat(_path(location)).st_size

    def open(self, location: str) -> pa.NativeFile:
        with _named_errors(location):
            return pa.OSFile(_path(location), "rb")

    def list(self, location: str) -> Sequence[str]:
        try:
            with _named_errors(location):
                return sorted(os.listdir(_path(location)))
        except MissingFile:
            return []

    def is_directory(self, location: str) -> bool:
        return os.path.isdir(_path(location))


def _path(location: str) -> str:
    return split_location(location)[1]
