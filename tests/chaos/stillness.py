"""Notice that this machine, or all of this process, stood still: no query is late for that."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STILL_SECONDS = 10.0
"""What a thread that only waits is late by where nothing runs at all, and not where much does."""

_STEP_SECONDS = 0.1


@contextmanager
def watching(
    stood_still: Callable[[float, float], None],
    look: Callable[[], None],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Call `look` every moment until the block ends, and `stood_still` with from when until when a
    moment lasted too long, before the `look` that follows.

    Only waiting is measured, in a thread of its own: no call that takes its time is taken for a
    machine that stands still.
    """
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            since = clock()
            over.wait(_STEP_SECONDS)
            until = clock()
            if until - since > STILL_SECONDS:
                stood_still(since, until)
            look()

    thread = threading.Thread(target=watch, name="stillness", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
