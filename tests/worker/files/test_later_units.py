"""Columns that are left for later come as the others do; what nobody asks for is not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.files import DataFile, FileFormat
from floeberg.protocol.storage import Storage
from floeberg.worker.arrow import Rows
from floeberg.worker.files.later_units import LaterUnit
from floeberg.worker.files.opening import open_rows
from floeberg.worker.files.ranges import TAIL_BYTES
from floeberg.worker.files.rows import Demand, Later, Share
from tests.support.decoded import table_of, tuples_of
from tests.support.reads import CountingStorage

GROUPS = 12
ROWS_A_GROUP = 40_000  # two are more than a chunk may have
FIRST, LATER = 0, 1


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two columns of noise: 320 kB each a row group, so that far fewer than all are in the tail."""
    path = tmp_path_factory.mktemp("later") / "f.parquet"
    noise = np.random.default_rng(3).integers(0, 2**60, (2, GROUPS * ROWS_A_GROUP))
    table = pa.table({"first": noise[0], "later": noise[1]})
    pq.write_table(table, path, row_group_size=ROWS_A_GROUP, use_dictionary=False)
    return path


class RangeStorage(CountingStorage):
    """Keeps the ranges of every request."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[tuple[int, int]]] = []

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self.asked.append(list(ranges))
        return super().read_ranges(location, ranges)


def read_later(
    path: Path,
    wanted: set[int],
    storage: Storage | None = None,
    demand: Demand | None = None,
) -> list[int]:
    """Return the later column of the row groups `wanted`, and check that it is in step."""
    file = DataFile(str(path), FileFormat.PARQUET, GROUPS * ROWS_A_GROUP, path.stat().st_size, 0)
    found: list[int] = []
    with open_rows(storage or RangeStorage(), file) as rows:
        later = Later({LATER}, demand or Demand())
        for chunk in rows.chunks({FIRST}, Share(), None, later):
            if chunk.first_row // ROWS_A_GROUP in wanted:
                parts = list(chunk.later_rows())
                assert sum(map(len, parts)) == len(chunk.rows)
                found += [value for part in parts for value in part.columns[0].to_pylist()]
    return found


def places(path: Path, column: int) -> list[tuple[int, int]]:
    """Return where the column's chunks begin and end, those before what is fetched as the tail."""
    footer = pq.ParquetFile(path).metadata
    chunks = [footer.row_group(i).column(column) for i in range(GROUPS)]
    spans = [(c.data_page_offset, c.data_page_offset + c.total_compressed_size) for c in chunks]
    return [span for span in spans if span[1] <= path.stat().st_size - TAIL_BYTES]


def fetched(asked: Sequence[Sequence[tuple[int, int]]], spans: list[tuple[int, int]]) -> set[int]:
    """Return which of `spans` any range that was asked for reaches into by more than a gap."""
    ranges = [r for request in asked for r in request]
    return {
        i
        for i, (start, stop) in enumerate(spans)
        if any(min(stop, s + n) - max(start, s) > 64 << 10 for s, n in ranges)
    }


@pytest.mark.parametrize("wanted", [set(), {0}, {3, 4, 7}, {11}, set(range(GROUPS))])
def test_only_what_is_asked_for_is_fetched(path: Path, wanted: set[int]) -> None:
    storage = RangeStorage()
    values = pq.read_table(path)["later"].to_pylist()
    spans = places(path, LATER)

    found = read_later(path, wanted, storage)

    of_groups = (values[g * ROWS_A_GROUP : (g + 1) * ROWS_A_GROUP] for g in sorted(wanted))
    assert found == [value for part in of_groups for value in part]
    # the gap that is not worth a request is smaller than a column chunk
    assert fetched(storage.asked, spans) == wanted & set(range(len(spans)))
    assert fetched(storage.asked, places(path, FIRST)) == set(range(len(spans)))


def test_where_all_is_asked_for_requests_grow(path: Path) -> None:
    storage, demand = RangeStorage(), Demand()

    read_later(path, set(range(GROUPS)), storage, demand)

    # the tail; the first column; the later one of 1, 1, 2, 4 and 4 row groups, but for the tail
    assert len(storage.asked) == 7
    assert demand.streak == GROUPS


