"""Plans of a corpus's tables, which other engines wrote: `--oracles --corpus DIR`.

Who refuses a scan is not held against anybody here: the corpus says which rows are right.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from floeberg.embedded import TableScan, open_table
from floeberg.process.storage import open_storage
from floeberg.protocol.discovery import find_metadata
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.storage import StorageConfig
from tests.corpus.cases import Case, load_cases
from tests.oracles.matrix import Cells
from tests.oracles.oracles import Oracles
from tests.oracles.plans import difference
from tests.oracles.plans.floeberg_plans import floeberg_plan
from tests.oracles.plans.java_plans import JavaPlans
from tests.oracles.plans.java_tables import JavaTables
from tests.oracles.plans.pyiceberg_plans import as_pyiceberg_tells, pyiceberg_plan
from tests.oracles.plans.reasons import explained
from tests.oracles.readers import message_of
from tests.oracles.scans import Filter, Scan
from tests.support.rebased_io import REBASE

pytestmark = pytest.mark.timeout(900)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    given = metafunc.config.getoption("--corpus")
    cases = load_cases(Path(given).resolve()) if given else []
    comparable = [c for c in cases if c.case_sensitive and c.expected_error is None]
    metafunc.parametrize("case", comparable, ids=[case.id for case in comparable])


@pytest.fixture(scope="module")
def java(oracles: Oracles) -> JavaPlans:
    return JavaPlans(oracles.workshop.jvm)


@pytest.fixture(scope="module")
def java_tables(oracles: Oracles) -> JavaTables:
    return JavaTables(oracles.workshop.spark)


def test_plans_as_the_peers_plan(
    case: Case, java: JavaPlans, java_tables: JavaTables, plans: Cells
) -> None:
    metadata_file = find_metadata(open_storage(StorageConfig({}, case.rebase)), case.source)
    scan = Scan(_tuples(case.filter), None, case.snapshot_id, case.ref, case.as_of_ms)
    try:
        ours = floeberg_plan(_asked(case))
    except FloebergError:
        pytest.skip("floeberg refuses it")
    title = f"corpus.{case.id.rpartition('-')[0]}"
    differs: list[str] = []
    for planner in ("java", "pyiceberg"):
        try:
            if planner == "java":
                theirs = java.plan(java_tables.open(metadata_file, case.rebase), scan)
            else:
                theirs = pyiceberg_plan(_static(metadata_file, case), scan)
        except Exception as refusal:  # whatever the peer's library raises
            outcome = ("refuses", message_of(refusal)[:80])
        else:
            shown = ours if planner == "java" else as_pyiceberg_tells(ours)
            left, reasons = explained(title, planner, scan, difference(shown, theirs))
            outcome = ("differs", "; ".join(reasons)) if reasons else ("agrees", "")
            if not left.is_none:
                outcome = ("DIFFERS", "")
                differs.append(f"{planner}: {scan}: {left}")
        plans.setdefault((title, planner), Counter())[outcome] += 1
    assert not differs, "\n".join(differs)


def _asked(case: Case) -> TableScan:
    asked = open_table(case.source, rebase=case.rebase).scan()
    if case.filter is not None:
        asked = asked.filter(case.filter)
    if case.snapshot_id is not None:
        asked = asked.use_snapshot(case.snapshot_id)
    if case.ref is not None:
        asked = asked.use_ref(case.ref)
    if case.as_of_ms is not None:
        asked = asked.as_of(case.as_of_ms)
    return asked


def _static(metadata_file: str, case: Case) -> StaticTable:
    properties = {
        "py-io-impl": "tests.support.rebased_io.RebasedFileIO",
        REBASE: json.dumps(case.rebase),
    }
    return StaticTable.from_metadata(metadata_file, properties)


def _tuples(filter_: object) -> Filter | None:
    if not isinstance(filter_, list):
        return None
    operation, *rest = filter_
    joins = operation in ("and", "or", "not")
    return (operation, *(_tuples(r) if joins else r for r in rest))
