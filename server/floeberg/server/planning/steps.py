"""Take the time of a plan's steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from floeberg.process.tracing import span


@dataclass(frozen=True, slots=True)
class Step:
    """How long one step took, waiting included."""

    name: str
    seconds: float


class Stopwatch:
    """Adds up the seconds of steps by their names, in the order in which they first began.

    Steps of one thread, one after the other. `enter` is called with the name of each that begins.
    Each is a span of its own.

    >>> readings = iter([0.0, 1.5, 2.0, 2.5])
    >>> watch = Stopwatch(lambda: next(readings))
    >>> for _ in range(2):
    ...     with watch.step("fetch"):
    ...         pass
    >>> watch.steps
    (Step(name='fetch', seconds=2.0),)
    """

    def __init__(
        self,
        now_seconds: Callable[[], float] = time.perf_counter,
        enter: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._now_seconds = now_seconds
        self._enter = enter
        self._seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time the block; one that raises counts too."""
        self._enter(name)
        began = self._now_seconds()
        self._seconds.setdefault(name, 0.0)
        try:
            with span(name):
                yield
        finally:
            self._seconds[name] += self._now_seconds() - began

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(Step(name, seconds) for name, seconds in self._seconds.items())
