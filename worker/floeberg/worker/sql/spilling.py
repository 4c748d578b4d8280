"""Directories for what queries don't hold in memory: one a query, and nobody else looks into it.

A process that is killed removes nothing, so the next one that starts does: each process holds a
lock beside its directories, which the system takes from the dead.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

logger = logging.getLogger(__name__)

_LOCK = ".lock"


class SpillDirectory:
    """The directories of this process, within `parent` (by default, the system's for temporary
    files). `close` it.

    Raises OSError where they can't be made, or where others may look into them.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self._root = (parent or Path(tempfile.gettempdir())) / f"floeberg-spill-{os.geteuid()}"
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(self._root)
        if (
            not stat.S_ISDIR(found.st_mode)
            or found.st_uid != os.geteuid()
            or stat.S_IMODE(found.st_mode) & 0o077
        ):
            raise PermissionError(
                errno.EPERM,
                "others may look into it: it must belong to the user that floeberg runs as, with"
                " mode 0700",
                str(self._root),
            )
        self._closed = False
        self._name, self._lock = self._locked()
        self._sweep()
        self._path = self._root / self._name
        self._path.mkdir(mode=0o700)

    @contextmanager
    def lend(self) -> Iterator[Path]:
        """Give one query a directory of its own, and remove it with all that is in it."""
        path = self._path / secrets.token_hex(8)
        path.mkdir(mode=0o700)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Remove them all; doing so twice is harmless."""
        if self._closed:
            return
        self._closed = True
        shutil.rmtree(self._path, ignore_errors=True)
        with suppress(OSError):
            (self._root / f"{self._name}{_LOCK}").unlink()
        os.close(self._lock)

    def _locked(self) -> tuple[str, int]:
        """Return a new name, and the descriptor that holds its lock."""
        while True:
            name = secrets.token_hex(8)
            path = self._root / f"{name}{_LOCK}"
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.stat(path).st_ino == os.fstat(lock).st_ino:
                    return name, lock
            except OSError:
                pass  # another process that starts took it for a dead one's
            os.close(lock)

    def _sweep(self) -> None:
        """Remove what processes have left that are gone."""
        for path in self._root.glob(f"*{_LOCK}"):
            with suppress(OSError):
                lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held: it lives
                    shutil.rmtree(self._root / path.name.removesuffix(_LOCK), ignore_errors=True)
                    path.unlink()
                    logger.info("removed what a query had spilt", extra={"directory": path.stem})
                finally:
                    os.close(lock)
