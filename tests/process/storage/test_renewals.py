"""Credentials are renewed in good time, once at a time, and old ones serve while they live."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from floeberg.process.storage.credentials import expiry_ms, properties_for
from floeberg.process.storage.renewals import Renewals
from floeberg.protocol.errors import (
    CatalogUnavailable,
    CredentialsUnavailable,
    ExpiredCredentials,
    ExpiredTicket,
    FloebergError,
    UnknownTable,
)
from floeberg.protocol.storage import StorageConfig, StorageCredential

MINUTE = 60_000
TABLE = "lake.db.t"


def lent(key: str, ends_ms: int | None = None) -> StorageConfig:
    ends = {} if ends_ms is None else {"s3.session-token-expires-at-ms": str(ends_ms)}
    return StorageConfig({"s3.access-key-id": key, "s3.secret-access-key": "hunter2", **ends})


@dataclass
class Lender:
    """Lends credentials that are good for `life_ms`, counts, fails and waits as it is told."""

    life_ms: int | None = 60 * MINUTE
    now_ms: int = 1_000_000
    asked: int = 0
    error: Exception | None = None
    same: bool = False
    blocked: threading.Event | None = None
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        self.renewals = Renewals(10 * MINUTE, now_ms=lambda: self.now_ms, jitter=lambda: 1.0)

    def renew(self) -> StorageConfig:
        self.asked += 1
        self.begun.release()
        if self.blocked is not None:
            self.blocked.wait()
        if self.error is not None:
            raise self.error
        ends = None if self.life_ms is None else self.now_ms + self.life_ms
        return lent("same" if self.same else f"fresh-{self.asked}", ends)

    def current(self, seen: StorageConfig) -> str:
        return key_of(self.renewals.current(TABLE, seen, self.renew))

    def after_refusal(self, refused: StorageConfig) -> str:
        return key_of(self.renewals.after_refusal(TABLE, refused, self.renew))

    def lent(self, key: str, life_ms: int | None) -> StorageConfig:
        return lent(key, None if life_ms is None else self.now_ms + life_ms)


def key_of(config: StorageConfig) -> str:
    return config.properties["s3.access-key-id"]


@pytest.fixture
def lender() -> Lender:
    return Lender()


# --- in good time --------------------------------------------------------------------------------


@pytest.mark.parametrize("life_ms", [11 * MINUTE, None])
def test_what_is_good_for_a_while_is_used_as_it_is(lender: Lender, life_ms: int | None):
    assert lender.current(lender.lent("seen", life_ms)) == "seen"
    assert lender.asked == 0


@pytest.mark.parametrize("life_ms", [10 * MINUTE, 1, 0, -MINUTE])
def test_what_ends_soon_or_has_ended_is_renewed_once_for_all_who_come(lender: Lender, life_ms: int):
    seen = lender.lent("seen", life_ms)

    assert [lender.current(seen) for _ in range(3)] == ["fresh-1"] * 3
    assert lender.asked == 1
    assert lender.renewals.renewed == 1


def test_renewed_credentials_are_renewed_in_their_turn(lender: Lender):
    seen = lender.lent("seen", MINUTE)
    assert lender.current(seen) == "fresh-1"

    lender.now_ms += 49 * MINUTE
    assert lender.current(seen) == "fresh-1"
    lender.now_ms += 2 * MINUTE
    assert lender.current(seen) == "fresh-2"


def test_the_margin_is_no_more_than_half_of_what_a_renewal_gives(lender: Lender):
    lender.life_ms = 4 * MINUTE
    seen = lender.lent("seen", MINUTE)
    assert lender.current(seen) == "fresh-1"

    lender.now_ms += 2 * MINUTE - 1000
    assert lender.current(seen) == "fresh-1"
    lender.now_ms += 2000
    assert lender.current(seen) == "fresh-2"


def test_a_lender_that_has_nothing_new_is_not_asked_all_the_time(lender: Lender):
    lender.life_ms, lender.same = 3 * MINUTE, True
    seen = lender.lent("seen", 2 * MINUTE)

    for _ in range(100):
        lender.current(seen)
    assert lender.asked == 1


def test_a_ticket_that_is_older_does_not_push_out_what_lasts_longer(lender: Lender):
    dead, alive = lender.lent("dead", -1), lender.lent("alive", 11 * MINUTE)

    assert lender.current(dead) == "fresh-1"
    assert lender.current(alive) == "alive"
    lender.now_ms += 2 * MINUTE
    assert lender.current(alive) == "fresh-1"
    assert lender.asked == 1


def test_only_the_credentials_that_are_needed_have_to_be_good(lender: Lender):
    now = lender.now_ms
    ended = StorageCredential("s3://b/metadata", dict(lent("m", now - 1).properties))
    good = StorageCredential("s3://b/data", dict(lent("d", now + 60 * MINUTE).properties))
    seen = StorageConfig({}, credentials=(ended, good))

    def of_data(config: StorageConfig) -> int | None:
        return expiry_ms(properties_for("s3://b/data/x", config))

    assert lender.renewals.current(TABLE, seen, lender.renew, of_data) is seen
    assert lender.asked == 0
    lender.renewals.current(TABLE, seen, lender.renew)
    assert lender.asked == 1


def test_tables_are_renewed_by_themselves_and_the_oldest_forgotten(lender: Lender):
    lender.renewals = Renewals(10 * MINUTE, now_ms=lambda: lender.now_ms, max_tables=2)
    seen = lender.lent("seen", MINUTE)

    for table in ("a", "b", "c", "b", "c"):
        lender.renewals.current(table, seen, lender.renew)
    assert lender.asked == 3
    assert lender.renewals.held("a") is None
    lender.renewals.current("a", seen, lender.renew)
    assert lender.asked == 4


# --- when renewing fails -------------------------------------------------------------------------


def test_what_still_lives_goes_on_and_the_lender_is_asked_less_and_less(lender: Lender):
    lender.error = CatalogUnavailable("away")
    seen = lender.lent("seen", 9 * MINUTE)
    asked_at = []

    for _ in range(400):
        before = lender.asked
        assert lender.current(seen) == "seen"
        if lender.asked > before:
            asked_at.append(lender.now_ms)
        lender.now_ms += 1000
    assert [b - a for a, b in pairwise(asked_at)][:8] == [
        *(1000, 2000, 4000, 8000, 16_000, 32_000),
        *(60_000, 60_000),
    ]
    assert lender.renewals.failed == lender.asked

    lender.error = None
    lender.now_ms += MINUTE
    assert lender.current(seen).startswith("fresh")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CatalogUnavailable("the catalog is away"), CredentialsUnavailable),
        (UnknownTable("lake.db.t"), ExpiredCredentials),
    ],
)
def test_what_has_ended_and_is_not_renewed_is_an_error_that_says_why(
    lender: Lender, error: FloebergError, expected: type[FloebergError]
):
    lender.error = error
    seen = lender.lent("seen", 0)

    for _ in range(3):
        with pytest.raises(expected, match=TABLE) as raised:
            lender.current(seen)
        assert str(error) in str(raised.value)
        assert "hunter2" not in repr(raised.value)
    assert lender.asked == 1


def test_a_ticket_that_is_too_old_to_ask_with_keeps_no_other_waiting(lender: Lender):
    lender.error = ExpiredTicket(90_000)
    seen = lender.lent("seen", 0)
    with pytest.raises(ExpiredCredentials):
        lender.current(seen)

    lender.error = None

    assert lender.current(seen) == "fresh-2"


def test_a_fault_in_renewing_is_logged_and_told(lender: Lender, caplog: pytest.LogCaptureFixture):
    lender.error = ZeroDivisionError("hunter2")
    seen = lender.lent("seen", 0)

    for _ in range(2):
        with pytest.raises(ExpiredCredentials, match="the log of this process says why") as raised:
            lender.current(seen)
        assert "hunter2" not in str(raised.value)

    assert lender.asked == 1
    assert [r.message for r in caplog.records if r.exc_info] == ["unexpected error"]


def test_a_lender_that_does_not_answer_holds_up_nobody_whose_credentials_live(lender: Lender):
    lender.renewals = Renewals(
        10 * MINUTE, now_ms=lambda: lender.now_ms, jitter=lambda: 1.0, patience_seconds=0.01
    )
    lender.blocked = threading.Event()
    seen = lender.lent("seen", MINUTE)

    assert [lender.current(seen) for _ in range(3)] == ["seen"] * 3
    lender.begun.acquire()
    assert lender.asked == 1

    lender.blocked.set()
    lender.now_ms += 2 * MINUTE
    assert lender.current(seen) == "fresh-1"
    assert lender.asked == 1


def test_who_comes_later_does_not_wait_as_well(lender: Lender):
    lender.renewals = Renewals(10 * MINUTE, now_ms=lambda: lender.now_ms, patience_seconds=0.5)
    lender.blocked = threading.Event()
    seen = lender.lent("seen", MINUTE)

    began = time.monotonic()
    assert [lender.current(seen) for _ in range(60)] == ["seen"] * 60
    assert time.monotonic() - began < 15  # of 30

    lender.blocked.set()


# --- all at once ---------------------------------------------------------------------------------


def at_once(lender: Lender, call: Callable[[], str], callers: int = 8) -> list[Future[str]]:
    """Have many call at once, and let the lender answer when all of them wait."""
    lender.blocked = threading.Event()
    waiting = threading.Barrier(callers + 1)

    def one() -> str:
        waiting.wait()
        return call()

    with ThreadPoolExecutor(callers) as pool:
        futures = [pool.submit(one) for _ in range(callers)]
        waiting.wait()
        lender.begun.acquire()
        lender.blocked.set()
    return futures


def test_all_who_need_them_wait_for_one_renewal(lender: Lender):
    seen = lender.lent("seen", -1)

    found = at_once(lender, lambda: lender.current(seen))

    assert [f.result() for f in found] == ["fresh-1"] * 8
    assert lender.asked == 1


def test_all_who_were_refused_wait_for_one_renewal(lender: Lender):
    seen = lender.lent("seen", 30 * MINUTE)

    found = at_once(lender, lambda: lender.after_refusal(seen))

    assert [f.result() for f in found] == ["fresh-1"] * 8
    assert lender.asked == 1


def test_all_who_wait_hear_of_a_failure(lender: Lender):
    lender.error = CatalogUnavailable("away")
    seen = lender.lent("seen", -1)

    found = at_once(lender, lambda: lender.current(seen))

    assert all(isinstance(f.exception(), CredentialsUnavailable) for f in found)
    assert lender.asked == 1


# --- what a store refuses ------------------------------------------------------------------------


@pytest.mark.parametrize("life_ms", [30 * MINUTE, None])
def test_what_a_store_refused_is_not_used_again(lender: Lender, life_ms: int | None):
    lender.life_ms = 20 * MINUTE  # though the refused ones would last longer
    seen = lender.lent("seen", life_ms)
    assert lender.current(seen) == "seen"

    assert lender.after_refusal(seen) == "fresh-1"

    assert lender.current(seen) == "fresh-1"
    assert lender.after_refusal(seen) == "fresh-1"
    assert lender.asked == 1


def test_a_lender_that_has_nothing_else_is_asked_again_after_a_while(lender: Lender):
    lender.same = True
    same = lender.lent("same", 60 * MINUTE)
    for _ in range(5):
        assert lender.after_refusal(same) == "same"
        assert lender.current(same) == "same"
    assert lender.asked == 1

    lender.now_ms += 11_000
    assert lender.after_refusal(same) == "same"
    assert lender.asked == 2


def test_a_failure_after_a_refusal_is_told(lender: Lender):
    lender.error = CatalogUnavailable("away")
    seen = lender.lent("seen", 30 * MINUTE)

    for _ in range(3):
        with pytest.raises(CredentialsUnavailable, match="away"):
            lender.after_refusal(seen)
    assert lender.asked == 1


def test_what_another_brings_serves_though_a_renewal_failed_after_a_refusal(lender: Lender):
    lender.error, lender.blocked = CatalogUnavailable("away"), threading.Event()
    refused, anothers = lender.lent("refused", 30 * MINUTE), lender.lent("anothers", 40 * MINUTE)

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(lender.after_refusal, refused)
        lender.begun.acquire()
        found = lender.current(anothers)
        lender.blocked.set()

    assert [found, waiting.result()] == ["anothers"] * 2
