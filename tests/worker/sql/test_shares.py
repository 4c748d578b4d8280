from __future__ import annotations

from threading import Thread

import pytest

from floeberg.protocol.errors import Cancelled, WorkerBusy
from floeberg.worker.sql.shares import LEAST_BYTES, Share, Shares, usable_cpus
from tests.support.waiting import wait_until

MIB = 1 << 20


def test_a_query_that_comes_alone_gets_much_and_many_get_some() -> None:
    shares = Shares(1024 * MIB, 4096 * MIB, wait_seconds=0)
    lent: list[Share] = []

    while sum(share.memory_bytes for share in lent) <= (1024 - 64) * MIB:
        lent.append(shares.lend())

    with pytest.raises(WorkerBusy, match="as many SQL queries"):
        shares.lend()
    assert lent[0].memory_bytes == 256 * MIB
    assert lent[0].spill_bytes == 1024 * MIB
    assert min(share.memory_bytes for share in lent) == LEAST_BYTES
    assert [share.threads for share in (lent[0], lent[-1])] == [8, 2]
    assert sum(share.memory_bytes for share in lent) <= 1024 * MIB
    assert sum(share.spill_bytes for share in lent) <= 4096 * MIB
    assert len(lent) >= 8


def test_a_share_comes_back_once() -> None:
    shares = Shares(1024 * MIB, 0)
    first = shares.lend()

    first.release()
    first.release()

    assert shares.lend().memory_bytes == first.memory_bytes
    assert shares.lend().memory_bytes < first.memory_bytes


def test_there_is_always_room_for_one() -> None:
    assert Shares(1, 0).lend().memory_bytes == LEAST_BYTES


def test_there_is_a_cpu() -> None:
    assert usable_cpus() >= 1


def test_parts_have_room_when_others_have_taken_all() -> None:
    shares = Shares(64 * MIB, 0, wait_seconds=0)
    shares.lend()
    parts = [shares.lend(is_part=True) for _ in range(2)]

    with pytest.raises(WorkerBusy):
        shares.lend()
    parts[0].release()
    assert shares.lend(is_part=True).memory_bytes == LEAST_BYTES


def test_a_query_waits_for_the_end_of_another() -> None:
    shares = Shares(64 * MIB, 0)
    first = shares.lend()

    # it is asked whether it is still wanted, each time that there is nothing
    assert shares.lend(check=first.release).memory_bytes == LEAST_BYTES


def test_a_query_that_is_left_does_not_wait_on() -> None:
    shares = Shares(64 * MIB, 0)
    shares.lend()

    def left() -> None:
        raise Cancelled("nobody waits")

    with pytest.raises(Cancelled):
        shares.lend(check=left)


def test_queries_get_theirs_in_turn_and_parts_before_whole_ones() -> None:
    shares = Shares(64 * MIB, 0)
    held = [shares.lend(), shares.lend(is_part=True), shares.lend(is_part=True)]
    served: list[str] = []

    def ask(name: str, *, is_part: bool = False) -> Thread:
        def wait() -> None:
            share = shares.lend(is_part=is_part)
            served.append(name)
            share.release()

        before = shares.waiting
        thread = Thread(target=wait, daemon=True)
        thread.start()
        wait_until(lambda: shares.waiting > before, "it to wait for its turn")
        return thread

    threads = [ask("first"), ask("second"), ask("a part", is_part=True)]
    held[0].release()
    for thread in threads:
        thread.join(20)

    assert served == ["a part", "first", "second"]
    assert shares.waiting == 0


def test_not_more_wait_than_may() -> None:
    shares = Shares(64 * MIB, 0, most_waiting=1)
    first = shares.lend()

    def another_comes() -> None:
        with pytest.raises(WorkerBusy):
            shares.lend()
        first.release()

    assert shares.lend(check=another_comes).memory_bytes == LEAST_BYTES
