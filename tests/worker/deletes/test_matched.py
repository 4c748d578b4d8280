"""What equality deletes matched once is known, and only where all rows were looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from floeberg.protocol.plans import ReadOptions, ResumePlace
from floeberg.worker.cache import LoadingCache
from floeberg.worker.deletes.matched import MatchedRows, Matching
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.reads import CountingStorage, placed_batches, plan_of

ROWS = [{"id": i, "name": f"n{i % 3}", "n": i} for i in range(300)]
LEFT = [row["id"] for row in ROWS if row["name"] != "n1"]


@pytest.fixture
def people(tmp_path: Path) -> TableWriter:
    columns = schema({"id": required("long"), "name": "string", "n": "long"})
    return TableWriter.create(tmp_path / "t", columns)


def ids(plan: Any, cache: LoadingCache, storage: Any = None, **options: Any) -> list[Any]:
    batches = placed_batches(plan, storage=storage, deletes=cache, **options)
    return [i for placed in batches for i in placed.batch["id"].to_pylist()]


def test_rows_that_were_matched_are_gone_without_the_delete_file(people: TableWriter) -> None:
    people.append(ROWS)
    deletes = people.delete_equal([{"name": "n1"}], ["name"])
    plan, cache = plan_of(people, select=["id"]), LoadingCache()

    assert ids(plan, cache) == LEFT
    people.local(deletes.location).unlink()
    storage = CountingStorage()

    assert ids(plan, cache, storage) == LEFT
    assert set(storage.requests) == {plan.tasks[0].data_file.location}


def test_other_deletes_of_the_same_file_are_looked_up_anew(people: TableWriter) -> None:
    people.append(ROWS)
    people.delete_equal([{"name": "n1"}], ["name"])
    cache = LoadingCache()
    assert ids(plan_of(people), cache) == LEFT

    people.delete_equal([{"id": 0}], ["id"])

    assert ids(plan_of(people), cache) == LEFT[1:]
    assert ids(plan_of(people), cache) == LEFT[1:]


def test_what_was_matched_is_known_beside_positions_and_filters(people: TableWriter) -> None:
    (file,) = people.append(ROWS)
    people.delete_equal([{"name": "n1"}], ["name"])
    people.delete_positions({file: [0, 1, 299]})
    cache = LoadingCache()

    for _ in range(2):
        assert ids(plan_of(people, filter=["<", "n", 200]), cache) == [
            i for i in LEFT if 0 < i < 200
        ]
        assert ids(plan_of(people), cache) == [i for i in LEFT if 0 < i < 299]


@pytest.mark.parametrize("part", ["row groups", "rest", "limit"])
def test_a_part_of_a_file_is_not_taken_for_the_whole(people: TableWriter, part: str) -> None:
    people.append(ROWS, layout=FileLayout(row_group_size=50))
    people.delete_equal([{"name": "n1"}], ["name"])
    cache = LoadingCache()

    match part:
        case "row groups":
            ids(plan_of(people, filter=[">", "n", 210]), cache)
        case "rest":
            ids(plan_of(people), cache, resume=ResumePlace(0, 120))
        case _:
            ids(plan_of(people, options=ReadOptions(limit=3)), cache)

    assert ids(plan_of(people), cache) == LEFT


def test_collects_what_is_matched_from_the_first_row_to_the_last() -> None:
    kept: list[MatchedRows] = []
    matching = Matching(5, kept.append)

    matching.add(0, np.array([False, True]))
    assert not kept
    matching.add(2, np.array([True, False, True]))

    [found] = kept
    assert found.positions.tolist() == [1, 2, 4]


def test_keeps_nothing_of_a_file_with_a_gap() -> None:
    kept: list[MatchedRows] = []
    matching = Matching(4, kept.append)

    matching.add(0, np.array([True]))
    matching.add(2, np.array([False, True]))

    assert not kept


def test_no_match_is_known_too() -> None:
    kept: list[MatchedRows] = []

    Matching(2, kept.append).add(0, np.array([False, False]))

    assert kept[0].positions.tolist() == []
    assert pa.array(kept[0].positions).type == pa.int64()
