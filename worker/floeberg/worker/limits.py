"""What a query may take, by its tickets."""

from __future__ import annotations

from collections.abc import Callable

from floeberg.protocol.errors import LimitExceeded
from floeberg.protocol.tickets import StreamLimits
from floeberg.worker.query_rows import QueryRows


class QueryLimits:
    """Holds one stream to what its ticket says that `query`, by its id, may take."""

    def __init__(
        self,
        limits: StreamLimits,
        query: str,
        query_rows: QueryRows,
        now_ms: Callable[[], int],
    ) -> None:
        self._limits = limits
        self._query = query
        self._query_rows = query_rows
        self._now_ms = now_ms

    def check(self) -> None:
        limits = self._limits
        if limits.until_ms is not None and self._now_ms() >= limits.until_ms:
            raise LimitExceeded("seconds", limits.seconds or 0, "the query has had its time")
        if limits.rows is not None and self._query_rows.is_stopped(self._query):
            raise self._too_many_rows(limits.rows)

    def take(self, rows: int) -> None:
        """Let `rows` more pass."""
        allowed = self._limits.rows
        if allowed is not None and self._query_rows.add(self._query, rows) > allowed:
            raise self._too_many_rows(allowed)

    def _too_many_rows(self, allowed: int) -> LimitExceeded:
        return LimitExceeded(
            "rows", allowed, "the query has been given all of its rows, and there are more"
        )
