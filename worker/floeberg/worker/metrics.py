"""What a worker counts, for `/metrics`."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from floeberg.worker.budget import Budget


class WorkerMetrics:
    """The worker's own numbers, in `registry`."""

    def __init__(self, registry: CollectorRegistry, budget: Budget) -> None:
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
