from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.process.storage import open_storage
from floeberg.protocol.files import ManifestContent, ManifestFile
from floeberg.server.planning import ManifestCache, plan_files
from floeberg.server.planning.manifest_list import ManifestList
from floeberg.server.planning.manifest_merging import runs
from floeberg.server.planning.manifest_source import ManifestSource
from floeberg.server.planning.run import PlanRun
from tests.support.lake import TableWriter, required, schema
from tests.support.plain_planner import comparable, plan_plainly
from tests.support.scans import RecordingStorage, scan_of

STORAGE = open_storage()
FILTERS = (
    None,
    ["=", "region", "r1"],
    ["<", "id", 40],
    ["and", ["=", "region", "r2"], [">", "id", 90]],
)


# --- which manifests are used together ------------------------------------------------------------


def manifest(number: int, **facts: Any) -> ManifestFile:
    return ManifestFile(f"s3://b/{number}.avro", **{"length": 9000, "spec_id": 0, **facts})


@st.composite
def manifest_lists(draw: st.DrawFn) -> list[ManifestFile]:
    found = []
    for length in draw(st.lists(st.integers(1, 400), max_size=5)):
        facts = {
            "spec_id": draw(st.integers(0, 1)),
            "content": draw(st.sampled_from(ManifestContent)),
            "length": draw(st.sampled_from([9000, 9000, 10**6])),
        }
        found += [manifest(len(found) + i, **facts) for i in range(length)]
    return found


def runs_of(manifests: Sequence[ManifestFile]) -> list[list[ManifestFile]]:
    listed = ManifestList(manifests, "uuid")
    return [listed.at(run) for run in runs(listed, np.arange(len(listed)))]


@given(manifests=manifest_lists())
def test_runs_are_all_manifests_in_order_and_alike(manifests):
    found = runs_of(manifests)

    assert [m for run in found for m in run] == manifests
    for run in found:
        assert len({(m.spec_id, m.content) for m in run}) == 1
        assert len(run) == 1 or all(m.length < 65536 for m in run)
        assert len(run) <= 512


def test_a_new_manifest_changes_the_first_run_only():
    before = runs_of([manifest(i) for i in range(2000)])
    after = runs_of([manifest(10**6), *(manifest(i) for i in range(2000))])

    assert 5 < len(before) < 50
    assert after[-len(before) + 1 :] == before[1:]
    assert len(after) <= len(before) + 1


def test_a_few_manifests_stay_alone():
    assert len(runs_of([manifest(i) for i in range(60)])) == 60


# --- plans ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    """A table of 150 data and 10 delete manifests, under two specs."""
    columns = schema({"id": required("long"), "region": "string"})
    table = TableWriter.create(tmp_path_factory.mktemp("t"), columns, (("region", "identity"),))
    table.entries_per_manifest = 1
    for first in range(0, 150, 50):
        with table.commit() as commit:
            for i in range(first, first + 50):
                commit.append([{"id": i, "region": f"r{i % 4}" if i % 7 else None}])
        for i in range(first, first + 4):
            table.delete_equal([{"id": i, "region": f"r{i % 4}"}], ["id"])
        if first == 50:
            table.evolve_spec(())
    return table


@pytest.mark.parametrize("filter_", FILTERS)
def test_plans_are_those_of_manifests_apart(filter_, table):
    scan, cache = scan_of(table, filter_), ManifestCache()
    expected = comparable(plan_plainly(scan, STORAGE))

    for _ in range(3):
        assert comparable(plan_files(scan, STORAGE, cache)) == expected


def test_what_two_plans_have_used_together_is_remembered_together(table):
    snapshot = scan_of(table).snapshot
    assert snapshot is not None
    cache = ManifestCache()

    def parts() -> tuple[list[int], int]:
        before = cache.hits
        source = ManifestSource(RecordingStorage(), cache, "uuid", PlanRun())
        listed = source.manifests(snapshot)
        sizes = [len(part.manifests) for part in source.parts(listed, np.arange(len(listed)))]
        assert sum(sizes) == len(listed)
        trace = source.trace
        assert trace.manifests_cached + trace.manifests_fetched == len(listed)
        return sizes, cache.hits - before

    first, second, third = parts(), parts(), parts()

    assert first[0] == second[0] == third[0]
    assert max(first[0]) > 10
    assert second[1] == third[1] == 1 + sum(first[0])
    assert cache.size_bytes > 0
