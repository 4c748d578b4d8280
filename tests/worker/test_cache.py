"""What is loaded once is kept, within bounds, for every thread."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from floeberg.protocol.errors import Cancelled
from floeberg.worker.cache import LoadingCache


@dataclass(frozen=True)
class Loaded:
    name: str
    size_bytes: int


def test_loads_a_thing_once() -> None:
    cache = LoadingCache()
    loads: list[str] = []

    def load() -> Loaded:
        loads.append("a")
        return Loaded("a", 1)

    assert cache.get("a", load) is cache.get("a", load)
    assert loads == ["a"]


def test_forgets_what_was_not_used_for_longest() -> None:
    cache = LoadingCache(max_bytes=10)
    loads: list[str] = []

    def get(name: str) -> None:
        def load() -> Loaded:
            loads.append(name)
            return Loaded(name, 4)

        cache.get(name, load)

    for name in "abaca":  # b goes when c comes
        get(name)
    get("b")

    assert loads == ["a", "b", "c", "b"]
    assert cache.size_bytes <= 10
    assert (cache.hits, cache.misses, cache.evictions) == (2, 4, 2)


def test_returns_what_is_too_large_to_keep() -> None:
    cache = LoadingCache(max_bytes=10)

    cache.get("small", lambda: Loaded("small", 1))

    assert cache.get("big", lambda: Loaded("big", 100)).name == "big"
    assert not cache.holds("big")
    assert cache.holds("small")
    assert cache.size_bytes == 1


def test_what_is_discarded_is_loaded_again() -> None:
    cache = LoadingCache()
    cache.get("a", lambda: Loaded("wrong", 7))

    cache.discard("a")
    cache.discard("b")

    assert cache.size_bytes == 0
    assert cache.get("a", lambda: Loaded("right", 1)).name == "right"


def test_a_failed_load_is_tried_again() -> None:
    cache = LoadingCache()

    def fail() -> Loaded:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        cache.get("a", fail)
    assert cache.get("a", lambda: Loaded("a", 1)).name == "a"


def test_threads_that_want_one_thing_share_one_load() -> None:
    cache = LoadingCache()
    started, may_finish = threading.Event(), threading.Event()
    loads: list[str] = []

    def load() -> Loaded:
        loads.append("a")
        started.set()
        assert may_finish.wait(10)
        return Loaded("a", 1)

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(cache.get, "a", load)
        assert started.wait(10)
        others = [pool.submit(cache.get, "a", load) for _ in range(2)]
        may_finish.set()
        assert {f.result(10) for f in (first, *others)} == {Loaded("a", 1)}
    assert loads == ["a"]


def test_a_load_that_was_cancelled_is_tried_again_by_who_waited_for_it() -> None:
    cache = LoadingCache()
    started, may_fail = threading.Event(), threading.Event()

    def fail() -> Loaded:
        started.set()
        assert may_fail.wait(10)
        raise Cancelled("its client is gone")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get, "a", fail)
        assert started.wait(10)
        second = pool.submit(cache.get, "a", lambda: Loaded("second", 1))
        may_fail.set()
        with pytest.raises(Cancelled):
            first.result(10)
        assert second.result(10) == Loaded("second", 1)
