"""Databases that are opened before a statement needs one.

Opening one takes longer than many a statement. Each is used by one statement alone, and never
again.
"""

from __future__ import annotations

import threading

import duckdb

from floeberg.process.sql.connecting import new_database

_SPARES = 2
"""A part of a query and what merges the parts begin together."""


class SpareDatabases:
    """Databases for statements to come. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spares: list[duckdb.DuckDBPyConnection] = []
        self._is_filling = False

    def take(self) -> duckdb.DuckDBPyConnection:
        """Return a new database: one that was opened before, or one that is opened now."""
        with self._lock:
            if self._spares:
                return self._spares.pop()
        return new_database()

    def refill(self) -> None:
        """Open what was taken anew, in a thread of its own. To be called when a statement has
        ended: the next one then has more use for the processor."""
        with self._lock:
            if self._is_filling or len(self._spares) >= _SPARES:
                return
            self._is_filling = True
        threading.Thread(target=self._fill, name="floeberg-sql-spares", daemon=True).start()

    def _fill(self) -> None:
        try:
            while True:
                database = new_database()
                with self._lock:
                    self._spares.append(database)
                    if len(self._spares) >= _SPARES:
                        return
        finally:
            with self._lock:
                self._is_filling = False
