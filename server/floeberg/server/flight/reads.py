"""How far queries are read, from what workers say of their streams with each renewal."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from floeberg.protocol.registration import StreamReport
from floeberg.protocol.status import ReadFacts

_QUERIES = 512
_SILENT_SECONDS = 60.0
"""A stream of which nothing more is heard for so long has gone with its worker."""


@dataclass(frozen=True, slots=True)
class _Heard:
    """The last report of a stream, and when it came; of one that ended, when that came first."""

    report: StreamReport
    at: float


class LastNews(NamedTuple):
    """What is known of the reading of a query: when there was something new `at`, and whether one
    of its streams failed or was left."""

    facts: ReadFacts
    at: float
    is_left: bool


class Reads:
    """What is known of the reading of the last queries. Safe to use from several threads.

    A stream is reported again and again while it runs, and for a while after its end. One that is
    not for `silent_seconds` has gone with its worker.
    """

    def __init__(
        self,
        now_seconds: Callable[[], float] = time.monotonic,
        silent_seconds: float = _SILENT_SECONDS,
    ) -> None:
        self._now_seconds = now_seconds
        self._silent_seconds = silent_seconds
        self._changed = threading.Condition()
        self._queries: OrderedDict[str, dict[str, _Heard]] = OrderedDict()

    def hear(self, reports: Iterable[StreamReport]) -> tuple[str, ...]:
        """Take what a worker says of its streams. Returns which of their queries have all the rows
        that they may, in all streams together.
        """
        now = self._now_seconds()
        limits: dict[str, int] = {}
        with self._changed:
            for report in reports:
                streams = self._queries.setdefault(report.query_id, {})
                before = streams.get(report.stream_id)
                if before is None or before.report.outcome is None:
                    streams[report.stream_id] = _Heard(report, now)
                self._queries.move_to_end(report.query_id)
                if report.max_rows is not None:
                    limits[report.query_id] = report.max_rows
            over = tuple(q for q, rows in limits.items() if self._rows(q) > rows)
            while len(self._queries) > _QUERIES:
                self._queries.popitem(last=False)
            self._changed.notify_all()
        return over

    def wait_for_news(self, seconds: float) -> None:
        """Return when workers have said something, or `seconds` have passed."""
        with self._changed:
            self._changed.wait(seconds)

    def running(self, principal: str | None) -> frozenset[str]:
        """Return the ids of the queries of a principal of which a stream runs."""
        horizon = self._now_seconds() - self._silent_seconds
        with self._changed:
            return frozenset(
                query_id
                for query_id, streams in self._queries.items()
                if any(
                    _runs(heard, horizon) and heard.report.principal == principal
                    for heard in streams.values()
                )
            )

    def last_news(self, query_id: str) -> LastNews | None:
        """Return what was new of a query last, None where no worker has said a thing of it."""
        with self._changed:
            heard = tuple(self._queries.get(query_id, {}).values())
        facts = self._facts(heard)
        if facts is None:
            return None
        is_left = any(h.report.outcome in ("failed", "cancelled") for h in heard)
        return LastNews(facts, max(h.at for h in heard), is_left)

    def _rows(self, query_id: str) -> int:
        return sum(heard.report.rows for heard in self._queries[query_id].values())

    def of(self, query_id: str) -> ReadFacts | None:
        """Return how far a query is read, None where no worker has said a thing of it."""
        with self._changed:
            heard = tuple(self._queries.get(query_id, {}).values())
        return self._facts(heard)

    def _facts(self, heard: Sequence[_Heard]) -> ReadFacts | None:
        if not heard:
            return None
        horizon = self._now_seconds() - self._silent_seconds
        reports = [h.report for h in heard]
        return ReadFacts(
            running=sum(_runs(h, horizon) for h in heard),
            done=sum(r.outcome == "done" for r in reports),
            tasks=sum(r.tasks for r in reports),
            rows=sum(r.rows for r in reports),
            bytes=sum(r.bytes for r in reports),
        )


def _runs(heard: _Heard, horizon: float) -> bool:
    return heard.report.outcome is None and heard.at >= horizon
