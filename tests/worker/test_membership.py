from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.errors import FloebergError, ServerUnavailable, Unauthenticated
from floeberg.protocol.registration import (
    Lease,
    LeaveWorker,
    RegisterWorker,
    RenewWorker,
    WorkerLoad,
)
from floeberg.worker.membership import Membership, Message, Seat, Step
from tests.support.waiting import wait_until
from tests.support.workers import introduction

WAIT = 20.0
INTRODUCTION = introduction()

Answer = Callable[[Message], Lease | None]


def lease(seconds: float = 0.03, known: bool = True) -> Lease:
    return Lease(coordinator_id="c1", lease_seconds=seconds, known=known)


class ScriptedCoordinator:
    """Answers as the script says, and tells what it was sent."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.sent: queue.Queue[Message] = queue.Queue()
        self.closed = threading.Event()

    def send(self, message: Message, seconds: float) -> Lease | None:
        self.sent.put(message)
        return self.answer(message)

    def close(self) -> None:
        self.closed.set()

    def next_of(self, kind: type[Message]) -> Message:
        while True:
            message = self.sent.get(timeout=WAIT)
            if isinstance(message, kind):
                return message


def member_of(coordinator: ScriptedCoordinator, load: WorkerLoad | None = None) -> Membership:
    return Membership(
        INTRODUCTION,
        [("grpc+tcp://c:1", lambda: coordinator)],
        lambda: load or WorkerLoad(),
        jitter=lambda: 0.0,
    )


@pytest.fixture
def started() -> Iterator[Callable[[Membership], Membership]]:
    members: list[Membership] = []

    def start(member: Membership) -> Membership:
        member.start()
        members.append(member)
        return member

    yield start
    for member in members:
        member.leave()


Start = Callable[[Membership], Membership]


def test_a_worker_registers_and_renews_with_its_load(started: Start) -> None:
    coordinator = ScriptedCoordinator(lambda _: lease())
    load = WorkerLoad(streams=2, bytes_in_flight=30)
    member = started(member_of(coordinator, load))

    assert coordinator.sent.get(timeout=WAIT) == INTRODUCTION
    assert coordinator.sent.get(timeout=WAIT) == RenewWorker(worker_id="w1", load=load)
    assert member.seats == {"grpc+tcp://c:1": True}


def test_a_coordinator_that_restarted_gets_a_new_registration(started: Start) -> None:
    restarted = threading.Event()

    def answer(message: Message) -> Lease:
        if isinstance(message, RenewWorker) and not restarted.is_set():
            restarted.set()
            return lease(known=False)
        return lease()

    coordinator = ScriptedCoordinator(answer)
    started(member_of(coordinator))

    coordinator.next_of(RegisterWorker)
    coordinator.next_of(RenewWorker)
    coordinator.next_of(RegisterWorker)
    coordinator.next_of(RenewWorker)


@pytest.mark.parametrize(
    "error", [ServerUnavailable("refused"), Unauthenticated("another key")], ids=repr
)
def test_a_coordinator_that_fails_is_tried_again(started: Start, error: FloebergError) -> None:
    failures = iter([error, error])

    def answer(_: Message) -> Lease:
        failure = next(failures, None)
        if failure is not None:
            raise failure
        return lease()

    coordinator = ScriptedCoordinator(answer)
    started(member_of(coordinator))

    for _ in range(3):
        assert coordinator.sent.get(timeout=WAIT) == INTRODUCTION
    coordinator.next_of(RenewWorker)


def test_a_draining_worker_says_so_at_once_and_leaves(started: Start) -> None:
    coordinator = ScriptedCoordinator(lambda _: lease(seconds=3600))
    member = started(member_of(coordinator))
    coordinator.next_of(RegisterWorker)

    member.drain()
    draining = coordinator.next_of(RenewWorker)
    member.leave()

    assert isinstance(draining, RenewWorker)
    assert draining.state == "draining"
    assert coordinator.next_of(LeaveWorker) == LeaveWorker(worker_id="w1")
    assert coordinator.closed.is_set()


def test_news_of_the_load_are_told_before_the_lease_asks_for_it(started: Start) -> None:
    coordinator = ScriptedCoordinator(lambda _: lease(seconds=3600))
    load = WorkerLoad(streams=2)
    member = started(member_of(coordinator, load))
    coordinator.next_of(RegisterWorker)
    wait_until(lambda: all(member.seats.values()), "the worker to be registered")

    member.tell()

    assert coordinator.next_of(RenewWorker) == RenewWorker(worker_id="w1", load=load)


def test_what_the_coordinator_says_of_queries_is_passed_on(started: Start) -> None:
    over: queue.Queue[Sequence[str]] = queue.Queue()
    coordinator = ScriptedCoordinator(
        lambda _: Lease(coordinator_id="c1", lease_seconds=0.03, over=("q1", "q2"))
    )

    started(
        Membership(
            INTRODUCTION,
            [("grpc+tcp://c:1", lambda: coordinator)],
            WorkerLoad,
            on_over=over.put,
        )
    )

    assert over.get(timeout=WAIT) == ("q1", "q2")


def test_leaving_a_coordinator_that_never_answered_needs_no_goodbye(started: Start) -> None:
    def refuse(_: Message) -> Lease:
        raise ServerUnavailable("nobody there")

    coordinator = ScriptedCoordinator(refuse)
    member = started(member_of(coordinator))
    coordinator.next_of(RegisterWorker)

    member.leave()

    assert coordinator.closed.is_set()
    assert not any(isinstance(m, LeaveWorker) for m in list(coordinator.sent.queue))


@given(
    failures=st.integers(0, 100),
    jitter=st.floats(0, 1),
    lease_seconds=st.sampled_from([0.0, 3.0, 30.0]),
)
def test_waits_grow_and_stay_below_a_bound(
    failures: int, jitter: float, lease_seconds: float
) -> None:
    seat = Seat().granted(lease_seconds) if lease_seconds else Seat()
    for _ in range(failures):
        seat = seat.failed(jitter)
    after = seat.failed(jitter)

    assert 0 < after.wait_seconds <= min(10.0, lease_seconds / 3 or 10.0)
    assert after.wait_seconds >= seat.wait_seconds or failures == 0
    assert after.step is seat.step


def test_a_member_survives_two_lost_renewals() -> None:
    seat = Seat().granted(9.0).failed(1.0).failed(1.0)

    assert seat.is_member
    assert not seat.failed(1.0).is_member
    assert seat.unknown().step is Step.REGISTER
