"""Files whose Arrow schema has view types are read as others are."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from floeberg.embedded.table import open_table
from floeberg.worker.files.views import schema_without_views, without_views
from tests.support.lake import FileLayout, TableWriter, schema
from tests.support.lake.schemas import arrow_schema

WITH_ARROW_SCHEMA = FileLayout(metrics="none", parquet={"store_schema": True})
VALUES = [["a", None], None, [], ["b"]]
PAIRS = [[("k", "v"), ("l", None)], None, [], [("k", "w")]]
TEXT = ["a", None, "", "b" * 20]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(TEXT, pa.string_view()),
        pa.array([None if t is None else t.encode() for t in TEXT], pa.binary_view()),
        pa.array(VALUES, pa.list_view(pa.string())),
        pa.array(VALUES, pa.large_list_view(pa.string_view())),
        pa.array(VALUES, pa.list_(pa.string_view())),
        pa.array(VALUES, pa.large_list(pa.string_view())),
        pa.array(PAIRS, pa.map_(pa.string_view(), pa.string_view())),
        pa.array([{"x": t} for t in TEXT], pa.struct([("x", pa.string_view())])),
        pa.array([1, None, 2, 3]),
    ],
    ids=lambda array: str(array.type),
)
def test_views_are_replaced_and_the_values_stay(array: Any):
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": array}), sink)
    (batch,) = pq.read_table(sink).to_batches()

    plain = without_views(batch)

    assert plain.schema == schema_without_views(batch.schema)
    assert "view" not in str(plain.schema)
    plain.validate(full=True)
    assert plain["c"].to_pylist() == batch["c"].to_pylist()
    plain.filter(pa.array([True, False, True, True]))


def test_rows_without_columns_stay():
    rows = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))

    assert without_views(rows).num_rows == 2


def test_rows_are_chosen_from_files_with_views(tmp_path: Path):
    table = TableWriter.create(tmp_path / "t", schema({"id": "int", "name": "string"}))
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}, arrow_schema(table.schema))
    name = rows.schema.field("name")
    views = rows.set_column(1, name.with_type(pa.string_view()), rows["name"].cast("string_view"))
    with table.commit() as commit:
        file = commit.append_arrow(views, layout=WITH_ARROW_SCHEMA)
    table.delete_positions({file: [2]})

    read = open_table(str(table.directory)).scan().filter(["!=", "name", "a"]).to_table()

    assert read.to_pylist() == [{"id": 2, "name": "b"}]
    assert read.schema.field("name").type == pa.string()
