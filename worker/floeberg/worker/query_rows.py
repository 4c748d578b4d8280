"""How many rows a worker has given to queries that may have no more than so many."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

_QUERIES = 4096


class QueryRows:
    """Counts by query, over all its streams of this worker, also those that were resumed or read
    twice. Remembers the last queries. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: OrderedDict[str, int] = OrderedDict()
        self._over: OrderedDict[str, None] = OrderedDict()

    def add(self, query: str, rows: int) -> int:
        """Count `rows` more, and return how many the query has been given."""
        with self._lock:
            total = self._rows[query] = self._rows.pop(query, 0) + rows
            while len(self._rows) > _QUERIES:
                self._rows.popitem(last=False)
            return total

    def stop(self, queries: Iterable[str]) -> None:
        """Take notice that queries have all they may, with what other workers gave them."""
        with self._lock:
            for query in queries:
                self._over[query] = None
            while len(self._over) > _QUERIES:
                self._over.popitem(last=False)

    def is_stopped(self, query: str) -> bool:
        return query in self._over
