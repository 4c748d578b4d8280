"""What a coordinator tells of itself and its fleet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from floeberg.process.certificates import TlsFiles
from floeberg.process.failures import Failures
from floeberg.process.version import floeberg_version
from floeberg.protocol.status import CacheEntry, CatalogEntry, Status, WorkerEntry
from floeberg.server.catalogs import Catalogs
from floeberg.server.flight.members import Members
from floeberg.server.flight.plan_runs import PlanRuns
from floeberg.server.flight.reads import Reads
from floeberg.server.planning import ManifestCache


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class CoordinatorFacts:
    """Gathers what a coordinator's parts know. Safe to use from several threads."""

    catalogs: Catalogs
    members: Members
    runs: PlanRuns
    reads: Reads
    outcomes: dict[str, int]
    manifests: ManifestCache
    failures: Failures
    tls_files: TlsFiles
    is_draining: Callable[[], bool] = lambda: False
    now_ms: Callable[[], int] = _now_ms
    started_ms: int = field(default_factory=_now_ms)

    def status(self) -> Status:
        now_ms = self.now_ms()
        return Status(
            coordinator_id=self.members.coordinator_id,
            version=floeberg_version(),
            state="draining" if self.is_draining() else "ready",
            started_ms=self.started_ms,
            uptime_seconds=(now_ms - self.started_ms) / 1000,
            workers=tuple(self._workers(now_ms)),
            catalogs=tuple(
                CatalogEntry(
                    name=name,
                    kind=self.catalogs.get(name).kind,
                    is_default=name == self.catalogs.default.name,
                )
                for name in self.catalogs.names
            ),
            queries=dict(self.outcomes),
            plans=self.runs.running(),
            recent=tuple(
                query.model_copy(update={"read": self.reads.of(query.query_id)})
                for query in self.runs.recent()
            ),
            caches=tuple(self._caches()),
            errors=self.failures.by_code(),
            certificates=self.tls_files.entries(),
        )

    def _workers(self, now_ms: int) -> Iterator[WorkerEntry]:
        for member, seconds_ago in self.members.all():
            worker = member.worker
            yield WorkerEntry(
                worker_id=worker.worker_id,
                location=worker.location,
                state=member.state.value,
                version=worker.version,
                zone=worker.zone,
                http_address=worker.http_address,
                max_streams=worker.capacity,
                streams=member.streams,
                max_bytes=worker.max_bytes,
                bytes_in_flight=member.bytes_in_flight,
                last_seen_ms=now_ms - int(seconds_ago * 1000),
                lease_seconds=max(0.0, member.lease_until - member.seen_at - seconds_ago),
                rows_per_second=member.rows_per_second,
                bytes_per_second=member.bytes_per_second,
            )

    def _caches(self) -> Iterator[CacheEntry]:
        manifests, files = self.manifests, self.manifests.files
        yield CacheEntry(
            name="manifests in memory",
            hits=manifests.hits,
            misses=manifests.misses,
            size_bytes=manifests.size_bytes,
        )
        if files is not None:
            yield CacheEntry(name="manifests on disk", hits=files.hits, misses=files.misses)
        metadata = self.catalogs.metadata_caches
        yield CacheEntry(
            name="table metadata",
            hits=sum(cache.hits for cache in metadata),
            misses=sum(cache.misses for cache in metadata),
        )
