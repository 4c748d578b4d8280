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
import fcntl
import hashlib
import json
import logging
import os
import re
import secrets
import stat
import struct
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

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
_UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.part")
# A map costs the kernel's bookkeeping, of which a process has a limited number; a copy costs little
_MAPPED_FROM_BYTES = 256 * 1024
_TOUCHED_AFTER_SECONDS = 60
_UNFINISHED_AT_MOST_SECONDS = 3600
_PAUSE_SECONDS = 60

Write = Callable[[int, Sequence[bytes | memoryview]], int]


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
        self._directory: _Directory | None = None
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
            file = directory.open(key.name, os.O_RDONLY)
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

    def _remove_damaged(self, directory: _Directory, key: FileKey, why: Exception) -> None:
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
            self._written(directory, key.name, [_header(key, segment), segment.buffer])
        except OSError as exc:
            self._warn(exc)
            self._paused_until = self._now_seconds() + _PAUSE_SECONDS
            if exc.errno == errno.ENOENT:
                self._directory = None  # it is gone: the next one makes it anew
            return
        with self._counting:
            self.written_bytes += size_bytes
            self._bytes_since += _on_disk(size_bytes)
            since = self._bytes_since
        # others write as well, so look before there should be a need
        if self._bytes + since > self._max_bytes or since > self._max_bytes // 16:
            self._tidy()

    def _written(
        self, directory: _Directory, name: str, parts: Sequence[bytes | memoryview]
    ) -> None:
        aside = f".{secrets.token_hex(16)}.part"
        file = directory.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            # held for as long as this process lives and writes: what is not held is left over
            _lock_if_free(file)
            left = list(parts)
            while left:
                written = self._write(file, left)
                while left and written >= len(left[0]):
                    written -= len(left.pop(0))
                if left:
                    left[0] = memoryview(left[0])[written:]
            # Not synced: what a crash of the machine damages is noticed by its checksum. Not there:
            # swept before it was locked, which nothing but this one file suffers from.
            with suppress(FileNotFoundError):
                directory.rename(aside, name)
        except OSError:
            with suppress(OSError):
                directory.remove(aside)
            raise
        finally:
            os.close(file)

    # --- the directory ----------------------------------------------------------------------------

    def _opened(self) -> _Directory | None:
        if self._directory is None:
            try:
                self._directory = _Directory(self._path)
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
            for name in directory.names():
                if _UNFINISHED.fullmatch(name):
                    self._sweep(directory, name)
                elif _FINISHED.fullmatch(name):
                    with suppress(FileNotFoundError):  # another process was faster
                        found = directory.stat(name)
                        files.append((found.st_mtime, name, _on_disk(found.st_size)))
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

    def _sweep(self, directory: _Directory, name: str) -> None:
        """Remove an unfinished file that nobody writes any more."""
        with suppress(FileNotFoundError):
            file = directory.open(name, os.O_RDONLY)
            try:
                age_seconds = self._now_seconds() - os.fstat(file).st_mtime
                if _lock_if_free(file) or age_seconds > _UNFINISHED_AT_MOST_SECONDS:
                    directory.remove(name)
            finally:
                os.close(file)

    def _warn(self, error: OSError) -> None:
        with self._counting:
            if self._has_warned:
                return
            self._has_warned = True
        logger.warning(
            "manifests are not kept on disk as they should be",
            extra={"directory": str(self._path), "error": str(error)},
        )


class _Directory:
    """An open directory that is this user's alone: what its path leads to later does not matter.

    Every method raises OSError.
    """

    def __init__(self, parent: Path) -> None:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = parent / "manifests"
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._fd)
        found = os.fstat(self._fd)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(
                errno.EPERM,
                "others may look into it: it must belong to the user that floeberg runs as, with"
                " mode 0700",
                str(path),
            )

    def open(self, name: str, flags: int) -> int:
        # a pipe under that name must not hold anybody up
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        # not to be written to again: that would change what others have mapped
        return os.open(name, flags, 0o400, dir_fd=self._fd)

    def stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._fd, follow_symlinks=False)

    def remove(self, name: str) -> None:
        os.unlink(name, dir_fd=self._fd)

    def rename(self, name: str, to: str) -> None:
        os.rename(name, to, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def names(self) -> list[str]:
        # listing moves a descriptor's place, so each time has one of its own
        listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._fd)
        try:
            return os.listdir(listed)
        finally:
            os.close(listed)


def _header(key: FileKey, segment: Segment) -> bytes:
    checksum = bytes(segment.buffer[_SEGMENT_CHECKSUM])
    head = _HEADER.pack(_MAGIC, _FILE_VERSION, key.digest, segment.size_bytes, checksum)
    return head + zlib.crc32(head).to_bytes(4, "little")


def _read(file: int, key: FileKey) -> Segment:
    """Return the segment in an open file; raises `DamagedBuffer` and OSError."""
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
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


def _lock_if_free(file: int) -> bool:
    """Lock a file for as long as it is open; say whether that went well. Waits for nobody."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is locked, or the file system has no locks
        return False
    return True


def _on_disk(size: int) -> int:
    return -(-size // 4096) * 4096
