"""What the caches of planning count, for `/metrics`."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from floeberg.server.catalogs import Catalogs
from floeberg.server.planning import ManifestCache


class CacheMetrics(Collector):
    """The numbers of the manifest cache and of the catalogs' metadata caches, as they are when
    somebody asks."""

    def __init__(self, manifests: ManifestCache, catalogs: Catalogs) -> None:
        self._manifests = manifests
        self._catalogs = catalogs

    def collect(self) -> Iterator[Metric]:
        manifests, files = self._manifests, self._manifests.files
        yield _counter(
            "manifest_cache_hits", "Manifests and their lists found in memory.", manifests.hits
        )
        yield _counter(
            "manifest_cache_misses", "Manifests and their lists not in memory.", manifests.misses
        )
        yield _counter(
            "manifest_cache_evictions", "What memory had no room for.", manifests.evictions
        )
        yield GaugeMetricFamily(
            "floeberg_manifest_cache_bytes",
            "Memory that decoded manifests take, and files of them that are mapped.",
            manifests.size_bytes,
        )
        if files is not None:
            yield _counter("manifest_disk_hits", "Manifests found on disk.", files.hits)
            yield _counter("manifest_disk_misses", "Manifests not on disk either.", files.misses)
            yield _counter(
                "manifest_disk_written_bytes", "Decoded manifests written.", files.written_bytes
            )
            yield _counter("manifest_disk_damaged", "Files that were found damaged.", files.damaged)
            yield _counter(
                "manifest_disk_evictions", "Files removed to make room.", files.evictions
            )
        caches = self._catalogs.metadata_caches
        yield _counter(
            "metadata_cache_hits",
            "Table metadata that was known.",
            sum(cache.hits for cache in caches),
        )
        yield _counter(
            "metadata_cache_misses",
            "Table metadata that was parsed.",
            sum(cache.misses for cache in caches),
        )


def _counter(name: str, help_: str, value: int) -> Metric:
    return CounterMetricFamily(f"floeberg_{name}", help_, value)
