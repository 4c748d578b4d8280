from __future__ import annotations

import pytest

from tests.bench.taxi.simulation import Asking, Flow, ends


def test_a_stream_takes_as_long_as_its_longest_thread_where_there_are_cores() -> None:
    flows = [Flow("c", {"worker": 2.0, "client": 0.5}, longest=2.0)]

    found = ends(flows, {"worker": 4, "client": 4}, {"c": Asking(1.0, delay=0.25)})

    assert found == {"c": pytest.approx(3.25)}


def test_streams_share_what_there_is() -> None:
    flows = [Flow("c", {"machine": 1.5}, longest=1.0) for _ in range(4)]

    assert ends(flows, {"machine": 2}, {"c": Asking()})["c"] == pytest.approx(3.0)


def test_a_client_reads_a_few_streams_at_once() -> None:
    flows = [Flow("c", {"worker": 1.0}, longest=1.0) for _ in range(4)]

    found = ends(flows, {"worker": 100}, {"c": Asking(at_once=2, delay=0.5)})

    assert found["c"] == pytest.approx(3.0)


def test_what_one_stream_leaves_another_takes() -> None:
    """The first is held up by its client, so that the second has more of the worker than half."""
    flows = [
        Flow("slow", {"worker": 1.0, "slow": 4.0}, longest=4.0),
        Flow("quick", {"worker": 3.0}, longest=0.1),
    ]
    clients = {"slow": Asking(), "quick": Asking()}

    found = ends(flows, {"worker": 1, "slow": 1}, clients)

    assert found["quick"] == pytest.approx(4.0, rel=0.03)
    assert found["slow"] == pytest.approx(4.0, rel=0.02)


def test_twice_the_workers_take_half_the_time_until_the_client_is_what_holds_up() -> None:
    def seconds(workers: int) -> float:
        flows = [Flow("c", {f"w{n % workers}": 1.0, "client": 0.2}, longest=1.0) for n in range(16)]
        cores = {f"w{n}": 1.0 for n in range(workers)} | {"client": 1.0}
        return ends(flows, cores, {"c": Asking(at_once=16)})["c"]

    assert seconds(1) == pytest.approx(16.0)
    assert seconds(2) == pytest.approx(8.0)
    assert seconds(16) == pytest.approx(16 * 0.2)
