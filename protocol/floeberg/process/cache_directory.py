"""A directory of files that outlive a process, and that those of one machine and user share.

A file is written aside and renamed, and never changed after that: whoever has one open keeps it,
even when it is replaced or removed. Nobody waits for a lock. What a writer that was killed has left
is told from what is being written by a lock that the system takes from the dead. Nothing is synced:
whoever reads a file has to see for himself that it is whole.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

Write = Callable[[int, Sequence[bytes | memoryview]], int]
"""What `os.writev` does: write parts into an open file, and return how many bytes were written."""

_UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.part")
_UNFINISHED_AT_MOST_SECONDS = 3600


class CacheDirectory:
    """The directory `name` within `parent`, made where it is not there, and open: what its path
    leads to later does not matter.

    It is this user's alone, or is refused. Every method raises OSError.
    """

    def __init__(self, parent: Path, name: str) -> None:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = parent / name
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

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Return a descriptor; a link is not followed, which is ELOOP."""
        # a pipe under that name must not hold anybody up
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        # not to be written to again: that would change what others have open
        return os.open(name, flags, 0o400, dir_fd=self._fd)

    def write(self, name: str, parts: Sequence[bytes | memoryview], write: Write) -> None:
        """Make a file of `parts`, or put it in the place of another one; where that fails, nothing
        is left of it."""
        aside = f".{secrets.token_hex(16)}.part"
        file = self.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            # held for as long as this process lives and writes: what is not held is left over
            _lock_if_free(file)
            left = list(parts)
            while left:
                written = write(file, left)
                while left and written >= len(left[0]):
                    written -= len(left.pop(0))
                if left:
                    left[0] = memoryview(left[0])[written:]
            # Not there: swept before it was locked, which nothing but this one file suffers from.
            with suppress(FileNotFoundError):
                os.rename(aside, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except OSError:
            with suppress(OSError):
                self.remove(aside)
            raise
        finally:
            os.close(file)

    def stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._fd, follow_symlinks=False)

    def remove(self, name: str) -> None:
        os.unlink(name, dir_fd=self._fd)

    def swept(self, now_seconds: float) -> list[str]:
        """Remove what writers have left that were killed; return the other names."""
        # listing moves a descriptor's place, so each time has one of its own
        listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._fd)
        try:
            names = os.listdir(listed)
        finally:
            os.close(listed)
        for name in filter(_UNFINISHED.fullmatch, names):
            self._sweep(name, now_seconds)
        return [name for name in names if not _UNFINISHED.fullmatch(name)]

    def _sweep(self, name: str, now_seconds: float) -> None:
        """Remove an unfinished file that nobody writes any more."""
        with suppress(FileNotFoundError):
            try:
                file = self.open(name)
            except OSError as exc:
                if exc.errno not in (errno.ELOOP, errno.ENXIO):
                    raise
                self.remove(name)  # a link, or a socket
                return
            try:
                age_seconds = now_seconds - os.fstat(file).st_mtime
                if _lock_if_free(file) or age_seconds > _UNFINISHED_AT_MOST_SECONDS:
                    self.remove(name)
            finally:
                os.close(file)


def is_own_file(found: os.stat_result) -> bool:
    """Say whether an open file is a plain file of this user's, and not a pipe, or another's."""
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def bytes_on_disk(size: int) -> int:
    """Return about what a file of `size` bytes takes of a disk."""
    return -(-size // 4096) * 4096


def _lock_if_free(file: int) -> bool:
    """Lock a file for as long as it is open; say whether that went well. Waits for nobody."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is locked, or the file system has no locks
        return False
    return True
