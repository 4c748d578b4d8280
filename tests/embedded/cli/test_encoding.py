from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import given

from floeberg.embedded import open_table
from floeberg.embedded.cli.encoding import json_rows, json_values
from floeberg.protocol.arrow import arrow_field
from floeberg.protocol.types import NestedField, UuidType
from floeberg.protocol.values import to_json
from tests.support.all_types import JSON, write_all_types
from tests.support.iceberg_values import typed_values


def test_each_type_has_the_json_of_appendix_d(tmp_path: Path):
    write_all_types(tmp_path / "t")
    (batch,) = open_table(tmp_path / "t").scan().to_batches()

    assert list(json_rows(batch)) == [JSON, dict.fromkeys(JSON)]


@given(typed_values)
def test_values_are_encoded_as_single_values_are(typed):
    type_, value = typed
    field = arrow_field(NestedField(1, "c", type_))
    is_uuid = isinstance(type_, UuidType)
    storage = pa.array([value, None], type=pa.binary(16) if is_uuid else field.type)
    array = pa.ExtensionArray.from_storage(field.type, storage) if is_uuid else storage

    assert json_values(array, field) == [to_json(type_, value), None]


def test_a_slice_has_the_values_of_its_rows():
    array = pa.array(
        [[{"a": 1}], [], None, [{"a": 2}, None], [{"a": None}]],
        type=pa.list_(pa.struct([("a", pa.int32())])),
    )
    maps = pa.array([[("a", 1)], None, [("b", 2), ("c", None)]], pa.map_(pa.string(), pa.int64()))

    assert json_values(array.slice(1, 3), None) == [[], None, [{"a": 2}, None]]
    assert json_values(maps.slice(1), None) == [
        None,
        {"keys": ["b", "c"], "values": [2, None]},
    ]


def test_rows_without_columns_are_still_rows():
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))

    assert list(json_rows(batch)) == [{}, {}]


def test_what_is_no_geometry_is_shown_as_hex():
    field = pa.field("g", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})

    assert json_values(pa.array([b"\x01\x02", None]), field) == ["0102", None]
