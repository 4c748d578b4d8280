"""Stored columns: ids from the file, else from the mapping; leaves as Parquet counts them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.arrow import field_id_of
from floeberg.protocol.name_mapping import NameMapping
from floeberg.worker.files.stored import StoredField, has_field_ids, prune, stored_fields, walk

TYPES = st.recursive(
    st.sampled_from([pa.int64(), pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.uuid()]),
    lambda inner: (
        inner.map(pa.list_)
        | inner.map(pa.large_list)
        | inner.map(lambda t: pa.map_(pa.string(), t))
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda types: pa.struct([(f"c{i}", t) for i, t in enumerate(types)])
        )
    ),
    max_leaves=5,
)


def written(types: list[pa.DataType]) -> pq.ParquetFile:
    sink = io.BytesIO()
    pq.write_table(pa.table({f"f{i}": pa.nulls(1, t) for i, t in enumerate(types)}), sink)
    return pq.ParquetFile(io.BytesIO(sink.getvalue()))


def shape(columns: Sequence[StoredField]) -> list[Any]:
    return [(c.name, shape(c.children)) for c in columns]


@given(st.lists(TYPES, min_size=1, max_size=3), st.data())
def test_leaves_are_numbered_as_parquet_numbers_them(
    types: list[pa.DataType], data: st.DataObject
) -> None:
    file = written(types)
    columns = stored_fields(file.schema_arrow, field_id_of)
    count = file.metadata.num_columns
    paths = [file.schema.column(i).path for i in range(count)]

    assert [c.name for c in columns for _ in c.leaves] == [p.split(".")[0] for p in paths]
    assert [f.first_leaf for f in walk(columns) if not f.children] == list(range(count))


@given(st.lists(TYPES, min_size=1, max_size=3), st.data())
def test_pruning_leaves_what_pyarrow_decodes(types: list[pa.DataType], data: st.DataObject) -> None:
    file = written(types)
    columns = stored_fields(file.schema_arrow, field_id_of)
    # a map of which one side is left out is decoded as a list
    maps = [set(f.leaves) for f in walk(columns) if isinstance(f.type, pa.MapType)]
    wanted = data.draw(st.sets(st.integers(0, file.metadata.num_columns - 1)))
    wanted |= {leaf for leaves in maps if leaves & wanted for leaf in leaves}

    reader = file.reader  # type: ignore[attr-defined]  # not in the stubs
    [batch] = reader.iter_batches(1, row_groups=[0], column_indices=sorted(wanted))

    assert shape(prune(columns, wanted)) == shape(stored_fields(batch.schema, field_id_of))


def test_ids_come_from_the_file_and_then_from_the_mapping() -> None:
    own = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "7"})
    nested = pa.field("s", pa.struct([("x", pa.int64()), ("y", pa.list_(pa.int64()))]))
    mapping = NameMapping.parse(
        '[{"names": ["a"], "field-id": 1},'
        ' {"names": ["s", "t"], "field-id": 2, "fields": ['
        '   {"names": ["y"], "field-id": 3, "fields": [{"names": ["element"], "field-id": 4}]}]}]'
    )

    columns = stored_fields(pa.schema([own, nested]), field_id_of, mapping)

    assert [(f.name, f.field_id, f.is_mapped) for f in walk(columns)] == [
        ("a", 7, False),
        ("s", 2, True),
        ("x", None, False),
        ("y", 3, True),
        ("element", 4, True),
    ]
    assert has_field_ids(columns)
    assert not has_field_ids(stored_fields(pa.schema([nested]), field_id_of, mapping))


def test_negative_ids_are_none() -> None:
    field = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "-1"})

    [column] = stored_fields(pa.schema([field]), field_id_of)

    assert column.field_id is None
