"""Wait for a condition instead of for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_PAUSE_SECONDS = 0.02


def wait_until(probe: Callable[[], T | None], what: str, seconds: float = 20) -> T:
    """Return what `probe` returns as soon as that is true; fail, naming `what`, after `seconds`.

    An exception from `probe` is not a reason to go on waiting: catch there what is expected.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        time.sleep(_PAUSE_SECONDS)
