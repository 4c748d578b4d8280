"""Calls into a library that may hang, given up on when their time is over."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import BoundedSemaphore, Thread
from typing import TypeVar

T = TypeVar("T")

DEADLINE_SECONDS = 30.0
"""How long a catalog is waited for where nothing else is said."""

_MAX_THREADS = 64


class BoundedCalls:
    """Runs each call in a thread of its own and waits for it no longer than `seconds`.

    Nothing can stop a thread that waits for a socket, so a call that is given up goes on until its
    library gives up too. At most `max_threads` do, after which calls fail for want of a thread.
    The threads are daemons: they hold up no exit.
    """

    def __init__(self, name: str, seconds: float, max_threads: int = _MAX_THREADS) -> None:
        self._name = name
        self._seconds = seconds
        self._threads = BoundedSemaphore(max_threads)

    def run(self, call: Callable[[], T]) -> T:
        """Return what `call` returns, or raise what it raises; `TimeoutError` when time is over."""
        if not self._threads.acquire(timeout=self._seconds):
            raise TimeoutError(f"earlier calls are still waiting after {self._seconds:g} s")
        outcome: Future[T] = Future()

        def work() -> None:
            try:
                outcome.set_result(call())
            except BaseException as exc:  # the thread's edge: it goes to the caller
                outcome.set_exception(exc)
            finally:
                self._threads.release()

        try:
            Thread(target=work, name=self._name, daemon=True).start()
        except RuntimeError:  # no thread to be had
            self._threads.release()
            raise
        try:
            return outcome.result(timeout=self._seconds)
        except TimeoutError:
            if outcome.done():
                raise
            raise TimeoutError(f"no answer within {self._seconds:g} s") from None
