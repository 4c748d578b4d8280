"""What floeberg plans is what its peers plan: the same data files, and of each the same deletes.

A plan may be tighter than a peer's, or looser for a reason that is listed here. Whether a tighter
one is right is for the rows to say (`test_oracles`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest
from pyiceberg.table import StaticTable

from floeberg.protocol.errors import FloebergError
from tests.oracles.matrix import Cells, Outcome
from tests.oracles.oracles import Oracles, asked_of_floeberg
from tests.oracles.plans import PlanDifference, Planned, difference
from tests.oracles.plans.floeberg_plans import floeberg_plan
from tests.oracles.plans.java_plans import JavaPlans
from tests.oracles.plans.pyiceberg_plans import as_pyiceberg_tells, pyiceberg_plan
from tests.oracles.plans.reasons import PLANNERS, REASONS, explained
from tests.oracles.readers import message_of
from tests.oracles.scans import Scan
from tests.oracles.tables import TABLES
from tests.oracles.workshop import Made

pytestmark = pytest.mark.timeout(900)

_SPLIT_BYTES = 2000


@pytest.fixture(scope="module")
def java(oracles: Oracles) -> JavaPlans:
    return JavaPlans(oracles.workshop.jvm)


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("title", TABLES)
def test_plans_as_the_peer_plans(
    title: str, planner: str, oracles: Oracles, java: JavaPlans, plans: Cells
) -> None:
    made = oracles.table(title)
    plan = _asking(planner, made, oracles, java)
    outcomes: Counter[Outcome] = Counter()
    unexplained: list[str] = []
    for scan in made.scans:
        try:
            ours = floeberg_plan(asked_of_floeberg(made, scan))
        except FloebergError:
            continue  # whether it may refuse is for the rows' test to say
        if planner == "pyiceberg":
            ours = as_pyiceberg_tells(ours)
        outcome, left = _compared(title, planner, scan, ours, plan)
        outcomes[outcome] += 1
        if left is not None:
            unexplained.append(f"{scan}: {left}")
    plans[title, planner] = outcomes
    if unexplained:
        count = f"{len(unexplained)} of {len(made.scans)} plans"
        pytest.fail("\n".join([f"{title}, {planner}: {count}", *unexplained[:8]]), pytrace=False)


def _asking(
    planner: str, made: Made, oracles: Oracles, java: JavaPlans
) -> Callable[[Scan], Planned]:
    """Return what asks a peer for the plan of a scan."""
    if planner == "java":
        table = oracles.workshop.java_table_of(made.spark_name)
        return lambda scan: java.plan(table, scan)
    # some it refuses to load: that is its answer to every scan
    load = cache(lambda: StaticTable.from_metadata(str(made.metadata_file)))
    return lambda scan: pyiceberg_plan(load(), scan)


def _compared(
    title: str, planner: str, scan: Scan, ours: Planned, plan: Callable[[Scan], Planned]
) -> tuple[Outcome, PlanDifference | None]:
    """Return what became of a scan, and the difference that no reason explains."""
    try:
        theirs = plan(scan)
    except Exception as refusal:  # whatever the peer's library raises
        return ("refuses", message_of(refusal)[:80]), None
    left, reasons = explained(title, planner, scan, difference(ours, theirs))
    if not left.is_none:
        return ("DIFFERS", ""), left
    return ("differs", "; ".join(reasons)) if reasons else ("agrees", ""), None


@pytest.mark.parametrize("title", TABLES)
def test_cuts_files_where_java_cuts_them(title: str, oracles: Oracles, java: JavaPlans) -> None:
    """Java begins a task at each offset of a file that is too large; ours may take several
    together."""
    made = oracles.table(title)
    table = oracles.workshop.java_table_of(made.spark_name)
    compared = 0
    for scan in made.scans:
        try:
            ours = floeberg_plan(asked_of_floeberg(made, scan), _SPLIT_BYTES)
            theirs = java.plan(table, scan, _SPLIT_BYTES)
        except Exception:
            continue
        compared += 1
        assert difference(ours, theirs).cuts == frozenset()
    if not compared:
        pytest.skip("nothing of it that both plan")


def test_every_listed_reason_is_needed(plans: Cells) -> None:
    """A reason that explains nothing any more would hide the next mistake."""
    if len(plans) < len(TABLES) * len(PLANNERS):
        pytest.skip("not every table was planned")
    given = {reason for outcomes in plans.values() for _, reason in outcomes}
    # those of random tables and of a corpus are for their own tests
    of_these = [
        r for r in REASONS if not r.by_chance and (not r.tables or set(r.tables) & set(TABLES))
    ]

    assert not [r.reason for r in of_these if not any(r.reason in text for text in given)]
