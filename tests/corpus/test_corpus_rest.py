"""Every case of the corpus that PyIceberg reads: the same rows when the coordinator plans.

A ref or a time is left out: PyIceberg turns both into a snapshot's id before it plans.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import DataScan

from floeberg.server.catalogs import Catalogs, LoadedTable
from tests.corpus.cases import Case, load_cases
from tests.corpus.served import CaseCatalog
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.pyiceberg_filters import pyiceberg_expression
from tests.support.rebased_io import REBASE, RebasedFileIO
from tests.support.rows import assert_same_rows, row_multiset


class NamespacedCases(CaseCatalog):
    """The cases in a namespace, without which REST can't name a table."""

    def list_tables(self) -> list[tuple[str, ...]]:
        return [("cases", *identifier) for identifier in super().list_tables()]

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        return super().load(identifier[1:])


@pytest.fixture(scope="module")
def coordinator(request: pytest.FixtureRequest) -> Iterator[LocalFleet]:
    cases = load_cases(Path(request.config.getoption("--corpus")).resolve())
    catalogs = Catalogs([NamespacedCases(cases)])
    with local_fleet(catalogs, workers=0, rest_planning=True, rest_page_files=3) as fleet:
        yield fleet


def scan(case: Case, coordinator: LocalFleet, mode: str) -> DataScan:
    catalog = load_catalog(
        "corpus",
        type="rest",
        uri=str(coordinator.coordinator.addresses()["http"]),
        **{
            "scan-planning-mode": mode,
            "py-io-impl": f"{RebasedFileIO.__module__}.{RebasedFileIO.__qualname__}",
            REBASE: json.dumps(case.rebase),
        },
    )
    table = catalog.load_table(("cases", case.id))
    options: dict[str, Any] = {"case_sensitive": case.case_sensitive}
    if case.filter is not None:
        options["row_filter"] = pyiceberg_expression(case.filter)
    if case.select:
        options["selected_fields"] = tuple(case.select)
    if case.snapshot_id is not None:
        options["snapshot_id"] = case.snapshot_id
    return table.scan(**options)


def test_planned_by_the_coordinator(case: Case, coordinator: LocalFleet) -> None:
    if case.expected_rows is None or case.ref is not None or case.as_of_ms is not None:
        pytest.skip("an error is expected, or a branch, tag or time, which no plan request names")
    try:
        alone = scan(case, coordinator, "client").to_arrow()
    except Exception as exc:  # whatever PyIceberg can't read, and says so in many ways
        pytest.skip(f"PyIceberg by itself: {type(exc).__name__}")
    try:
        found = scan(case, coordinator, "server").to_arrow()
    except pa.ArrowTypeError as exc:
        # it leaves a plan's partition values as the text they came in
        pytest.skip(f"PyIceberg with a plan: {exc}")

    if row_multiset(found) != row_multiset(alone):
        # where it loses rows that a plan has, those are right
        assert_same_rows(found, case.expected())
