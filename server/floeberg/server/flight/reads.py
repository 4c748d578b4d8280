"""How far queries are read, from what workers say of their streams with each renewal."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from floeberg.protocol.registration import StreamReport
from floeberg.protocol.status import ReadFacts

_QUERIES = 512
_SILENT_SECONDS = 60.0
"""A stream of which nothing more is heard for so long has gone with its worker."""


@dataclass(frozen=True, slots=True)
class _Heard:
    report: StreamReport
    at: float


class Reads:
    """What is known of the reading of the last queries. Safe to use from several threads.

    A stream is reported again and again while it runs, and for a while after its end.
    """

    def __init__(self, now_seconds: Callable[[], float] = time.monotonic) -> None:
        self._now_seconds = now_seconds
        self._lock = threading.Lock()
        self._queries: OrderedDict[str, dict[str, _Heard]] = OrderedDict()

    def hear(self, reports: Iterable[StreamReport]) -> tuple[str, ...]:
        """Take what a worker says of its streams. Returns which of their queries have all the rows
        that they may, in all streams together.
        """
        now = self._now_seconds()
        limits: dict[str, int] = {}
        with self._lock:
            for report in reports:
                streams = self._queries.setdefault(report.query_id, {})
                streams[report.stream_id] = _Heard(report, now)
                self._queries.move_to_end(report.query_id)
                if report.max_rows is not None:
                    limits[report.query_id] = report.max_rows
            over = tuple(q for q, rows in limits.items() if self._rows(q) > rows)
            while len(self._queries) > _QUERIES:
                self._queries.popitem(last=False)
        return over

    def _rows(self, query_id: str) -> int:
        return sum(heard.report.rows for heard in self._queries[query_id].values())

    def of(self, query_id: str) -> ReadFacts | None:
        """Return how far a query is read, None where no worker has said a thing of it."""
        with self._lock:
            heard = tuple(self._queries.get(query_id, {}).values())
        if not heard:
            return None
        horizon = self._now_seconds() - _SILENT_SECONDS
        reports = [h.report for h in heard]
        return ReadFacts(
            running=sum(h.report.outcome is None and h.at >= horizon for h in heard),
            done=sum(r.outcome == "done" for r in reports),
            tasks=sum(r.tasks for r in reports),
            rows=sum(r.rows for r in reports),
            bytes=sum(r.bytes for r in reports),
        )
