"""Files on a local disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import FileIO

import pyarrow as pa

from floeberg.process.storage.locations import split_location
from floeberg.protocol.errors import AccessDenied, FloebergError, MissingFile, StorageUnavailable


@contextmanager
def _named_errors(location: str) -> Iterator[None]:
    """Turn the operating system's errors into floeberg's, which name the location."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as exc:
        raise MissingFile(location) from exc
    except ValueError as exc:  # a NUL in it, or half a surrogate pair: no file's name
        raise MissingFile(location) from exc
    except PermissionError as exc:
        raise AccessDenied(f"reading {location} is not permitted to this process") from exc
    except OSError as exc:
        if exc.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise MissingFile(location) from exc
        raise StorageUnavailable(f"reading {location} failed: {exc.strerror or exc}") from exc


class LocalStorage:
    """Reads local files; implements `Storage`."""

    def read(self, location: str) -> bytes:
        with _named_errors(location), _open(_path(location)) as file:
            return file.read()

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with _named_errors(location), _open(_path(location)) as file:
            return [os.pread(file.fileno(), length, start) for start, length in ranges]

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> list[list[bytes] | FloebergError]:
        return [self._read_or_error(location, ranges) for location, ranges in requests]

    def _read_or_error(
        self, location: str, ranges: Sequence[tuple[int, int]]
    ) -> list[bytes] | FloebergError:
        try:
            return self.read_ranges(location, ranges)
        except FloebergError as error:
            return error

    def size(self, location: str) -> int:
        with _named_errors(location):
            return _regular(os.stat(_path(location)), location).st_size

    def open(self, location: str) -> pa.NativeFile:
        path = _path(location)
        with _named_errors(location):
            _regular(os.stat(path), location)
            return pa.OSFile(path, "rb")

    def list(self, location: str) -> Sequence[str]:
        try:
            with _named_errors(location):
                return sorted(os.listdir(_path(location)))
        except MissingFile:
            return []

    def is_directory(self, location: str) -> bool:
        return os.path.isdir(_path(location))

    def is_local(self, location: str) -> bool:
        return True


def _open(path: str) -> FileIO:
    """Open a regular file; a pipe or a device, which may never answer, is none of a table's."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = FileIO(fd, "rb")
    try:
        _regular(os.fstat(fd), path)
    except IsADirectoryError:
        file.close()
        raise
    return file


def _regular(found: os.stat_result, path: str) -> os.stat_result:
    if not stat.S_ISREG(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return found


def _path(location: str) -> str:
    return split_location(location)[1]
