from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.server.fleet import Placement, Worker, place
from floeberg.server.fleet.placement import MAX_LOCATIONS


def fleet(count: int, capacity: int = 4) -> list[Worker]:
    return [Worker(f"w{i:03}", f"grpc+tcp://10.0.0.{i}:8816", capacity) for i in range(count)]


def bytes_by_worker(sizes: Sequence[int], placements: Sequence[Placement]) -> Counter[str]:
    spread: Counter[str] = Counter()
    for p in placements:
        spread[p.workers[0].worker_id] += sum(sizes[p.first : p.stop])
    return spread


sizes_of_tasks = st.lists(st.integers(0, 10**12), min_size=1, max_size=60)


@given(sizes=sizes_of_tasks, workers=st.integers(1, 30))
def test_the_endpoints_are_the_plan_once_and_in_order(sizes: list[int], workers: int) -> None:
    placements = place(sizes, fleet(workers))

    assert [i for p in placements for i in range(p.first, p.stop)] == list(range(len(sizes)))
    assert all(p.first < p.stop for p in placements)


@given(sizes=sizes_of_tasks, workers=st.integers(1, 30))
def test_endpoints_are_a_small_multiple_of_the_workers(sizes: list[int], workers: int) -> None:
    placements = place(sizes, fleet(workers))

    assert len(placements) <= min(len(sizes), 4 * min(workers, MAX_LOCATIONS))
    assert len(placements) >= min(len(sizes), min(workers, MAX_LOCATIONS))


@given(sizes=sizes_of_tasks, workers=st.integers(2, 30), data=st.data())
def test_a_full_worker_only_stands_in(sizes: list[int], workers: int, data: st.DataObject) -> None:
    everybody = fleet(workers)
    free = everybody[: data.draw(st.integers(1, workers - 1))]

    placements = place(sizes, free, full=everybody[len(free) :])

    assert all(p.workers[0] in free for p in placements)
    assert all(len(p.workers) == min(3, workers) for p in placements)
    assert len({w for p in placements for w in p.workers}) <= MAX_LOCATIONS


@given(
    workers=st.integers(1, 20),
    tasks_each=st.integers(4, 12),
    data=st.data(),
)
def test_bytes_are_spread_within_two_to_one_when_no_task_is_a_quarter_of_a_share(
    workers: int, tasks_each: int, data: st.DataObject
) -> None:
    count = workers * tasks_each
    sizes = data.draw(st.lists(st.integers(1, 1000), min_size=count, max_size=count))
    sizes = [min(s, max(1, sum(sizes) // (4 * workers))) for s in sizes]
    if max(sizes) * 4 * workers > sum(sizes):
        return

    spread = bytes_by_worker(sizes, place(sizes, fleet(workers)))

    assert len(spread) == workers
    assert max(spread.values()) <= 2 * min(spread.values())


@pytest.mark.parametrize(("tasks", "workers"), [(2, 2), (3, 2), (5, 3), (24, 2), (24, 7), (7, 5)])
def test_equal_tasks_are_spread_within_two_to_one(tasks: int, workers: int) -> None:
    sizes = [1000] * tasks

    spread = bytes_by_worker(sizes, place(sizes, fleet(workers)))

    assert len(spread) == workers
    assert max(spread.values()) <= 2 * min(spread.values())


def test_one_huge_task_leaves_the_rest_to_the_other_worker() -> None:
    sizes = [1, 1, 1000, 1, 1]

    spread = bytes_by_worker(sizes, place(sizes, fleet(2)))

    assert sorted(spread.values()) == [4, 1000]


@given(sizes=sizes_of_tasks, workers=st.integers(1, 60))
def test_an_answer_names_at_most_twenty_locations(sizes: list[int], workers: int) -> None:
    placements = place(sizes, fleet(workers))

    assert len({w.location for p in placements for w in p.workers}) <= MAX_LOCATIONS


@given(sizes=sizes_of_tasks, workers=st.integers(2, 25), seed=st.randoms())
def test_the_order_in_which_workers_are_listed_changes_nothing(
    sizes: list[int], workers: int, seed: object
) -> None:
    members = fleet(workers)

    assert place(sizes, members) == place(sizes, list(reversed(members)))


@given(sizes=sizes_of_tasks, workers=st.integers(2, 10))
def test_every_endpoint_has_stand_ins_other_than_its_first_choice(
    sizes: list[int], workers: int
) -> None:
    for p in place(sizes, fleet(workers), fallbacks=2):
        assert len(p.workers) == min(workers, 3)
        assert len(set(p.workers)) == len(p.workers)


def test_a_limit_is_one_endpoint() -> None:
    (only,) = place([10] * 50, fleet(5), one_endpoint=True)

    assert (only.first, only.stop) == (0, 50)
    assert len(only.workers) == 3


def test_an_empty_plan_is_one_endpoint_without_tasks() -> None:
    (only,) = place([], fleet(2))

    assert (only.first, only.stop) == (0, 0)
    assert len(only.workers) == 2


def test_a_worker_with_twice_the_capacity_gets_twice_the_bytes() -> None:
    small, large = Worker("a", "grpc://a:1", 2), Worker("b", "grpc://b:1", 4)

    spread = bytes_by_worker([10] * 60, place([10] * 60, [small, large]))

    assert spread["b"] == pytest.approx(2 * spread["a"], rel=0.35)


def test_small_scans_of_different_files_start_on_different_workers() -> None:
    members = fleet(4)

    first = {place([5], members, affinity=[f"f{i}"])[0].workers[0].worker_id for i in range(60)}

    assert first == {w.worker_id for w in members}


def test_a_file_keeps_its_worker_when_another_worker_goes() -> None:
    members = fleet(5)
    before = {f: place([5], members, affinity=[f])[0].workers[0] for f in map(str, range(50))}

    after = {f: place([5], members[:-1], affinity=[f])[0].workers[0] for f in before}

    assert all(after[f] == w for f, w in before.items() if w != members[-1])


def test_a_million_tasks_are_cut_quickly() -> None:
    sizes = [(i * 7919) % 100_000_000 for i in range(1_000_000)]

    placements = place(sizes, fleet(20), affinity=[""] * len(sizes))

    assert len(placements) == 40
