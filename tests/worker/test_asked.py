from __future__ import annotations

import pytest

from floeberg.protocol.errors import Unauthenticated
from floeberg.protocol.registration import (
    AskWorker,
    ReplayGuard,
    WorkerAnswer,
    WorkerLoad,
    open_registration,
    seal_registration,
)
from floeberg.protocol.sealing import Keyring
from floeberg.worker.asked import Answers
from tests.support.clock import Clock
from tests.support.workers import NOW_MS, introduction

KEYS = Keyring.generate()
ME = introduction()
LOAD = WorkerLoad(streams=2, bytes_in_flight=30)


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def answers(clock: Clock) -> Answers:
    return Answers(KEYS, lambda: ME, lambda: LOAD, clock=clock, now_ms=lambda: NOW_MS)


def question(coordinator: str = "c1", keys: Keyring = KEYS, location: str | None = None) -> bytes:
    ask = AskWorker(
        coordinator_id=coordinator, question="q" * 24, lease_seconds=10.0, location=location
    )
    return seal_registration(ask, keys, now_ms=NOW_MS)


def opened(raw: bytes) -> WorkerAnswer:
    return open_registration(WorkerAnswer, raw, KEYS, ReplayGuard(), now_ms=NOW_MS)


def test_who_asks_is_told_who_this_is_and_has_it_for_a_lease(
    answers: Answers, clock: Clock
) -> None:
    answer = opened(answers.answer(question()))

    assert answer == WorkerAnswer(question="q" * 24, introduction=ME, load=LOAD)
    assert answers.askers == ("c1",)
    clock.seconds += 10
    assert answers.askers == ()


def test_what_a_coordinator_says_of_queries_is_passed_on() -> None:
    over: list[str] = []
    answers = Answers(KEYS, lambda: ME, lambda: LOAD, over.extend, now_ms=lambda: NOW_MS)
    ask = AskWorker(coordinator_id="c1", question="q" * 24, lease_seconds=10.0, over=("q1", "q2"))

    answers.answer(seal_registration(ask, KEYS, now_ms=NOW_MS))

    assert over == ["q1", "q2"]


def test_strangers_and_repeated_questions_get_no_answer(answers: Answers) -> None:
    mine = question()
    answers.answer(mine)

    for raw, why in ((mine, "only once"), (question(keys=Keyring.generate()), "same keyring")):
        with pytest.raises(Unauthenticated, match=why):
            answers.answer(raw)


def test_a_draining_worker_waits_for_every_coordinator_that_has_it_to_ask(
    answers: Answers, clock: Clock
) -> None:
    for coordinator in ("c1", "c2"):
        answers.answer(question(coordinator))
    answers.drain()

    assert not answers.all_know_of_draining
    assert opened(answers.answer(question("c1"))).state == "draining"
    assert not answers.all_know_of_draining
    clock.seconds += 10  # what has not asked for a lease is gone itself

    assert answers.all_know_of_draining


def test_a_worker_that_nobody_asked_needs_nobody_to_know(answers: Answers) -> None:
    answers.drain()

    assert answers.all_know_of_draining


def test_coordinators_are_known_by_where_they_are_for_as_long_as_they_have_this_worker(
    answers: Answers, clock: Clock
) -> None:
    here, there = "grpc+tcp://lake:8815", "grpc+tcp://other:8815"
    for coordinator, location in (("c1", here), ("c2", here), ("c3", None), ("c4", there)):
        answers.answer(question(coordinator, location=location))

    assert answers.locations == (here, there)
    clock.seconds += 9
    answers.answer(question("c4", location=there))
    clock.seconds += 2
    assert answers.locations == (there,)
