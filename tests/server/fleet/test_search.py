from __future__ import annotations

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from floeberg.server.fleet import Search, SearchInstruction, Target
from floeberg.server.fleet.search import (
    Answered,
    Ask,
    Forget,
    Gone,
    Passed,
    Resolve,
    Resolved,
    Silent,
    Unresolved,
    Wanted,
    Warn,
)

LEASE = 9.0
PERIOD = LEASE / 3
NAME = "grpc://workers:8815"
A, B = Target("grpc://10.0.0.1:8815"), Target("grpc://10.0.0.2:8815")


def found_by_name(*targets: Target, at: float = 0.0) -> Search:
    """Return a search that has found these by `NAME`, and waits for their answers."""
    search = Search([], [NAME], LEASE)
    assert search.handle(Passed(at)) == [Resolve(NAME)]
    assert set(search.handle(Resolved(at, NAME, targets))) == {Ask(target) for target in targets}
    return search


def test_given_targets_and_names_are_looked_at_at_once_and_again_each_period() -> None:
    search = Search([A], [NAME], LEASE)

    assert search.handle(Passed(0.0)) == [Resolve(NAME), Ask(A)]
    assert search.due_at is None  # all is being done
    assert search.handle(Answered(1.0, A, "a")) == []
    assert search.handle(Resolved(1.5, NAME, [])) == []

    assert search.due_at == 1.0 + PERIOD
    assert search.handle(Passed(1.0 + PERIOD)) == [Ask(A)]
    assert search.handle(Passed(1.5 + PERIOD)) == [Resolve(NAME)]


def test_what_is_wanted_is_asked_at_once_but_of_who_is_silent() -> None:
    search = Search([A, B], [NAME], LEASE)
    search.handle(Passed(0.0))
    for event in (Answered(0.0, A, "a"), Silent(0.0, B, "refused"), Resolved(0.0, NAME, [])):
        search.handle(event)

    assert search.handle(Wanted(0.1)) == [Ask(A)]
    assert search.handle(Wanted(0.2)) == []  # it is being asked
    search.handle(Answered(0.2, A, "a"))
    assert search.due_at == 0.25


def test_what_fails_is_tried_again_ever_more_patiently_and_warned_of_once() -> None:
    search = Search([A], [], LEASE)
    search.handle(Passed(0.0))
    waits = []
    for n in range(6):
        out = search.handle(Silent(0.0, A, "refused"))
        assert out == ([Warn(A, "refused")] if n == 0 else [])
        waits.append(search.due_at)
        search.handle(Passed(PERIOD))

    assert waits == [0.25, 0.5, 1.0, 2.0, PERIOD, PERIOD]
    search.handle(Answered(PERIOD, A, "a"))
    search.handle(Passed(2 * PERIOD))
    assert search.handle(Silent(2 * PERIOD, A, "reset")) == [Warn(A, "reset")]


def test_a_name_that_is_not_resolved_stands_for_what_it_did_before() -> None:
    search = found_by_name(A)
    search.handle(Answered(0.0, A, "a"))
    search.handle(Passed(PERIOD))

    assert search.handle(Unresolved(PERIOD, NAME, "no answer")) == [Warn(NAME, "no answer")]
    assert search.handle(Answered(PERIOD, A, "a")) == []

    assert search.handle(Passed(3 * LEASE)) == [Resolve(NAME), Ask(A)]


def test_an_address_that_a_name_no_longer_has_is_asked_for_a_lease_on() -> None:
    search = found_by_name(A, B)
    search.handle(Answered(0.0, A, "a"))
    search.handle(Answered(0.0, B, "b"))
    search.handle(Passed(PERIOD))
    search.handle(Resolved(PERIOD, NAME, [B]))

    assert search.handle(Answered(PERIOD, A, "a")) == []
    assert Ask(A) in search.handle(Passed(2 * PERIOD))
    search.handle(Answered(2 * PERIOD, A, "a"))
    out = search.handle(Passed(PERIOD + LEASE))

    assert [i for i in out if i != Ask(B) and i != Resolve(NAME)] == [Gone("a"), Forget(A)]


