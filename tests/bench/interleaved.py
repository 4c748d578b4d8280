"""Time two or more sides of a comparison in turns, so that what the machine does meanwhile hits all
of them."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds of each round, and what the side returned (the same each time, or the run fails)."""

    seconds: tuple[float, ...]
    answer: object

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def time_in_turns(
    sides: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    before: Callable[[], object] = gc.collect,
) -> dict[str, Timing]:
    """Return the timings of every side after one unmeasured round; the sides must agree on the
    answer. With `time.process_time` as the clock, what else the machine does counts less; `before`
    is called before each side, unmeasured."""
    answers = {name: run() for name, run in sides.items()}
    if len(set(answers.values())) != 1:
        raise SystemExit(f"the sides disagree: {answers}")
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        names = list(sides)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            before()
            began = clock()
            if sides[name]() != answers[name]:
                raise SystemExit(f"{name} answers otherwise than before")
            seconds[name].append(clock() - began)
    return {name: Timing(tuple(seconds[name]), answers[name]) for name in sides}
