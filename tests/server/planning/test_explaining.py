from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from floeberg.process.storage import open_storage
from floeberg.protocol.actions import EXPLAIN, Explanation
from floeberg.server.planning import ManifestCache, explain, plan_files
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.orders import write_orders
from tests.support.scans import scan_of

STORAGE = open_storage()
COLUMNS = schema({"id": required("long"), "region": "string"})


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    """Seven appends of three regions, positions deleted in one file, two ids in all."""
    return write_orders(tmp_path_factory.mktemp("orders"))


def explained(table: TableWriter, filter_: Any = None, **request: Any) -> Explanation:
    return explain(plan_files(scan_of(table, filter_, **request), STORAGE))


def pruned(found: Explanation, level: str) -> dict[str, int]:
    """Return what ruled out anything at one level."""
    (one,) = (each for each in found.levels if each.name == level)
    assert one.total == one.kept + sum(one.pruned.values())
    return {cause: n for cause, n in one.pruned.items() if n}


def kept(found: Explanation) -> list[int]:
    return [level.kept for level in found.levels]


def test_a_scan_of_everything_prunes_nothing(orders):
    found = explained(orders)

    assert not any(pruned(found, level.name) for level in found.levels)
    assert kept(found) == [7, 2, 21, 2]
    assert (found.files, found.tasks) == (21, 21)
    assert [(entry.residual, entry.files) for entry in found.residuals] == [(["true"], 21)]
    assert found.filter == ["true"]


def test_files_are_counted_by_what_ruled_them_out(orders):
    found = explained(orders, ["and", ["=", "region", "eu"], [">", "id", 200]])

    assert pruned(found, "data files") == {"partition values": 14, "column metrics": 5}
    assert kept(found)[2] == found.files == 2
    assert [entry.residual for entry in found.residuals] == [[">", "id", 200]]


def test_manifests_are_counted_by_what_ruled_them_out(tmp_path: Path):
    table = TableWriter.create(tmp_path, COLUMNS, [("region", "identity")])
    (eu,) = table.append([{"id": 1, "region": "eu"}])
    (us,) = table.append([{"id": 2, "region": "us"}])
    table.delete_positions({eu: [0]})

    assert pruned(explained(table, ["=", "region", "us"]), "data manifests") == {
        "partition summaries": 1
    }
    assert pruned(explained(table, ["=", "region", "us"]), "delete manifests") == {
        "partition summaries": 1
    }

    table.remove(eu, us)
    assert pruned(explained(table), "data manifests") == {"no live files": 2}
    assert pruned(explained(table), "delete manifests") == {"no data left": 1}


def test_what_a_limit_leaves_out_is_counted(tmp_path: Path):
    table = TableWriter.create(tmp_path, COLUMNS, [("region", "identity")])
    for first in (0, 10, 20):
        table.append([{"id": i, "region": f"r{i % 5}"} for i in range(first, first + 10)])

    found = explained(table, limit=3)

    assert pruned(found, "data manifests") == {"limit": 2}
    assert pruned(found, "data files") == {"limit": 3}
    assert (found.files, found.rows, found.rows_at_most) == (2, 3, 4)
    assert found.distinct_residuals == 1


def test_deletes_are_told_by_kind(orders):
    found = {kind.kind: kind for kind in explained(orders).deletes}

    assert set(found) == {"position deletes", "equality deletes"}
    positions, equality = found["position deletes"], found["equality deletes"]
    assert (positions.files, positions.data_files, positions.records) == (1, 1, 3)
    assert (equality.files, equality.records) == (1, 2)
    assert equality.data_files == equality.references == 6  # of 18: those with such values


def test_vectors_are_told_apart_from_other_position_deletes(tmp_path: Path):
    table = TableWriter.create(tmp_path, COLUMNS, format_version=3)
    (one,) = table.append([{"id": n, "region": "eu"} for n in range(5)])
    (two,) = table.append([{"id": n, "region": "eu"} for n in range(5, 9)])
    table.write_vectors({one: [0, 2], two: [1]})

    (vectors,) = explained(table).deletes

    assert (vectors.kind, vectors.files, vectors.data_files) == ("deletion vectors", 2, 2)
    assert vectors.records == 3


def test_residuals_are_counted_by_file_the_most_common_first(orders):
    found = explained(orders, ["or", ["=", "region", "eu"], [">", "id", -1]], split_size=1)

    assert [(entry.residual, entry.files) for entry in found.residuals] == [
        ([">", "id", -1], 14),
        (["true"], 7),
    ]
    assert found.distinct_residuals == 2
    assert found.tasks > found.files == 21


def test_rows_are_exact_where_metadata_tells(orders):
    assert explained(orders).rows is None
    assert explained(orders, ["=", "id", 5000]).rows_at_most == 14

    before_deletes = orders.metadata["snapshots"][0]["snapshot-id"]
    found = explained(orders, snapshot_id=before_deletes)
    assert found.rows == found.rows_at_most == 40


def test_the_second_plan_says_what_was_cached(orders):
    scan, cache = scan_of(orders), ManifestCache()

    first, second = (explain(plan_files(scan, STORAGE, cache)) for _ in range(2))

    assert (first.manifests_cached, first.manifests_fetched) == (0, 9)
    assert not first.manifest_list_cached
    assert first.fetched_bytes > 9
    assert (second.manifests_cached, second.manifests_fetched) == (9, 0)
    assert second.manifest_list_cached
    assert second.fetched_bytes == 0


def test_manifests_that_stand_in_the_metadata_itself_are_fetched_once(tmp_path: Path):
    table = TableWriter.create(tmp_path, COLUMNS, format_version=1)
    with table.commit(inline_manifests=True) as commit:
        commit.append([{"id": 1, "region": "eu"}])
    scan, cache = scan_of(table), ManifestCache()

    first, second = (explain(plan_files(scan, STORAGE, cache)) for _ in range(2))

    assert (first.manifests_cached, first.manifests_fetched) == (0, 1)
    assert first.fetched_bytes > 0
    assert (second.manifests_cached, second.manifests_fetched, second.fetched_bytes) == (1, 0, 0)


def test_steps_come_in_their_order_and_took_some_time(orders):
    found = explained(orders)

    assert [step.name for step in found.steps] == [
        "read the manifest list",
        "prune manifests",
        "read manifests",
        "prune delete files",
        "index deletes",
        "prune files, attach deletes",
        "split",
        "count",
    ]
    assert all(step.seconds >= 0 for step in found.steps)


def test_a_table_never_written_to_has_nothing_to_tell(tmp_path: Path):
    found = explained(TableWriter.create(tmp_path, COLUMNS))

    assert (found.snapshot_id, found.tasks, found.rows, found.steps) == (None, 0, 0, ())
    assert found.residuals == ()


def test_many_residuals_are_cut_and_counted(tmp_path: Path):
    table = TableWriter.create(tmp_path, COLUMNS, [("id", "identity")])
    table.append([{"id": n, "region": "eu"} for n in range(120)], layout=FileLayout())
    columns = [["and", ["=", "id", n], ["=", "region", f"r{n}"]] for n in range(120)]

    found = explained(table, ["or", *columns, ["not-null", "region"]])

    assert found.distinct_residuals == 120 == found.files
    assert len(found.residuals) == 100


def test_an_explanation_survives_the_wire(orders):
    found = explained(orders, ["=", "region", "eu"])

    assert EXPLAIN.parse_reply(EXPLAIN.encode_reply(found)) == found
