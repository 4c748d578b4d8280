"""Many examples, in this process or in several."""

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


def first_failure(seed: int, numbers: Sequence[int]) -> str | None:
    """Return what is wrong with the first example that fails, and how to see it made small."""
    for number in numbers:
        _, found = generated(seed, number)
        if found is not None:
            return f"{found.detail}\n{command(seed, number)}"
    return None


def command(seed: int, number: int) -> str:
    """Return the command that makes an example again."""
    return f"python -m tests.fuzz --seed {seed} --example {number}"


def _example(seed: int, number: int) -> tuple[int, str | None]:
    try:
        _, found = generated(seed, number)
    except Exception:  # a mistake of this package; it must not end the others
        return number, "could not be made\n" + traceback.format_exc()
    return number, None if found is None else found.what
