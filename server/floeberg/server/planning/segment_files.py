"""Decoded manifests in files, which outlive a process and are shared by those of one machine.

A file is a short header of ours and a segment's flat buffer, under a name that is a digest of all
that the segment depends on. It is written aside and renamed, and never changed after that: whoever
has one mapped keeps it, even when it is replaced or removed. Nothing that is read is believed
before it has proved to be whole and to be what was asked for; what has not is removed. Nobody waits
for a lock, and whatever the disk refuses costs time only.

See docs/planning.md for what is guarded against and what is not.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import re
import struct
import threading
import time
import zlib
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from floeberg.process.cache_directory import (
    CacheDirectory,
    Write,
    bytes_on_disk,
    is_own_file,
)
from floeberg.process.version import floeberg_version
from floeberg.protocol.manifests import DamagedBuffer, Segment
from floeberg.protocol.manifests.columns import FORMAT_VERSION

logger = logging.getLogger(__name__)

DEFAULT_DISK_BYTES = 4 * 1024 * 1024 * 1024

_MAGIC = b"FLOEFILE"
_FILE_VERSION = 1
_HEADER = struct.Struct("<8sI4x32sQ4s")  # magic, version, key, bytes of the segment, its checksum
_HEADER_BYTES = 64  # with a checksum of its own at the end; columns stay aligned behind it
_SEGMENT_CHECKSUM = slice(32, 36)

_FINISHED = re.compile(r"[0-9a-f]{64}\.segment")
# A map costs the kernel's bookkeeping, of which a process has a limited number; a copy costs little
_MAPPED_FROM_BYTES = 256 * 1024
_TOUCHED_AFTER_SECONDS = 60
_PAUSE_SECONDS = 60


class FileKey(NamedTuple):
    """What a segment was made from: a digest of all of it, and what the segment itself says."""

    digest: bytes
    location: str

    @classmethod
    def of(cls, location: str, *facts: Hashable) -> FileKey:
        """Return the key of a manifest of which `facts`, whose reprs tell them apart, are true.

        Other versions of floeberg have other keys: they may decode otherwise.
        """
        whole = [FORMAT_VERSION, floeberg_version(), location, *map(repr, facts)]
        return cls(hashlib.sha256(json.dumps(whole).encode()).digest(), location)

    @property
    def name(self) -> str:
        return f"{self.digest.hex()}.segment"


class SegmentFiles:
    """Segments in files of a directory of their own within `directory`, bounded in bytes.

    The least recently used are removed beyond about `max_bytes`; several processes that share a
    directory may exceed them for a while. Threads may share it. No method raises: a disk that
    cannot be used is a warning in the log, once.
    """

    def __init__(
        self,
        directory: Path | str,
        max_bytes: int = DEFAULT_DISK_BYTES,
        *,
        write: Write = os.writev,
        now_seconds: Callable[[], float] = time.time,
    ) -> None:
        self._path = Path(directory)
        self._max_bytes = max_bytes
        self._write = write
        self._now_seconds = now_seconds
        self._has_warned = False
        self._paused_until = 0.0
        self._tidying = threading.Lock()
        # as of the last look at the directory, and what was written here since then
        self._bytes = 0
        self._bytes_since = 0
        self._counting = threading.Lock()
        self.hits = 0
        self.misses = 0
        self.written_bytes = 0
        self.damaged = 0
        self.evictions = 0
        self._directory: CacheDirectory | None = None
        self._opened()
        self._tidy()

    # --- reading ----------------------------------------------------------------------------------

    def get(self, key: FileKey) -> Segment | None:
        """Return the segment of a file that is whole and is the one asked for."""
        segment = self._found(key)
        with self._counting:
            self.hits += segment is not None
            self.misses += segment is None
        return segment

    def _found(self, key: FileKey) -> Segment | None:
        directory = self._directory
        if directory is None:
            return None
        try:
            file = directory.open(key.name)
        except FileNotFoundError:
            return None
        except OSError as exc:
            if exc.errno == errno.ELOOP:  # a link
                self._remove_damaged(directory, key, exc)
            else:
                self._warn(exc)
            return None
        try:
            segment = _read(file, key)
            if self._now_seconds() - os.fstat(file).st_mtime > _TOUCHED_AFTER_SECONDS:
                os.utime(file)
            return segment
        except DamagedBuffer as exc:
            self._remove_damaged(directory, key, exc)
        except OSError as exc:
            self._warn(exc)
        finally:
            os.close(file)
        return None

    def _remove_damaged(self, directory: CacheDirectory, key: FileKey, why: Exception) -> None:
        with self._counting:
            self.damaged += 1
        logger.warning(
            "a file of the manifest cache is damaged and was removed",
            extra={"directory": str(self._path), "file": key.name, "error": str(why)},
        )
        with suppress(OSError):
            directory.remove(key.name)

    # --- writing ----------------------------------------------------------------------------------

    def put(self, key: FileKey, segment: Segment) -> None:
        """Keep `segment` in a file, unless the disk does not let it."""
        size_bytes = _HEADER_BYTES + segment.size_bytes
        if size_bytes > self._max_bytes or self._now_seconds() < self._paused_until:
            return
        directory = self._opened()
        if directory is None:
            return
        try:
            directory.write(key.name, [_header(key, segment), segment.buffer], self._write)
        except OSError as exc:
            self._warn(exc)
            self._paused_until = self._now_seconds() + _PAUSE_SECONDS
            if exc.errno == errno.ENOENT:
                self._directory = None  # it is gone: the next one makes it anew
            return
        with self._counting:
            self.written_bytes += size_bytes
            self._bytes_since += bytes_on_disk(size_bytes)
            since = self._bytes_since
        # others write as well, so look before there should be a need
        if self._bytes + since > self._max_bytes or since > self._max_bytes // 16:
            self._tidy()

    # --- the directory ----------------------------------------------------------------------------

    def _opened(self) -> CacheDirectory | None:
        if self._directory is None:
            try:
                self._directory = CacheDirectory(self._path, "manifests")
            except OSError as exc:
                self._warn(exc)
                self._paused_until = self._now_seconds() + _PAUSE_SECONDS
        return self._directory

    def _tidy(self) -> None:
        """Remove what writers left that were killed, and the least recently used if need be."""
        directory = self._directory
        if directory is None or not self._tidying.acquire(blocking=False):
            return
        try:
            with self._counting:
                self._bytes_since = 0
            files: list[tuple[float, str, int]] = []
            for name in filter(_FINISHED.fullmatch, directory.swept(self._now_seconds())):
                with suppress(FileNotFoundError):  # another process was faster
                    found = directory.stat(name)
                    files.append((found.st_mtime, name, bytes_on_disk(found.st_size)))
            total = sum(size for _, _, size in files)
            if total > self._max_bytes:
                for _, name, size in sorted(files):
                    if total <= self._max_bytes * 9 // 10:
                        break
                    total -= size
                    with suppress(FileNotFoundError):
                        directory.remove(name)
                        self.evictions += 1
            self._bytes = total
        except OSError as exc:
            self._warn(exc)
        finally:
            self._tidying.release()

    def _warn(self, error: OSError) -> None:
        with self._counting:
            if self._has_warned:
                return
            self._has_warned = True
        logger.warning(
            "manifests are not kept on disk as they should be",
            extra={"directory": str(self._path), "error": str(error)},
        )


def _header(key: FileKey, segment: Segment) -> bytes:
    checksum = bytes(segment.buffer[_SEGMENT_CHECKSUM])
    head = _HEADER.pack(_MAGIC, _FILE_VERSION, key.digest, segment.size_bytes, checksum)
    return head + zlib.crc32(head).to_bytes(4, "little")


def _read(file: int, key: FileKey) -> Segment:
    """Return the segment in an open file; raises `DamagedBuffer` and OSError."""
    found = os.fstat(file)
    if not is_own_file(found):
        raise DamagedBuffer("it is no file of this user")
    if found.st_size < _HEADER_BYTES:
        raise DamagedBuffer("it is cut short")
    if found.st_size < _MAPPED_FROM_BYTES:
        view = memoryview(_contents(file, found.st_size))
    else:
        view = _mapped(file)
        if len(view) != found.st_size or os.fstat(file).st_size != found.st_size:
            # beyond the end of a file, a map is no memory
            raise DamagedBuffer("it changed while it was opened")
    head = bytes(view[: _HEADER.size])
    if zlib.crc32(head) != int.from_bytes(view[_HEADER.size : _HEADER_BYTES], "little"):
        raise DamagedBuffer("its header is damaged")
    magic, version, digest, size_bytes, checksum = _HEADER.unpack(head)
    if magic != _MAGIC or version != _FILE_VERSION:
        raise DamagedBuffer("it is of another version")
    if digest != key.digest:
        raise DamagedBuffer("it holds another manifest")
    buffer = view[_HEADER_BYTES:]
    if len(buffer) != size_bytes or buffer[_SEGMENT_CHECKSUM] != checksum:
        raise DamagedBuffer("its header is of another segment")
    segment = Segment(buffer)
    if segment.location != key.location:
        raise DamagedBuffer(f"it holds {segment.location}")
    return segment


def _contents(file: int, size: int) -> bytes:
    parts = []
    while part := os.read(file, size):
        parts.append(part)
    return b"".join(parts)


def _mapped(file: int) -> memoryview:
    try:
        # Python's own mmap keeps a descriptor for as long as it lives, and those are few
        with pa.memory_map(f"/dev/fd/{file}") as mapped:
            return memoryview(mapped.read_buffer()).cast("B")
    except pa.ArrowInvalid as exc:
        raise DamagedBuffer(f"it cannot be mapped: {exc}") from exc
