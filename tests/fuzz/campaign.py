"""Many examples in several processes."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.fuzz.running import generated


def failures(seed: int, numbers: Sequence[int], jobs: int) -> Iterator[tuple[int, str | None]]:
    """Yield each example's number, and what is wrong with it or None, as they are done."""
    # not forked: pyarrow's threads do not survive it
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawning) as pool:
        try:
            waiting = [pool.submit(_example, seed, number) for number in numbers]
            for done in as_completed(waiting):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _example(seed: int, number: int) -> tuple[int, str | None]:
    try:
        _, found = generated(seed, number)
    except Exception:  # a mistake of this package; it must not end the others
        return number, "could not be made\n" + traceback.format_exc()
    return number, None if found is None else found.what
