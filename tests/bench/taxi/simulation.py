"""A model of streams that share workers and clients, as flows: no packets, no batches.

A stream is work for several resources at the same time, such as a worker's cores and a client's,
which pass its batches along: it is as far at the one as at the other. What a resource has is shared
by those that want it; no stream goes faster than the slowest of its own threads. A client reads a
few streams at once, in their order, and each begins some time after it was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_PASSES = 5
"""How often what streams leave unused is given to others; each leaves less of it."""
_RESOLUTION_SECONDS = 0.001
"""What happens within this time happens at once."""
_DONE = 1e-9

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Flow:
    """A stream: core seconds that it takes of each resource, by the resource's name, and its
    client. `longest` is the core seconds of its longest thread: it takes no less time than that.
    """

    client: str
    work: Mapping[str, float]
    longest: float


@dataclass(frozen=True)
class Asking:
    """A client: when its plan is there, how many streams it reads at once, and how long each takes
    to begin."""

    planned: float = 0.0
    at_once: int = 8
    delay: float = 0.0


def ends(
    flows: Sequence[Flow], cores: Mapping[str, float], clients: Mapping[str, Asking]
) -> dict[str, float]:
    """Return when each client has read the last of its streams.

    `cores` says how many core seconds each resource has in a second. Streams of a client are read
    in the order in which they come in `flows`.

    >>> flows = [Flow("c", {"w": 1.0}, 1.0), Flow("c", {"w": 1.0}, 1.0)]
    >>> {name: round(end, 6) for name, end in ends(flows, {"w": 1}, {"c": Asking()}).items()}
    {'c': 2.0}
    >>> {name: round(end, 6) for name, end in ends(flows, {"w": 2}, {"c": Asking()}).items()}
    {'c': 1.0}
    """
    return _Run(flows, cores, clients).to_the_end()


class _Run:
    def __init__(
        self, flows: Sequence[Flow], cores: Mapping[str, float], clients: Mapping[str, Asking]
    ) -> None:
        self._clients = clients
        self._flows = flows
        names = list(cores)
        places = {name: place for place, name in enumerate(names)}
        self._capacity: _Floats = np.array([cores[name] for name in names], dtype=np.float64)
        widest = max((len(flow.work) for flow in flows), default=1)
        # what a flow does not need is its first resource once more, with no work
        self._resource: npt.NDArray[np.int64] = np.zeros((len(flows), widest), dtype=np.int64)
        self._work: _Floats = np.zeros((len(flows), widest))
        for number, flow in enumerate(flows):
            for column, (name, work) in enumerate(flow.work.items()):
                self._resource[number, column] = places[name]
                self._work[number, column] = work
        self._fastest: _Floats = np.array([1 / max(flow.longest, _DONE) for flow in flows])
        self._left: _Floats = np.ones(len(flows))

    def to_the_end(self) -> dict[str, float]:
        waiting: dict[str, list[int]] = {name: [] for name in self._clients}
        for number in reversed(range(len(self._flows))):
            waiting[self._flows[number].client].append(number)
        # streams that were asked for, and when they begin
        starting: dict[int, float] = {}
        for name, asking in self._clients.items():
            for _ in range(min(asking.at_once, len(waiting[name]))):
                starting[waiting[name].pop()] = asking.planned + asking.delay
        found = {name: asking.planned for name, asking in self._clients.items()}
        running: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        now = 0.0
        while starting or len(running):
            rates = self._rates(running)
            next_start = min(starting.values(), default=np.inf)
            remaining = self._left[running] / rates
            next_end = float(remaining.min()) if len(running) else np.inf
            step = min(next_end, max(next_start - now, 0.0))
            now += step
            self._left[running] -= rates * step
            is_done = remaining - step <= _RESOLUTION_SECONDS
            done, running = running[is_done], running[~is_done]
            for number in done.tolist():
                name = self._flows[number].client
                found[name] = now
                if waiting[name]:
                    starting[waiting[name].pop()] = now + self._clients[name].delay
            soon = now + _RESOLUTION_SECONDS
            begun = [number for number, at in starting.items() if at <= soon]
            for number in begun:
                del starting[number]
            running = np.concatenate([running, np.array(begun, dtype=np.int64)])
        return found

    def _rates(self, running: npt.NDArray[np.int64]) -> _Floats:
        """Return which part of itself each running stream does in a second: an equal share of each
        resource at first, and then of what others leave of theirs."""
        resource, work = self._resource[running], self._work[running]
        has_work = work > 0
        sharing: Any = np.bincount(resource[has_work], minlength=len(self._capacity))
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = self._capacity[resource] / (sharing[resource] * work)
        equal = np.where(has_work, shares, np.inf).min(axis=1, initial=np.inf)
        rates: _Floats = np.minimum(self._fastest[running], equal)
        for _ in range(_PASSES):
            # nobody has asked for more than there is so far, so this is 1 or more
            free = self._capacity / np.maximum(self._wanted(resource, work, rates), _DONE)
            raised = np.where(has_work, free[resource], np.inf).min(axis=1, initial=np.inf)
            rates = np.minimum(self._fastest[running], rates * raised)
        return rates

    def _wanted(self, resource: npt.NDArray[np.int64], work: _Floats, rates: _Floats) -> _Floats:
        wanted: Any = np.bincount(
            resource.ravel(), (work * rates[:, None]).ravel(), minlength=len(self._capacity)
        )
        return np.asarray(wanted, dtype=np.float64)
