"""What a worker tells of itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from floeberg.process.certificates import TlsFiles
from floeberg.process.failures import Failures
from floeberg.process.version import floeberg_version
from floeberg.protocol.registration import WorkerLoad
from floeberg.protocol.status import CacheEntry, SeatEntry, WorkerStatus
from floeberg.worker.budget import Budget
from floeberg.worker.config import WorkerConfig
from floeberg.worker.stream_log import StreamLog


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class CacheNumbers(Protocol):
    """How a cache has done since the start, and what it takes."""

    @property
    def hits(self) -> int: ...
    @property
    def misses(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...


@dataclass(frozen=True)
class WorkerFacts:
    """Gathers what a worker's parts know. Safe to use from several threads.

    `seats` gives the coordinators, and whether each has this worker.
    """

    worker_id: str
    config: WorkerConfig
    budget: Budget
    streams: StreamLog
    failures: Failures
    tls_files: TlsFiles
    caches: Mapping[str, CacheNumbers]
    seats: Callable[[], Mapping[str, bool]]
    is_draining: Callable[[], bool]
    now_ms: Callable[[], int] = _now_ms
    started_ms: int = field(default_factory=_now_ms)

    def load(self) -> WorkerLoad:
        """Return what coordinators are told with each renewal."""
        rows, size_bytes = self.streams.sent()
        return WorkerLoad(
            streams=self.budget.streams,
            bytes_in_flight=self.budget.bytes_in_flight,
            rows_sent=rows,
            bytes_sent=size_bytes,
            reports=self.streams.reports(),
        )

    def status(self, location: str, http: str) -> WorkerStatus:
        """Return all there is to tell of the worker, which is reached at `location` and `http`."""
        rows, size_bytes = self.streams.sent()
        seats = self.seats()
        return WorkerStatus(
            worker=self.worker_id,
            location=location,
            http=http,
            version=floeberg_version(),
            state="draining" if self.is_draining() else "ready",
            zone=self.config.zone,
            started_ms=self.started_ms,
            uptime_seconds=(self.now_ms() - self.started_ms) / 1000,
            streams=self.budget.streams,
            max_streams=self.config.max_streams,
            bytes_in_flight=self.budget.bytes_in_flight,
            max_bytes=self.budget.max_bytes,
            coordinators=sum(seats.values()),
            seats=tuple(
                SeatEntry(coordinator=uri, is_member=is_member) for uri, is_member in seats.items()
            ),
            rows=rows,
            bytes=size_bytes,
            ended=self.streams.ended(),
            errors=self.failures.by_code(),
            running=self.streams.running(),
            recent=self.streams.recent(),
            caches=tuple(
                CacheEntry(
                    name=name, hits=cache.hits, misses=cache.misses, size_bytes=cache.size_bytes
                )
                for name, cache in self.caches.items()
            ),
            certificates=self.tls_files.entries(),
        )
