"""A file whose content is used for as long as it stays the same, and read again when it changes."""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from floeberg.protocol.errors import BadConfig

logger = logging.getLogger(__name__)

T = TypeVar("T")

_CHECK_SECONDS = 1.0
MAX_BYTES = 16 << 20


class WatchedFile(Generic[T]):
    """What `parse` makes of a file's text. Safe to use from several threads.

    The file is looked at when it is asked for, once a second at most: no thread watches. Raises
    `BadConfig` when it is made, for a file that can't be read or parsed. Later such a file is an
    error in the log, once, and what was read before stays: half an edit locks nobody out.

    A `secret` file must not be open to others than its owner, and its group for reading.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        parse: Callable[[str], T],
        *,
        secret: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`name` is the configuration's key for the file, for messages."""
        self._name = name
        self._path = path
        self._parse = parse
        self._secret = secret
        self._clock = clock
        self._lock = threading.Lock()
        self._looked_at = clock()
        self._seen = self._state()
        self._value = self._read()

    def get(self) -> T:
        now = self._clock()
        if now - self._looked_at < _CHECK_SECONDS:
            return self._value
        with self._lock:
            if now - self._looked_at >= _CHECK_SECONDS:
                self._looked_at = now
                self._look()
            return self._value

    def _look(self) -> None:
        state = self._state()
        if state == self._seen:
            return
        self._seen = state
        try:
            self._value = self._read()
        except BadConfig as error:
            logger.error(
                "file can't be used; what it held before stays in force",
                extra={"file": str(self._path), "error": str(error)},
            )
        else:
            logger.info("file read again", extra={"file": str(self._path)})

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _read(self) -> T:
        try:
            with open(self._path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                raw = file.read(MAX_BYTES + 1)
        except OSError as exc:
            raise BadConfig(f"{self._name!r}: {self._path} cannot be read: {exc.strerror}") from exc
        # the group may read: so Kubernetes mounts a secret for a process that is not root
        if self._secret and mode & (stat.S_IRWXO | stat.S_IWGRP):
            raise BadConfig(
                f"{self._name!r}: {self._path} has mode {stat.S_IMODE(mode):04o}: only its owner,"
                " and its group for reading, may have access (chmod 600)"
            )
        if len(raw) > MAX_BYTES:
            raise BadConfig(f"{self._name!r}: {self._path} has more than {MAX_BYTES} bytes")
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            # the cause would show bytes of the file
            raise BadConfig(f"{self._name!r}: {self._path} is not text") from None
        try:
            return self._parse(text)
        except BadConfig as error:
            raise BadConfig(f"{self._name!r}: {self._path}, {error}") from None
