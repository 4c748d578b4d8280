"""What renewing lent credentials counts, for `/metrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from floeberg.process.storage.renewals import Renewals


class RenewalMetrics(Collector):
    """The numbers of a process's renewals, under `name`, as they are when somebody asks."""

    def __init__(self, name: str, renewals: Callable[[], Sequence[Renewals]]) -> None:
        self._name = name
        self._renewals = renewals

    def collect(self) -> Iterator[Metric]:
        counted = CounterMetricFamily(
            self._name,
            "Credentials that were lent for a table and had to be renewed, by outcome.",
            labels=["outcome"],
        )
        renewals = self._renewals()
        counted.add_metric(["renewed"], sum(r.renewed for r in renewals))
        counted.add_metric(["failed"], sum(r.failed for r in renewals))
        yield counted
