from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from floeberg.server.fleet import (
    AskToJoin,
    Change,
    Drain,
    Fleet,
    Grant,
    Join,
    Leave,
    Renew,
    Tell,
    Tick,
    Worker,
)

LEASE = 10.0
A = Worker("a", "grpc+tcp://a:1", capacity=4, zone="z1")
B = Worker("b", "grpc+tcp://b:1")


def test_a_worker_that_joins_is_granted_a_lease_and_serves() -> None:
    fleet = Fleet(LEASE)

    out = fleet.handle(Join(0.0, A))

    assert out == [Grant("a", LEASE), Tell(Change.JOINED, A)]
    assert fleet.serving() == (A,)


def test_a_renewed_worker_outlives_its_first_lease() -> None:
    fleet = Fleet(LEASE)
    fleet.handle(Join(0.0, A))
    fleet.handle(Renew(8.0, "a", streams=3, bytes_in_flight=77))

    fleet.handle(Tick(15.0))

    assert fleet.serving() == (A,)
    (member,) = fleet.members()
    assert (member.streams, member.bytes_in_flight, member.lease_until) == (3, 77, 18.0)


def test_a_worker_is_full_by_its_streams_or_by_its_bytes_as_it_said_last() -> None:
    fleet = Fleet(LEASE)
    fleet.handle(Join(0.0, replace(A, max_bytes=100)))
    fleet.handle(Join(0.0, B))

    assert fleet.full() == set()
    fleet.handle(Renew(1.0, "a", streams=3, bytes_in_flight=100))
    fleet.handle(Renew(1.0, "b", streams=1, bytes_in_flight=100))
    assert fleet.full() == {"a", "b"}
    fleet.handle(Renew(2.0, "a", streams=4, bytes_in_flight=99))
    fleet.handle(Renew(2.0, "b"))
    assert fleet.full() == {"a"}


def test_rates_are_those_between_two_renewals_of_one_membership() -> None:
    fleet = Fleet(LEASE)
    fleet.handle(Join(0.0, A))

    fleet.handle(Renew(2.0, "a", rows_sent=1000, bytes_sent=90_000))
    (first,) = fleet.members()
    fleet.handle(Renew(4.0, "a", rows_sent=1100, bytes_sent=100_000))
    (second,) = fleet.members()
    fleet.handle(Renew(5.0, "a", rows_sent=1100, bytes_sent=100_000))
    (idle,) = fleet.members()

    assert (first.rows_per_second, first.bytes_per_second) == (0.0, 0.0)
    assert (second.rows_per_second, second.bytes_per_second) == (50.0, 5000.0)
    assert (idle.rows_per_second, idle.bytes_per_second) == (0.0, 0.0)


def test_a_silent_worker_is_dropped_when_its_lease_ends() -> None:
    fleet = Fleet(LEASE)
    fleet.handle(Join(0.0, A))
    fleet.handle(Join(5.0, B))

    out = fleet.handle(Tick(10.0))

    assert out == [Tell(Change.EXPIRED, A)]
    assert fleet.serving() == (B,)


def test_a_dropped_worker_that_renews_is_asked_to_join() -> None:
    fleet = Fleet(LEASE)
    fleet.handle(Join(0.0, A))

    assert fleet.handle(Renew(10.0, "a")) == [Tell(Change.EXPIRED, A), AskToJoin("a")]
    assert fleet.handle(Renew(11.0, "never-seen")) == [AskToJoin("never-seen")]


def test_a_draining_worker_is_a_member_that_serves_nothing_new() -> None:
    fleet = Fleet(LEASE)
    fleet.handle(Join(0.0, A))

    out = fleet.handle(Drain(1.0, "a"))

    assert out == [Tell(Change.DRAINING, A)]
    assert fleet.serving() == ()
    assert [m.worker for m in fleet.members()] == [A]
    assert fleet.handle(Renew(2.0, "a")) == [Grant("a", LEASE)]
    assert fleet.serving() == ()


def test_a_worker_that_leaves_is_gone_at_once_and_leaving_twice_is_harmless() -> None:
    fleet = Fleet(LEASE)
    fleet.handle(Join(0.0, A))

    assert fleet.handle(Leave(1.0, "a")) == [Tell(Change.LEFT, A)]
    assert fleet.handle(Leave(1.0, "a")) == []
    assert fleet.members() == ()


def test_a_new_process_at_a_location_replaces_the_old_one() -> None:
    fleet = Fleet(LEASE)
    fleet.handle(Join(0.0, A))
    reborn = Worker("a2", A.location)

    out = fleet.handle(Join(1.0, reborn))

    assert out == [Tell(Change.REPLACED, A), Grant("a2", LEASE), Tell(Change.JOINED, reborn)]
    assert fleet.serving() == (reborn,)


def test_joining_again_changes_what_is_known_of_the_worker() -> None:
    fleet = Fleet(LEASE)
    fleet.handle(Join(0.0, A))
    larger = Worker("a", A.location, capacity=16)

    out = fleet.handle(Join(1.0, larger))

    assert out == [Grant("a", LEASE), Tell(Change.RETURNED, larger)]
    assert fleet.serving() == (larger,)
    assert fleet.members()[0].joined_at == 0.0


class FleetMachine(RuleBasedStateMachine):
    """The fleet against the plainest model: who spoke when, and who may serve."""

    def __init__(self) -> None:
        super().__init__()
        self.fleet = Fleet(LEASE)
        self.now = 0.0
        self.heard: dict[str, float] = {}
        self.draining: set[str] = set()

    ids = st.sampled_from(["a", "b", "c"])

    def _forget_the_silent(self) -> None:
        for worker_id in [w for w, at in self.heard.items() if at + LEASE <= self.now]:
            self._forget(worker_id)

    def _forget(self, worker_id: str) -> None:
        self.heard.pop(worker_id, None)
        self.draining.discard(worker_id)

    @rule(seconds=st.integers(0, 12))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        self.fleet.handle(Tick(self.now))
        self._forget_the_silent()

    @rule(worker_id=ids)
    def joins(self, worker_id: str) -> None:
        self.fleet.handle(Join(self.now, Worker(worker_id, f"grpc://{worker_id}:1")))
        self.draining.discard(worker_id)
        self.heard[worker_id] = self.now

    @rule(worker_id=ids)
    def renews(self, worker_id: str) -> None:
        out = self.fleet.handle(Renew(self.now, worker_id))
        if worker_id in self.heard:
            assert out == [Grant(worker_id, LEASE)]
            self.heard[worker_id] = self.now
        else:
            assert out == [AskToJoin(worker_id)]

    @rule(worker_id=ids)
    def drains(self, worker_id: str) -> None:
        self.fleet.handle(Drain(self.now, worker_id))
        if worker_id in self.heard:
            self.draining.add(worker_id)

    @rule(worker_id=ids)
    def leaves(self, worker_id: str) -> None:
        self.fleet.handle(Leave(self.now, worker_id))
        self._forget(worker_id)

    @invariant()
    def members_are_those_heard_of_within_a_lease(self) -> None:
        assert [m.worker.worker_id for m in self.fleet.members()] == sorted(self.heard)
        serving = [w.worker_id for w in self.fleet.serving()]
        assert serving == sorted(set(self.heard) - self.draining)


FleetMachine.TestCase.settings = settings(max_examples=40, deadline=None)
TestFleetMachine = FleetMachine.TestCase
