"""Blocks of objects on this machine's disk, so that a store is not asked for them again.

Nothing that is read is believed before its checksum has proved it. What the disk does not take, or
does not give, is fetched from the store: all that goes wrong here costs time, and is counted.

See docs/decisions/0009-blocks-on-disk.md.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from floeberg.process.background import Background, Job
from floeberg.process.cache_directory import Write, bytes_on_disk
from floeberg.process.storage.ranges import Range
from floeberg.worker.blocks.files import BlockFiles
from floeberg.worker.blocks.layout import BLOCK_BYTES, HEADER_BYTES, DamagedBlock, Piece
from floeberg.worker.blocks.ledger import Ledger
from floeberg.worker.blocks.objects import StoredObject

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 60
_MOST_PENDING_BYTES = 64 << 20
"""How much may wait to be written: four windows of what streams fetch."""


@dataclass
class BlockCounts:
    """What has happened since the start, in blocks or parts of them if not in bytes."""

    hits: int = 0
    misses: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    evictions: int = 0
    damaged: int = 0
    refused: int = 0
    dropped: int = 0
    failures: int = 0


class BlockCache:
    """Blocks in files of `directory`, of about `max_bytes` in all.

    Several processes of one user may share the directory; together they may exceed its size for a
    while. Threads may share the cache. No method raises: a disk that cannot be used is a warning in
    the log, once, and tried again after a minute. Writing is done by a thread of its own, in turn;
    what comes while too much waits is not kept.
    """

    def __init__(
        self,
        directory: Path | str,
        max_bytes: int,
        *,
        environment: Hashable = (),
        write: Write = os.writev,
        now_seconds: Callable[[], float] = time.time,
    ) -> None:
        self.environment = environment
        """What tells the stores apart that locations may mean here, beside what plans say."""
        self._path = Path(directory)
        self._max_bytes = max_bytes
        self._write = write
        self._now_seconds = now_seconds
        self._ledger = Ledger(max_bytes, BLOCK_BYTES)
        self._writer = Background(1, "floeberg-blocks")
        self._lock = threading.Lock()
        self._counts = BlockCounts()
        self._has_warned = False
        self._paused_until = 0.0
        self._written_since_look = 0
        self._files: BlockFiles | None = None
        self.pending_bytes = 0
        """How much waits to be written."""
        if self._opened() is not None:
            self._writer.submit(Job(self._look))

    # --- reading ----------------------------------------------------------------------------------

    def fill(self, of: StoredObject, start: int, target: memoryview) -> list[Range]:
        """Fill `target` with the object's bytes from `start` on, as far as they are kept; return
        the ranges that are missing, in order.
        """
        missing: list[Range] = []
        for index, first, stop in _blocks(start, len(target)):
            at = index * BLOCK_BYTES + first
            part = target[at - start : at - start + stop - first]
            if self._read(of.block(index), first, part):
                continue
            if missing and sum(missing[-1]) == at:
                at = missing.pop()[0]
            missing.append((at, index * BLOCK_BYTES + stop - at))
        return missing

    def _read(self, key: bytes, start: int, target: memoryview) -> bool:
        self._ledger.ask(key)
        files, size = self._files, None
        if files is not None:
            try:
                size = files.read(key, start, target)
            except DamagedBlock as exc:
                self._remove_damaged(files, key, exc)
            except OSError as exc:
                self._fail(exc)
        if size is None:
            self._count(misses=1)
            return False
        self._ledger.find(key, size)
        self._count(hits=1, read_bytes=len(target))
        return True

    def _remove_damaged(self, files: BlockFiles, key: bytes, why: DamagedBlock) -> None:
        self._count(damaged=1)
        logger.warning(
            "a block on disk is damaged and was removed",
            extra={"directory": str(self._path), "block": key.hex(), "error": str(why)},
        )
        self._remove(files, key)

    def _remove(self, files: BlockFiles, key: bytes) -> None:
        self._ledger.drop(key)
        try:
            files.remove(key)
        except OSError as exc:
            self._fail(exc)

    # --- writing ----------------------------------------------------------------------------------

    def put(self, of: StoredObject, parts: Sequence[tuple[int, bytes]]) -> None:
        """Keep parts of an object, each after the place where it begins, if they are worth it.

        They are written later.
        """
        size = sum(len(data) for _, data in parts)
        if self._now_seconds() < self._paused_until:
            return
        blocks: dict[int, list[Piece]] = {}
        for start, data in parts:
            view = memoryview(data)
            for index, first, stop in _blocks(start, len(data)):
                at = index * BLOCK_BYTES + first - start
                piece = Piece(first, (view[at : at + stop - first],))
                blocks.setdefault(index, []).append(piece)
        wanted = {of.block(index): pieces for index, pieces in blocks.items()}
        for key, pieces in list(wanted.items()):
            if not self._ledger.admits(key, bytes_on_disk(HEADER_BYTES + _size(pieces))):
                del wanted[key]
        self._count(refused=len(blocks) - len(wanted))
        if not wanted:
            return
        with self._lock:
            is_behind = self.pending_bytes + size > _MOST_PENDING_BYTES
            if not is_behind:
                self.pending_bytes += size
        if is_behind:
            self._count(dropped=len(wanted))
            return
        self._writer.submit(Job(lambda: self._add(wanted, size)))

    def forget(self, of: StoredObject) -> None:
        """Keep nothing of an object, which has proved to be damaged: what is there goes at once,
        and what waits to be written when it is."""
        self._forget(of)
        self._writer.submit(Job(lambda: self._forget(of)))

    def _forget(self, of: StoredObject) -> None:
        files = self._files
        if files is not None:
            for index in of.blocks:
                self._remove(files, of.block(index))

    def _add(self, blocks: dict[bytes, list[Piece]], size: int) -> None:
        try:
            for key, pieces in blocks.items():
                files = self._opened()
                if files is None or self._now_seconds() < self._paused_until:
                    return
                try:
                    self._add_block(files, key, pieces)
                except OSError as exc:
                    self._fail(exc)
                    self._paused_until = self._now_seconds() + _PAUSE_SECONDS
                    if exc.errno == errno.ENOENT:
                        self._files = None  # it is gone: the next one makes it anew
        finally:
            with self._lock:
                self.pending_bytes -= size

    def _add_block(self, files: BlockFiles, key: bytes, pieces: Sequence[Piece]) -> None:
        added = files.add(key, pieces)
        if added is None:
            return
        written, on_disk = added
        for victim in self._ledger.keep(key, on_disk):
            files.remove(victim)
            self._count(evictions=1)
        self._count(written_bytes=written)
        self._written_since_look += on_disk
        if self._written_since_look > self._max_bytes // 16:  # others write as well
            self._look()

    # --- the directory ----------------------------------------------------------------------------

    def _opened(self) -> BlockFiles | None:
        if self._files is None and self._now_seconds() >= self._paused_until:
            try:
                self._files = BlockFiles(self._path, self._write, self._now_seconds)
            except OSError as exc:
                self._fail(exc)
                self._paused_until = self._now_seconds() + _PAUSE_SECONDS
        return self._files

    def _look(self) -> None:
        """See what is in the directory, and remove what is too much."""
        files = self._files
        self._written_since_look = 0
        if files is None:
            return
        try:
            for victim in self._ledger.replace(files.all()):
                files.remove(victim)
                self._count(evictions=1)
        except OSError as exc:
            self._fail(exc)

    def _fail(self, error: OSError) -> None:
        self._count(failures=1)
        with self._lock:
            if self._has_warned:
                return
            self._has_warned = True
        logger.warning(
            "blocks are not kept on disk as they should be",
            extra={"directory": str(self._path), "error": str(error)},
        )

    # --- what is counted --------------------------------------------------------------------------

    def _count(self, **more: int) -> None:
        with self._lock:
            for name, count in more.items():
                setattr(self._counts, name, getattr(self._counts, name) + count)

    def counts(self) -> BlockCounts:
        with self._lock:
            return replace(self._counts)

    @property
    def hits(self) -> int:
        return self._counts.hits

    @property
    def misses(self) -> int:
        return self._counts.misses

    @property
    def size_bytes(self) -> int:
        """About how much of the disk is taken, by what is known here."""
        return self._ledger.size_bytes


def _blocks(start: int, length: int) -> Iterator[tuple[int, int, int]]:
    """Yield the blocks that a range lies in, each with where it begins and ends in the block."""
    while length > 0:
        index, first = divmod(start, BLOCK_BYTES)
        taken = min(length, BLOCK_BYTES - first)
        yield index, first, first + taken
        start += taken
        length -= taken


def _size(pieces: Sequence[Piece]) -> int:
    return sum(piece.length for piece in pieces)
