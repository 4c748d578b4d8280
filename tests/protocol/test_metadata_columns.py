from __future__ import annotations

import json
from typing import Any

import pytest

from floeberg.protocol.errors import Unsupported
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.metadata_columns import (
    FILE,
    PARTITION_ID,
    ROW_ID,
    metadata_column,
    partition_column,
)
from floeberg.protocol.types import (
    DateType,
    IntType,
    LongType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
)


def table(*specs: list[dict[str, Any]], schemas: list[dict[str, Any]] | None = None):
    fields = [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "ts", "required": False, "type": "timestamp"},
        {"id": 3, "name": "region", "required": False, "type": "string"},
    ]
    current = {"type": "struct", "schema-id": 1, "fields": fields}
    return TableMetadata.parse(
        json.dumps(
            {
                "format-version": 2,
                "location": "file:/t",
                "schemas": [*(schemas or []), current],
                "current-schema-id": 1,
                "partition-specs": [{"spec-id": i, "fields": spec} for i, spec in enumerate(specs)],
                "default-spec-id": 0,
            }
        ),
        "t",
    )


def part(field_id: int, source_id: int, name: str, transform: str = "identity") -> dict[str, Any]:
    return {"field-id": field_id, "source-id": source_id, "name": name, "transform": transform}


def test_reserved_names_have_the_ids_of_the_spec():
    metadata = table([])

    assert metadata_column("_file", metadata) is FILE
    assert metadata_column("_row_id", metadata) is ROW_ID
    assert metadata_column("_partition", metadata) == partition_column(metadata)
    assert metadata_column("_nope", metadata) is None
    assert metadata_column("file_path", metadata) is None
    assert (FILE.field_id, PARTITION_ID, ROW_ID.field_id) == (2147483646, 2147483642, 2147483540)


def test_the_partition_column_unites_the_fields_of_all_specs():
    metadata = table(
        [part(1000, 3, "region")],
        [part(1001, 2, "day", "day"), part(1000, 3, "region")],
        [part(1002, 1, "bucket", "bucket[16]")],
    )

    assert partition_column(metadata).type == StructType(
        (
            NestedField(1000, "region", StringType()),
            NestedField(1001, "day", DateType()),
            NestedField(1002, "bucket", IntType()),
        )
    )


def test_a_field_has_its_newest_name():
    metadata = table([part(1000, 3, "old")], [part(1000, 3, "new")])

    assert partition_column(metadata).type == StructType((NestedField(1000, "new", StringType()),))


def test_a_dropped_field_of_v1_keeps_its_type():
    metadata = table([part(1000, 3, "region")], [part(1000, 3, "region", "void")])

    assert partition_column(metadata).type == StructType(
        (NestedField(1000, "region", StringType()),)
    )


def test_a_dropped_field_of_v1_leaves_its_name_to_a_later_one():
    metadata = table(
        [part(1000, 3, "region")],
        [part(1000, 3, "region_1000", "void"), part(1001, 3, "region")],
    )

    assert partition_column(metadata).type == StructType(
        (
            NestedField(1000, "region_1000", StringType()),
            NestedField(1001, "region", StringType()),
        )
    )


def test_a_dropped_source_column_has_its_last_type():
    older = {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 9, "name": "gone", "required": False, "type": "long"}],
    }
    metadata = table([part(1000, 9, "gone"), part(1001, 10, "lost")], schemas=[older])

    assert partition_column(metadata).type == StructType(
        (NestedField(1000, "gone", LongType()), NestedField(1001, "lost", UnknownType()))
    )


def test_two_fields_of_one_name_are_told_apart_by_id():
    metadata = table([part(1000, 2, "ts", "day")], [part(1001, 2, "ts", "month")])

    assert [f.name for f in partition_column(metadata).type.fields] == ["ts", "ts_1001"]


def test_one_id_with_two_meanings_is_unsupported():
    metadata = table([part(1000, 3, "region")], [part(1000, 2, "day", "day")])

    with pytest.raises(Unsupported, match="id 1000 both for 'region' and for 'day'"):
        partition_column(metadata)


def test_an_unpartitioned_table_has_an_empty_partition():
    assert partition_column(table([])).type == StructType(())
