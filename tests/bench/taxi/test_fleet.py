from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.taxi import fleet
from tests.bench.taxi.fleet import Costs, Usage, predicted, simulated
from tests.bench.taxi.many_workers import answers_table, ask_for_many, moved, shares
from tests.bench.taxi.sides.serving import cpu_seconds

ONE = Usage(plan=0.01, seconds=1.3, client=0.6, workers=2.0, endpoints=2, files=24)
TWO = replace(ONE, workers=2.4, endpoints=4)


def test_costs_are_those_of_a_file() -> None:
    costs = Costs.of(ONE, TWO, delay=0.0)

    assert costs.client == pytest.approx(0.6 / 24)
    assert costs.at_workers(1) == pytest.approx(2.0 / 24)
    assert costs.at_workers(2) == pytest.approx(2.4 / 24)
    assert costs.at_workers(4) == pytest.approx(3.2 / 24)


def test_a_machines_two_cores_are_what_scans_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "_THIS_MACHINE", 2.0)
    costs = Costs.of(ONE, TWO, delay=0.0)

    assert predicted(ONE, costs, 1, 1) == pytest.approx(0.01 + 2.6 / 2)
    assert predicted(replace(ONE, others=1.0), costs, 1, 1) == pytest.approx(0.01 + 2.6)
    assert predicted(TWO, costs, 2, 8) == pytest.approx(0.01 + 8 * 3.0 / 2, rel=0.01)


def test_what_everybody_reads_at_one_worker_takes_as_long_as_that_worker_does() -> None:
    costs = Costs(client=0.01, worker=0.1, worker_more=0.0, plan=0.0, delay=0.0)
    spread = [[f"w{n}" for n in range(4)] for _ in range(4)]
    narrow = [["w0"] * 4 for _ in range(4)]

    assert simulated(spread, costs, 0.0).all == pytest.approx(0.2, rel=0.02)
    assert simulated(narrow, costs, 0.0).all == pytest.approx(0.8, rel=0.02)
    assert simulated(spread, costs, 0.0, slow=1).all == pytest.approx(0.4, rel=0.02)


def test_endpoints_that_move_are_counted() -> None:
    before = [["a", "b", "a", "b"], ["c", "d"]]

    assert moved(before, before) == 0
    assert moved(before, [["a", "b", "c", "b"], ["c", "d"]]) == pytest.approx(1 / 6)
    assert moved(before, [["a", "b", "a", "b"], ["c"]]) == pytest.approx(2 / 6)
    assert shares(before, 4) == pytest.approx((1 / 1.5, 2 / 1.5))
    assert shares(before, 5)[0] == 0


def test_a_coordinator_spreads_endpoints_over_workers_whom_nobody_dials(tmp_path: Path) -> None:
    found = ask_for_many(tmp_path, workers=5, endpoints=40, files=400, cpu_seconds=cpu_seconds)

    assert found.endpoints > len(found.places) > 1
    assert len({place for scan in found.places for place in scan}) == 5
    assert all(found.left not in scan for scan in found.without_one)
    assert 0 < moved(found.places, found.without_one) <= 1
    assert "| 5 workers |" in answers_table(found)
