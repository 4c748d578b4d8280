"""Databases that statements run on, one after the other.

Opening one and locking it down takes 20 ms of the processor, longer than many a statement. What a
statement makes is its connection's alone (its inputs are temporary views, and it can create nothing
else), so a database that has run one to its end is as it was. One whose statement failed or was
given up is not used again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import duckdb

from floeberg.process.sql.connecting import open_connection

_KEPT = 8
"""Idle ones, of a few MB each."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a database is locked down with, and can't be changed any more."""

    memory_bytes: int
    spill_bytes: int
    threads: int
    timezone: str


@dataclass(frozen=True, slots=True)
class _Database:
    settings: Settings
    connection: duckdb.DuckDBPyConnection
    close: Callable[[], None]


class Databases:
    """Lends each database to one statement at a time. Safe to use from several threads; `close` it.

    `spill_directory` gives a database its directory for what it does not hold in memory.
    """

    def __init__(self, spill_directory: Callable[[], AbstractContextManager[Path]] | None) -> None:
        self._spill_directory = spill_directory
        self._lock = threading.Lock()
        self._idle: list[_Database] = []
        self._closed = False

    @contextmanager
    def lend(self, settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give one statement a new connection to a database of these settings, which nobody else
        uses meanwhile. Raises duckdb.Error for an unknown timezone."""
        database = self._taken(settings) or self._opened(settings)
        with ExitStack() as stack:
            stack.callback(database.close)
            connection = database.connection.cursor()
            stack.callback(connection.close)
            yield connection
            connection.close()
            if self._kept(database):
                stack.pop_all()

    def close(self) -> None:
        """Close those that are idle, and each other one when its statement has ended."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for database in idle:
            database.close()

    def _taken(self, settings: Settings) -> _Database | None:
        with self._lock:
            for at in reversed(range(len(self._idle))):
                if self._idle[at].settings == settings:
                    return self._idle.pop(at)
        return None

    def _kept(self, database: _Database) -> bool:
        with self._lock:
            if self._closed:
                return False
            self._idle.append(database)
            # the one that has been idle for longest
            dropped = self._idle.pop(0) if len(self._idle) > _KEPT else None
        if dropped is not None:
            dropped.close()
        return True

    def _opened(self, settings: Settings) -> _Database:
        with ExitStack() as stack:
            spilling = (
                nullcontext(None) if self._spill_directory is None else self._spill_directory()
            )
            connection = open_connection(
                memory_bytes=settings.memory_bytes,
                threads=settings.threads,
                spill=stack.enter_context(spilling),
                spill_bytes=settings.spill_bytes,
                timezone=settings.timezone,
            )
            stack.callback(connection.close)
            return _Database(settings, connection, stack.pop_all().close)