def test_an_address_that_comes_back_in_time_was_never_away() -> None:
    search = found_by_name(A)
    search.handle(Answered(0.0, A, "a"))
    for at, targets in ((PERIOD, []), (2 * PERIOD, [A])):
        search.handle(Passed(at))
        search.handle(Resolved(at, NAME, targets))
        search.handle(Answered(at, A, "a"))

    assert search.handle(Passed(PERIOD + LEASE)) == [Resolve(NAME), Ask(A)]


def test_an_address_where_no_worker_ever_was_is_let_go_at_once() -> None:
    search = found_by_name(A)
    search.handle(Silent(0.0, A, "refused"))
    search.handle(Passed(PERIOD))
    search.handle(Resolved(PERIOD, NAME, []))

    assert search.handle(Silent(PERIOD, A, "refused")) == [Forget(A)]


def test_a_draining_worker_is_asked_until_it_is_silent_which_is_no_reason_to_warn() -> None:
    search = found_by_name(A)
    search.handle(Answered(0.0, A, "a", is_draining=True))
    search.handle(Passed(PERIOD))
    search.handle(Resolved(PERIOD, NAME, []))
    search.handle(Answered(PERIOD, A, "a", is_draining=True))

    assert Ask(A) in search.handle(Passed(PERIOD + 2 * LEASE))
    assert search.handle(Silent(PERIOD + 2 * LEASE, A, "reset")) == [Gone("a"), Forget(A)]


def test_a_worker_at_two_addresses_is_not_gone_with_one_of_them() -> None:
    search = found_by_name(A, B)
    for target in (A, B):
        search.handle(Answered(0.0, target, "a", is_draining=True))
    search.handle(Passed(PERIOD))

    assert search.handle(Silent(PERIOD, A, "reset")) == []
    assert search.handle(Silent(PERIOD, B, "reset")) == [Gone("a")]


def test_it_has_looked_when_all_that_it_found_first_has_been_asked() -> None:
    search = Search([B], [NAME], LEASE)
    seen = [search.has_looked]
    for event in (
        Passed(0.0),
        Resolved(0.0, NAME, [A]),
        Silent(0.0, B, "refused"),
        Answered(0.0, A, "a"),
        Passed(PERIOD),
        Resolved(PERIOD, NAME, [A, Target("grpc://10.0.0.3:8815")]),
    ):
        search.handle(event)
        seen.append(search.has_looked)

    assert seen == [False, False, False, False, True, True, True]
    assert Search([], [], LEASE).has_looked


class SearchMachine(RuleBasedStateMachine):
    """What a search does whatever happens: each errand once at a time, and none for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.search = Search([A], [NAME], LEASE)
        self.now = 0.0
        self.names_under_way = 0
        self.asked: set[Target] = set()

    some = st.sampled_from([A, B, Target("grpc://10.0.0.3:8815")])

    def take(self, out: Sequence[SearchInstruction]) -> None:
        for instruction in out:
            match instruction:
                case Resolve():
                    self.names_under_way += 1
                case Ask(target):
                    assert target not in self.asked
                    self.asked.add(target)
                case Forget(target):
                    assert target not in self.asked
                    assert target != A
                case Gone() | Warn():
                    pass
        assert self.names_under_way <= 1

    @rule(seconds=st.sampled_from([0.1, 1.0, PERIOD, LEASE]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.take(self.search.handle(Passed(self.now)))

    @precondition(lambda self: self.names_under_way)
    @rule(found=st.lists(some, unique=True), is_found=st.booleans())
    def looked_up(self, found: list[Target], is_found: bool) -> None:
        self.names_under_way = 0
        event = Resolved(self.now, NAME, found) if is_found else Unresolved(self.now, NAME, "")
        self.take(self.search.handle(event))

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), answers=st.booleans(), is_draining=st.booleans())
    def was_asked(self, data: st.DataObject, answers: bool, is_draining: bool) -> None:
        target = data.draw(st.sampled_from(sorted(self.asked, key=lambda t: t.uri)))
        self.asked.remove(target)
        event = (
            Answered(self.now, target, target.uri, is_draining)
            if answers
            else Silent(self.now, target, "")
        )
        self.take(self.search.handle(event))

    @invariant()
    def the_given_target_and_the_name_are_never_given_up(self) -> None:
        if A not in self.asked or not self.names_under_way:
            assert self.search.due_at is not None
            assert self.search.due_at <= self.now + PERIOD


SearchMachine.TestCase.settings = settings(max_examples=40, deadline=None)
TestSearchMachine = SearchMachine.TestCase
