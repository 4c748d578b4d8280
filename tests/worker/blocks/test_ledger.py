"""Room is kept for what is asked for again and again."""

from __future__ import annotations

import hashlib

from floeberg.worker.blocks.ledger import Ledger

MB = 1 << 20


def key(thing: object) -> bytes:
    return hashlib.sha256(repr(thing).encode()).digest()


def ask(ledger: Ledger, kept: set[bytes], *things: object) -> int:
    """Ask for things, each a block, and keep those that are worth it; return how many were kept
    before they were asked for."""
    hits = 0
    for block in map(key, things):
        ledger.ask(block)
        hits += block in kept
        if block not in kept and ledger.admits(block, MB):
            kept.add(block)
            kept.difference_update(ledger.keep(block, MB))
    return hits


def test_what_there_is_room_for_is_kept() -> None:
    ledger, kept = Ledger(10 * MB, MB), set[bytes]()

    ask(ledger, kept, *range(10))

    assert len(kept) == 10
    assert ledger.size_bytes == 10 * MB


def test_a_scan_of_everything_throws_out_nothing_that_is_hot() -> None:
    ledger, kept, hot = Ledger(100 * MB, MB), set[bytes](), range(80)
    for _ in range(3):
        ask(ledger, kept, *hot)

    ask(ledger, kept, *(("scan", i) for i in range(1300)))

    assert ask(ledger, kept, *hot) >= 75
    assert ledger.size_bytes <= 100 * MB


def test_of_what_is_larger_than_the_room_a_part_is_hit_each_time() -> None:
    ledger, kept = Ledger(100 * MB, MB), set[bytes]()

    hits = [ask(ledger, kept, *range(300)) for _ in range(10)]

    assert hits[0] == 0
    assert sum(hits) > 9 * 60  # of 100; the least recently used one first, none would be


def test_what_becomes_hot_takes_the_place_of_what_was() -> None:
    ledger, kept = Ledger(100 * MB, MB), set[bytes]()
    for _ in range(6):
        ask(ledger, kept, *(("before", i) for i in range(100)))

    for _ in range(40):
        ask(ledger, kept, *(("now", i) for i in range(100)))

    assert ask(ledger, kept, *(("now", i) for i in range(100))) > 90


def test_a_block_that_grows_counts_once() -> None:
    ledger = Ledger(10 * MB, MB)

    ledger.keep(key(1), 4096)
    ledger.keep(key(1), 8192)
    ledger.find(key(1), 8192)
    assert ledger.size_bytes == 8192
    ledger.drop(key(1))
    ledger.drop(key(1))

    assert ledger.size_bytes == 0


def test_what_a_look_finds_is_what_is_kept_and_the_oldest_goes_when_it_is_too_much() -> None:
    ledger = Ledger(10 * MB, MB)
    ledger.keep(key("gone"), MB)

    victims = ledger.replace([(key(i), MB) for i in range(12)])

    assert victims == [key(0), key(1)]
    assert ledger.size_bytes == 10 * MB
    ledger.ask(key("new"))
    assert not ledger.admits(key("new"), MB)  # those that are there have been asked for once too
    ledger.ask(key("new"))
    assert ledger.admits(key("new"), MB)


def test_what_is_larger_than_all_of_it_is_never_kept() -> None:
    ledger = Ledger(MB, MB)

    assert not ledger.admits(key(1), MB + 1)
