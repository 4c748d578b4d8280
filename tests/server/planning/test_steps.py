from __future__ import annotations

import pytest

from floeberg.server.planning import Step, Stopwatch


def test_a_step_that_raises_has_taken_its_time_too():
    readings = iter([1.0, 4.0])
    watch = Stopwatch(lambda: next(readings))

    with pytest.raises(ValueError, match="broken"), watch.step("fetch"):
        raise ValueError("broken")

    assert watch.steps == (Step("fetch", 3.0),)


def test_steps_are_told_in_the_order_in_which_they_first_began():
    readings = iter(range(100))
    watch = Stopwatch(lambda: float(next(readings)))

    for name in ("fetch", "prune", "fetch"):
        with watch.step(name):
            pass

    assert watch.steps == (Step("fetch", 2.0), Step("prune", 1.0))
