from __future__ import annotations

import logging
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from floeberg.protocol.errors import BadCommand, Denied, Unauthenticated
from floeberg.protocol.registration import (
    LeaveWorker,
    RegisterWorker,
    RenewWorker,
    WorkerAnswer,
    WorkerLoad,
    seal_registration,
)
from floeberg.protocol.sealing import Keyring
from floeberg.server.flight.members import Members
from tests.support.clock import Clock
from tests.support.workers import NOW_MS, introduction

KEYS = Keyring.generate()


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def members(clock: Clock, registry: CollectorRegistry) -> Members:
    return Members(KEYS, 10.0, registry, clock=clock, now_ms=lambda: NOW_MS)


def sealed(
    message: RegisterWorker | RenewWorker | LeaveWorker | WorkerAnswer, keys: Keyring = KEYS
) -> bytes:
    return seal_registration(message, keys, now_ms=NOW_MS)


def test_a_young_coordinator_awaits_its_first_worker(members: Members, clock: Clock) -> None:
    assert members.awaits_first()
    clock.seconds += 5.0
    assert not members.awaits_first()


def test_a_coordinator_that_has_met_a_worker_awaits_none(members: Members) -> None:
    members.register(sealed(introduction()))
    members.leave(sealed(LeaveWorker(worker_id="w1")))

    assert not members.awaits_first()


def test_why_there_are_no_workers_is_told(members: Members) -> None:
    assert "start one with" in str(members.refusal())
    members.register(sealed(introduction()))
    members.renew(sealed(RenewWorker(worker_id="w1", state="draining")))
    assert "the only worker is draining" in str(members.refusal())

    members.stop()

    assert "the coordinator is stopping" in str(members.refusal())
    assert not members.awaits_first()


def test_a_worker_registers_renews_and_leaves(members: Members) -> None:
    lease = members.register(sealed(introduction()))
    assert (lease.known, lease.lease_seconds) == (True, 10.0)
    assert [w.worker_id for w in members.ready()] == ["w1"]

    load = WorkerLoad(streams=3, bytes_in_flight=50)
    again = members.renew(sealed(RenewWorker(worker_id="w1", load=load)))
    ((member, seconds_ago),) = members.all()
    assert again == lease
    assert (member.streams, member.bytes_in_flight, seconds_ago) == (3, 50, 0.0)

    members.leave(sealed(LeaveWorker(worker_id="w1")))
    assert members.ready() == ()


def test_a_worker_that_nobody_could_dial_is_not_taken_in(members: Members) -> None:
    # as a worker of another version may send it
    wrong = introduction().model_copy(update={"location": "grpc+tcp://worker 1:8816"})

    with pytest.raises(BadCommand, match=r"'location'.*no Flight URI"):
        members.register(sealed(wrong))

    assert members.ready() == ()


def test_a_worker_that_says_nothing_is_gone_after_its_lease(
    members: Members, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    members.register(sealed(introduction("w1")))
    clock.seconds += 6
    members.register(sealed(introduction("w2")))
    clock.seconds += 4

    assert [w.worker_id for w in members.ready()] == ["w2"]
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert (record.getMessage(), record.__dict__["worker"]) == ("worker expired", "w1")


def test_a_worker_that_is_not_known_is_told_to_register(members: Members) -> None:
    assert not members.renew(sealed(RenewWorker(worker_id="w1"))).known


def test_a_draining_worker_gets_no_tasks_but_keeps_its_lease(members: Members) -> None:
    members.register(sealed(introduction()))

    lease = members.renew(sealed(RenewWorker(worker_id="w1", state="draining")))

    assert lease.known
    assert members.ready() == ()
    assert len(members.all()) == 1


def test_strangers_and_repeated_messages_are_refused(members: Members) -> None:
    mine = sealed(introduction())
    members.register(mine)

    with pytest.raises(Unauthenticated, match="only once"):
        members.register(mine)
    with pytest.raises(Unauthenticated, match="same keyring"):
        members.register(sealed(introduction("w2"), Keyring.generate()))
    with pytest.raises(Unauthenticated):
        members.leave(sealed(RenewWorker(worker_id="w1")))
    assert [w.worker_id for w in members.ready()] == ["w1"]


def answer(question: str = "q" * 24, **says: Any) -> bytes:
    return sealed(WorkerAnswer(question=question, introduction=introduction(), **says))


def test_an_answer_joins_renews_and_drains(members: Members, clock: Clock) -> None:
    members.answered(answer(load=WorkerLoad(streams=2)), "q" * 24)
    clock.seconds += 6
    members.answered(answer(load=WorkerLoad(streams=3)), "q" * 24)
    clock.seconds += 6

    ((member, seconds_ago),) = members.all()
    assert (member.worker.location, member.worker.capacity) == ("grpc+tcp://w1:8816", 8)
    assert (member.streams, seconds_ago) == (3, 6.0)
    assert len(members.ready()) == 1

    members.answered(answer(state="draining"), "q" * 24)
    assert members.ready() == ()
    members.gone("w1")
    assert members.all() == ()


def test_a_worker_that_drains_already_when_it_is_found_gets_no_tasks(members: Members) -> None:
    members.answered(answer(state="draining"), "q" * 24)

    assert members.ready() == ()
    assert len(members.all()) == 1


def test_an_answer_to_another_question_is_none(members: Members) -> None:
    with pytest.raises(Unauthenticated, match="another question"):
        members.answered(answer("p" * 24), "q" * 24)

    assert members.all() == ()


def test_a_clear_text_worker_has_no_place_next_to_tls(registry: CollectorRegistry) -> None:
    members = Members(KEYS, 10.0, registry, tls_only=True, now_ms=lambda: NOW_MS)

    with pytest.raises(Denied, match="clear text"):
        members.register(sealed(introduction()))
    with pytest.raises(Denied, match="clear text"):
        members.answered(answer(), "q" * 24)
    members.register(sealed(introduction("w2", "grpc+tls://w2:8816")))

    assert [w.worker_id for w in members.ready()] == ["w2"]


def test_workers_and_changes_are_counted(
    members: Members, clock: Clock, registry: CollectorRegistry
) -> None:
    members.register(sealed(introduction("w1")))
    members.register(sealed(introduction("w2")))
    members.renew(sealed(RenewWorker(worker_id="w2", state="draining")))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    assert value("floeberg_fleet_workers", state="ready") == 1
    assert value("floeberg_fleet_workers", state="draining") == 1
    assert value("floeberg_fleet_changes_total", change="joined") == 2
    clock.seconds += 11
    assert value("floeberg_fleet_workers", state="ready") == 0
    assert value("floeberg_fleet_changes_total", change="expired") == 2
