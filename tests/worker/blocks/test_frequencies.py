"""Counts are never too low until they are halved, and seldom too high."""

from __future__ import annotations

import hashlib

from floeberg.worker.blocks.frequencies import Frequencies


def digest(thing: object) -> bytes:
    return hashlib.sha256(repr(thing).encode()).digest()


def test_counts_what_was_added() -> None:
    frequencies = Frequencies(1000)
    for i in range(600):
        for _ in range(i % 5):
            frequencies.add(digest(i))

    found = [frequencies.of(digest(i)) for i in range(600)]

    assert all(count >= i % 5 for i, count in enumerate(found))
    assert sum(count != i % 5 for i, count in enumerate(found)) < 20


def test_counts_to_15_and_no_further() -> None:
    frequencies = Frequencies(1000)
    for _ in range(100):
        frequencies.add(digest("hot"))

    assert frequencies.of(digest("hot")) == 15


def test_what_is_not_asked_for_any_more_is_forgotten() -> None:
    frequencies = Frequencies(200)
    for _ in range(15):
        frequencies.add(digest("once popular"))
    for i in range(20_000):
        frequencies.add(digest(i % 3))

    assert frequencies.of(digest("once popular")) < 2
    assert frequencies.of(digest(1)) >= 7
