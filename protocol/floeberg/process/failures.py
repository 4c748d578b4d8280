"""Count the calls that failed, by the code of their error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from prometheus_client import CollectorRegistry, Counter

from floeberg.protocol.errors import known_codes
from floeberg.protocol.flight_errors import from_flight


class Failures:
    """Failed calls of one service. Safe to use from several threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lock = Lock()
        self._by_code: dict[str, int] = {}
        self._metric = Counter(
            "floeberg_errors",
            "Calls that failed, by the code of their error.",
            ["code"],
            registry=registry,
        )
        # Prometheus sees no increase in a series that begins with its first failure
        for code in known_codes():
            self._metric.labels(code)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what the block raises; it is raised on."""
        try:
            yield
        except Exception as error:
            code = from_flight(error).code
            with self._lock:
                self._by_code[code] = self._by_code.get(code, 0) + 1
            self._metric.labels(code).inc()
            raise

    def by_code(self) -> dict[str, int]:
        """Return how many calls failed since the start, the most frequent code first."""
        with self._lock:
            counts = dict(self._by_code)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
