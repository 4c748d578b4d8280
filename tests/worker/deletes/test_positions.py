"""Positions count a file's rows, whatever part of it is looked at."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from floeberg.worker.deletes.positions import are_all_deleted, keep_mask, split_by_location, union

positions = st.lists(st.integers(0, 40))


@given(first_row=st.integers(0, 20), num_rows=st.integers(0, 20), deleted=positions)
def test_keeps_exactly_the_positions_not_deleted(
    first_row: int, num_rows: int, deleted: list[int]
) -> None:
    mask = keep_mask(first_row, num_rows, union([np.array(deleted, dtype=np.int64)]))

    rows = range(first_row, first_row + num_rows)
    kept = list(rows) if mask is None else [r for r, k in zip(rows, mask, strict=True) if k]
    assert kept == [r for r in rows if r not in deleted]
    assert are_all_deleted(first_row, num_rows, union([np.array(deleted, dtype=np.int64)])) == (
        not kept
    )


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 9))))
def test_splits_a_delete_file_by_data_file(pairs: list[tuple[str, int]]) -> None:
    locations = pa.array([location for location, _ in pairs], pa.string())

    parts = split_by_location(locations, pa.array([p for _, p in pairs], pa.int64()))

    found = {location: sorted(part.tolist()) for location, part in parts}
    assert found == {
        location: sorted(p for other, p in pairs if other == location)
        for location in {location for location, _ in pairs}
    }


@given(st.lists(positions, max_size=3))
def test_a_union_is_sorted_and_distinct(parts: list[list[int]]) -> None:
    joined = union([np.array(part, dtype=np.int64) for part in parts])

    assert joined.tolist() == sorted({p for part in parts for p in part})