def test_what_one_file_shows_serves_the_next(path: Path) -> None:
    storage, demand = RangeStorage(), Demand(streak=GROUPS)

    read_later(path, set(range(GROUPS)), storage, demand)

    assert len(storage.asked) == 3


def test_a_unit_that_nobody_asks_for_ends_what_is_fetched_ahead(path: Path) -> None:
    storage, demand = RangeStorage(), Demand(streak=GROUPS)

    read_later(path, {4}, storage, demand)

    assert fetched(storage.asked, places(path, LATER)) == {4}
    assert demand.streak == 0


def of_one_group(directory: Path, rows: int = 300_000) -> tuple[Path, pa.Table]:
    path = directory / "one.parquet"
    nested = pa.array([{"x": i, "y": -i} for i in range(rows)])
    table = pa.table({"a": range(rows), "b": range(1, rows + 1), "c": nested})
    pq.write_table(table, path, row_group_size=rows, use_dictionary=False)
    return path, table


@pytest.mark.parametrize("first", [{0}, {1}, {2}, {0, 3}])
@pytest.mark.parametrize("from_row", [0, 140_000])
def test_the_next_file_is_decoded_at_once_after_three_that_were_wanted_to_their_ends(
    tmp_path: Path, first: set[int], from_row: int
) -> None:
    path, table = of_one_group(tmp_path)
    flat = table.flatten()
    file = DataFile(str(path), FileFormat.PARQUET, table.num_rows, path.stat().st_size, 0)
    later, demand = {0, 1, 2, 3} - first, Demand()

    for number in range(5):
        storage = RangeStorage()
        with open_rows(storage, file) as rows:
            parts: tuple[list[Rows], list[Rows]] = ([], [])
            for chunk in rows.chunks(first, Share(from_row=from_row), None, Later(later, demand)):
                parts[0].append(chunk.rows)
                parts[1].extend(chunk.later_rows())
        assert demand.whole_streak == number + 1
        # one tail, and one round for all columns; a struct of which both have a part is read twice
        is_shared = len(first & {2, 3}) == 1
        assert len(storage.asked) == (2 if number >= 3 and not is_shared else 3)
        for leaves, found in zip((first, later), parts, strict=True):
            columns = list(rows.decoded(leaves))
            flattened = table_of(found, [c.name for c in columns]).flatten()
            wanted = [flat.column(leaf).slice(from_row) for leaf in sorted(leaves)]
            assert [c.to_pylist() for c in flattened.columns] == [w.to_pylist() for w in wanted]


def test_a_file_of_which_less_is_wanted_ends_that(tmp_path: Path) -> None:
    path, table = of_one_group(tmp_path)
    file = DataFile(str(path), FileFormat.PARQUET, table.num_rows, path.stat().st_size, 0)
    demand = Demand(streak=3, whole_streak=3)

    with open_rows(RangeStorage(), file) as rows:
        chunks = rows.chunks({0}, Share(), None, Later({1}, demand))
        first = [row for part in next(iter(chunks)).later_rows() for row in tuples_of(part)]
        assert first[0] == (1,)
        list(chunks)

    assert (demand.streak, demand.whole_streak) == (4, 0)


lengths = st.lists(st.integers(1, 5), min_size=1, max_size=8)


@given(lengths, st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), max_size=8))
def test_rows_are_found_however_they_are_cut(
    batches: list[int], steps: list[tuple[int, int]]
) -> None:
    """Arrow ends a batch early where an array would grow too large; two readers need not agree."""
    num_rows, first_row = sum(batches), 100
    taken = 0

    def decode() -> Iterator[tuple[int, Rows]]:
        nonlocal taken
        for length in batches:
            rows = range(first_row + taken, first_row + taken + length)
            taken += length
            yield rows.start, Rows([pa.array(rows)], length)

    unit = LaterUnit(decode)
    start = first_row
    for skip, length in steps:
        start += skip
        stop = min(start + length, first_row + num_rows)
        if start >= stop:
            break
        found = [row for part in unit.rows(start, stop) for (row,) in tuples_of(part)]
        assert found == list(range(start, stop))
        assert taken < stop - first_row + max(batches)
        start = stop
    assert unit.was_asked_for == (taken > 0)
