"""What a worker counts, for `/metrics`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from floeberg.worker.blocks import BlockCache
from floeberg.worker.budget import Budget
from floeberg.worker.cache import LoadingCache


class WorkerMetrics:
    """The worker's own numbers, in `registry`."""

    def __init__(
        self,
        registry: CollectorRegistry,
        budget: Budget,
        caches: Mapping[str, LoadingCache],
        blocks: BlockCache | None = None,
    ) -> None:
        registry.register(_CacheCounts(caches))
        if blocks is not None:
            registry.register(_BlockNumbers(blocks))
        self.streams_ended = Counter(
            "floeberg_worker_streams",
            "Streams that ended, by outcome: done, cancelled, failed, or refused at the start.",
            ["outcome"],
            registry=registry,
        )
        for outcome in ("done", "cancelled", "failed", "refused"):
            self.streams_ended.labels(outcome)
        self.rows = Counter("floeberg_worker_rows", "Rows sent.", registry=registry)
        self.bytes = Counter(
            "floeberg_worker_bytes", "Bytes of batches sent, uncompressed.", registry=registry
        )
        self.stream_seconds = Histogram(
            "floeberg_worker_stream_seconds",
            "How long streams lasted.",
            buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300),
            registry=registry,
        )
        running = Gauge("floeberg_worker_streams_running", "Streams under way.", registry=registry)
        running.set_function(lambda: budget.streams)
        held = Gauge(
            "floeberg_worker_bytes_in_flight",
            "Memory that streams take, or may at any moment.",
            registry=registry,
        )
        held.set_function(lambda: budget.bytes_in_flight)
        self.registered = Gauge(
            "floeberg_worker_coordinators",
            "Coordinators that this worker is registered with.",
            registry=registry,
        )


class _CacheCounts(Collector):
    """The numbers of the caches in memory, by their names, as they are when somebody asks."""

    def __init__(self, caches: Mapping[str, LoadingCache]) -> None:
        self._caches = caches

    def collect(self) -> Iterator[Metric]:
        hits = _counter("hits", "What was there, or being loaded for another stream.")
        misses = _counter("misses", "What was loaded.")
        evictions = _counter("evictions", "What was forgotten to make room.")
        size = GaugeMetricFamily(
            "floeberg_worker_cache_bytes", "About how much memory it takes.", labels=["cache"]
        )
        for name, cache in self._caches.items():
            hits.add_metric([name], cache.hits)
            misses.add_metric([name], cache.misses)
            evictions.add_metric([name], cache.evictions)
            size.add_metric([name], cache.size_bytes)
        yield from (hits, misses, evictions, size)


class _BlockNumbers(Collector):
    """The numbers of the cache on disk, as they are when somebody asks."""

    def __init__(self, blocks: BlockCache) -> None:
        self._blocks = blocks

    def collect(self) -> Iterator[Metric]:
        counts = self._blocks.counts()
        for name, help_, value in (
            ("hits", "Parts of blocks that were on disk.", counts.hits),
            ("misses", "Parts of blocks that were not.", counts.misses),
            ("read_bytes", "Bytes read.", counts.read_bytes),
            ("written_bytes", "Bytes written.", counts.written_bytes),
            ("evictions", "Blocks removed to make room.", counts.evictions),
            ("damaged", "Blocks that were found damaged.", counts.damaged),
            ("refused", "Blocks not asked for often enough.", counts.refused),
            ("dropped", "Blocks not kept as too much waited to be written.", counts.dropped),
            ("failures", "What the disk did not do.", counts.failures),
        ):
            yield CounterMetricFamily(f"floeberg_block_cache_{name}", help_, value)
        for name, help_, value in (
            ("bytes", "About how much is on disk.", self._blocks.size_bytes),
            ("pending_bytes", "What waits to be written.", self._blocks.pending_bytes),
        ):
            yield GaugeMetricFamily(f"floeberg_block_cache_{name}", help_, value)


def _counter(name: str, help_: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"floeberg_worker_cache_{name}", help_, labels=["cache"])
