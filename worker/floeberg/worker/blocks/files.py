"""Blocks in files of a directory, read and written one at a time."""

from __future__ import annotations

import errno
import logging
import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from floeberg.process.cache_directory import CacheDirectory, Write, bytes_on_disk, is_own_file
from floeberg.worker.blocks.layout import (
    BLOCK_BYTES,
    HEADER_BYTES,
    DamagedBlock,
    Piece,
    Run,
    checksum,
    decode_header,
    encode,
    merge,
)

logger = logging.getLogger(__name__)

_NAME = re.compile(r"([0-9a-f]{64})\.block")
_TOUCHED_AFTER_SECONDS = 60


class BlockFiles:
    """Reads and writes blocks in `directory`/blocks, by their keys.

    Safe to share between threads, and the directory between processes. What is read is what was
    written, or nothing. Every method raises OSError; a missing file is none.
    """

    def __init__(self, directory: Path, write: Write, now_seconds: Callable[[], float]) -> None:
        self._directory = CacheDirectory(directory, "blocks")
        self._write = write
        self._now_seconds = now_seconds
        self._of_thread = threading.local()

    def read(self, key: bytes, start: int, target: memoryview) -> int | None:
        """Fill `target` with the block's bytes from `start` on, and return what its file takes of
        the disk; None where not all of them are kept. Raises `DamagedBlock` too.

        Whatever happens, something may have been written to `target`.
        """
        file = self._opened(key)
        if file is None:
            return None
        try:
            found = os.fstat(file)
            runs = _runs(file, found, key)
            stop = start + len(target)
            run = next((run for run in runs if run.offset <= start and stop <= run.end), None)
            if run is None:
                return None
            if run.length == len(target):
                _read_whole(file, run, target)
            else:
                # new memory for all of the run would cost more than reading it
                whole = self._scratch()[: run.length]
                _read_whole(file, run, whole)
                target[:] = whole[start - run.offset : stop - run.offset]
            if self._now_seconds() - found.st_mtime > _TOUCHED_AFTER_SECONDS:
                with suppress(OSError):  # the disk is read-only, it may be
                    os.utime(file)
            return bytes_on_disk(found.st_size)
        finally:
            os.close(file)

    def add(self, key: bytes, pieces: Sequence[Piece]) -> tuple[int, int] | None:
        """Keep `pieces` of a block beside what is kept of it; return how many bytes were written,
        and what the file takes of the disk. None where all of it was kept already.
        """
        with suppress(DamagedBlock):  # it is replaced
            kept = self._pieces(key)
            merged = merge([*kept, *pieces])
            if [(p.offset, p.length) for p in merged] == [(p.offset, p.length) for p in kept]:
                return None
            pieces = merged
        parts = encode(key, merge(pieces))
        size = sum(map(len, parts))
        self._directory.write(_name(key), parts, self._write)
        return size, bytes_on_disk(size)

    def remove(self, key: bytes) -> None:
        with suppress(FileNotFoundError):  # another process was faster
            self._directory.remove(_name(key))

    def all(self) -> list[tuple[bytes, int]]:
        """Return the keys of all blocks with what they take of the disk, the least recently used
        first. What writers have left that were killed is removed."""
        found: list[tuple[float, bytes, int]] = []
        for name in self._directory.swept(self._now_seconds()):
            match = _NAME.fullmatch(name)
            if match is None:
                continue
            with suppress(FileNotFoundError):  # another process was faster
                stat = self._directory.stat(name)
                found.append((stat.st_mtime, bytes.fromhex(match[1]), bytes_on_disk(stat.st_size)))
        return [(key, size) for _, key, size in sorted(found)]

    def _opened(self, key: bytes) -> int | None:
        try:
            return self._directory.open(_name(key))
        except FileNotFoundError:
            return None
        except OSError as exc:
            if exc.errno in (errno.ELOOP, errno.ENXIO):
                raise DamagedBlock("it is a link, or a socket") from exc
            raise

    def _pieces(self, key: bytes) -> list[Piece]:
        """Return all that is kept of a block."""
        file = self._opened(key)
        if file is None:
            return []
        try:
            runs = _runs(file, os.fstat(file), key)
            pieces: list[Piece] = []
            for run in runs:
                data = memoryview(bytearray(run.length))
                _read_whole(file, run, data)
                pieces.append(Piece(run.offset, (data,)))
            return pieces
        finally:
            os.close(file)

    def _scratch(self) -> memoryview:
        """Return memory for a block, which is the calling thread's."""
        found: memoryview | None = getattr(self._of_thread, "scratch", None)
        if found is None:
            found = self._of_thread.scratch = memoryview(bytearray(BLOCK_BYTES))
        return found


def _name(key: bytes) -> str:
    return f"{key.hex()}.block"


def _runs(file: int, found: os.stat_result, key: bytes) -> list[Run]:
    if not is_own_file(found):
        raise DamagedBlock("it is no file of this user")
    return decode_header(os.pread(file, HEADER_BYTES, 0), key, found.st_size)


def _read_whole(file: int, run: Run, target: memoryview) -> None:
    """Fill `target` with all of a run, if that is undamaged."""
    if os.preadv(file, [target], run.place) != run.length or checksum((target,)) != run.checksum:
        raise DamagedBlock("its bytes are damaged")
