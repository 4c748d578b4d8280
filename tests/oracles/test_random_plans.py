"""Plans of random tables: every kind of delete in any order, specs and schemas that change."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from floeberg.embedded import open_table
from tests.oracles.oracles import Oracles
from tests.oracles.plans import NO_DIFFERENCE, PlanDifference, Planned, difference
from tests.oracles.plans.floeberg_plans import floeberg_plan
from tests.oracles.plans.java_plans import JavaPlans
from tests.oracles.plans.java_tables import JavaTables
from tests.oracles.plans.pyiceberg_plans import as_pyiceberg_tells, pyiceberg_plan
from tests.oracles.plans.reasons import explained
from tests.oracles.scans import Scan
from tests.support.random_tables import SPECS, RandomTable

pytestmark = pytest.mark.timeout(900)

_TABLES = 24
_SCANS = 6
_PYICEBERG_REFUSES = ("does not yet support equality deletes", "scales differ")


@pytest.fixture(scope="module")
def java(oracles: Oracles) -> JavaPlans:
    return JavaPlans(oracles.workshop.jvm)


@pytest.fixture(scope="module")
def java_tables(oracles: Oracles) -> JavaTables:
    return JavaTables(oracles.workshop.spark)


@pytest.mark.parametrize("seed", range(_TABLES))
def test_plans_as_the_peers_plan(
    seed: int, java: JavaPlans, java_tables: JavaTables, tmp_path: Path
) -> None:
    made = RandomTable(random.Random(seed), tmp_path / "table")
    table = made.live(5)
    table.evolve_spec(_a_spec(made))
    made.live(4)
    metadata_file = str(table.metadata_path)
    unexplained: list[str] = []
    for scan in [Scan(), *(Scan(filter=_tuples(made.scan()[0])) for _ in range(_SCANS))]:
        asked = open_table(metadata_file).scan()
        ours = floeberg_plan(asked if scan.filter is None else asked.filter(_lists(scan.filter)))
        found = {
            "java": difference(ours, java.plan(java_tables.open(metadata_file), scan)),
            "pyiceberg": _beside_pyiceberg(ours, metadata_file, scan),
        }
        for planner, parts in found.items():
            left, _ = explained("random", planner, scan, parts)
            if not left.is_none:
                unexplained.append(f"{planner}: {scan}: {left}")
    assert not unexplained, "\n".join(unexplained)


def _a_spec(made: RandomTable) -> list[Any]:
    names = {field["name"] for field in made.table.schema["fields"]}
    return made.rng.choice([spec for spec in SPECS if all(f[0] in names for f in spec)])


def _beside_pyiceberg(ours: Planned, metadata_file: str, scan: Scan) -> PlanDifference:
    try:
        theirs = pyiceberg_plan(StaticTable.from_metadata(metadata_file), scan)
    except ValueError as refusal:
        if any(said in str(refusal) for said in _PYICEBERG_REFUSES):
            return NO_DIFFERENCE
        raise
    return difference(as_pyiceberg_tells(ours), theirs)


def _tuples(filter_: object) -> tuple[object, ...] | None:
    if not isinstance(filter_, list):
        return None
    operation, *rest = filter_
    joins = operation in ("and", "or", "not")
    return (operation, *(_tuples(r) if joins else r for r in rest))


def _lists(filter_: tuple[object, ...]) -> list[object]:
    return [_lists(part) if isinstance(part, tuple) else part for part in filter_]
