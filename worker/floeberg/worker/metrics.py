"""What a worker counts, for `/metrics`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from floeberg.worker.budget import Budget
from floeberg.worker.cache import LoadingCache


class WorkerMetrics:
    """The worker's own numbers, in `registry`."""

    def __init__(
        self, registry: CollectorRegistry, budget: Budget, caches: Mapping[str, LoadingCache]
    ) -> None:
        registry.register(_CacheCounts(caches))
        self.streams_ended = Counter(
            "floeberg_worker_streams",
            "Streams that ended, by outcome: done, cancelled, failed, or refused at the start.",
            ["outcome"],
            registry=registry,
        )
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


def _counter(name: str, help_: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"floeberg_worker_cache_{name}", help_, labels=["cache"])
