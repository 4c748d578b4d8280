"""The reference reader against PyIceberg where both can read, and against the spec elsewhere."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Hashable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from tests.support.filters import truth
from tests.support.lake import (
    Column,
    FileLayout,
    TableWriter,
    list_of,
    map_of,
    required,
    schema,
    struct,
)
from tests.support.plain import Json, from_json, multiset, plain_rows, promoted
from tests.support.reference import read_table

PEOPLE = schema({"id": required("long"), "name": "string", "score": "double"})
ROWS = [{"id": i, "name": f"n{i % 4}" if i % 5 else None, "score": i / 2} for i in range(20)]


def ids(table: TableWriter, **scan: Any) -> list[int]:
    return sorted(row["id"] for row in read_table(table.directory, **scan))


def their_rows(table: TableWriter, **scan: Any) -> Counter[Hashable]:
    found = StaticTable.from_metadata(str(table.metadata_path))
    return multiset(plain_rows(found.scan(**scan).to_arrow()))


def test_agrees_with_pyiceberg_on_evolved_and_deleted_rows(tmp_path: Path) -> None:
    columns = schema(
        {
            "id": required("int"),
            "when": "timestamptz",
            "price": "decimal(9,2)",
            "tags": list_of("string"),
            "attributes": map_of("string", struct({"a": "int"})),
            "who": struct({"name": "string", "gone": "date"}),
        }
    )
    table = TableWriter.create(tmp_path / "t", columns, [("when", "month"), ("id", "bucket[3]")])
    rows = [
        {
            "id": i,
            "when": dt.datetime(1969, 12, 31, 23, i, 0, i, tzinfo=dt.UTC),
            "price": Decimal(i) / 4,
            "tags": ["a", None][: i % 3],
            "attributes": {"k": {"a": i}, "none": None},
            "who": None if i == 5 else {"name": f"n{i}", "gone": dt.date(2024, 1, 1)},
        }
        for i in range(12)
    ]
    files = table.append(rows, layout=FileLayout(row_group_size=2))
    table.promote_column("id", "long")
    table.promote_column("price", "decimal(12,2)")
    table.rename_column("who.name", "nickname")
    table.drop_column("who.gone")
    table.add_column("who.age", "int")
    table.add_column("note", "string")
    table.append([{**rows[0], "id": 100, "who": {"nickname": "x", "age": 3}, "note": "new"}])
    table.delete_positions({f: [0] for f in files}, delete_files=2)

    ours = multiset(read_table(table.directory))

    assert sum(ours.values()) == len(rows) - len(files) + 1
    assert ours == their_rows(table)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["and", [">", "id", 3], ["not-null", "name"]], "id > 3 and name is not null"),
        (["or", ["=", "name", "n1"], ["<=", "score", 1]], "name = 'n1' or score <= 1"),
        (["in", "id", [1, 2, 77]], "id in (1, 2, 77)"),
        (["starts-with", "name", "n"], "name like 'n%'"),
        (["is-null", "name"], "name is null"),
    ],
)
def test_filters_agree_with_pyiceberg(tmp_path: Path, ours: Json, theirs: str) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, [("id", "truncate[5]")])
    table.append(ROWS)

    found = multiset(read_table(table.directory, filter=ours, select=["id", "score"]))

    assert found
    assert found == their_rows(table, row_filter=theirs, selected_fields=("id", "score"))


@pytest.mark.parametrize(
    ("filter_", "of_null", "of_nan", "of_two"),
    [
        (["=", "x", 2], None, False, True),
        (["!=", "x", 2], None, True, False),
        (["<", "x", 5], None, False, True),
        (["not", ["<", "x", 5]], None, True, False),
        (["in", "x", [2, 3]], None, False, True),
        (["not-in", "x", [2, 3]], None, True, False),
        (["is-nan", "x"], None, True, False),
        (["not-nan", "x"], None, False, True),
        (["is-null", "x"], True, False, False),
        (["or", ["=", "x", 2], ["is-null", "x"]], True, False, True),
        (["and", ["!=", "x", 2], ["true"]], None, True, False),
        (["or", ["=", "x", 0], ["false"]], None, False, False),
    ],
)
def test_filters_have_three_values(
    filter_: Json, of_null: bool | None, of_nan: bool | None, of_two: bool | None
) -> None:
    columns = schema({"x": "double"})

    found = [truth(filter_, {"x": x}, columns) for x in (None, float("nan"), 2.0)]

    assert found == [of_null, of_nan, of_two]


def test_a_whole_name_wins_over_a_path_and_case_may_not_matter() -> None:
    columns = schema({"a.b": "int", "a": struct({"b": "int", "c.d": "int"})})
    row = {"a.b": 1, "a": {"b": 2, "c.d": 3}}

    assert truth(["=", "a.b", 1], row, columns)
    assert truth(["=", "A.C.D", 3], row, columns, case_sensitive=False)
    with pytest.raises(KeyError):
        truth(["=", "A.B", 1], row, columns)


def test_equality_deletes_reach_older_rows_only(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)
    table.append(ROWS)
    with table.commit() as commit:
        commit.append([{"id": 1, "name": "kept: its commit is the delete's own"}])
        commit.delete_equal([{"id": 1}, {"id": 2}], ["id"])
    table.append([{"id": 2, "name": "kept: it is newer"}])

    assert ids(table) == [0, 1, 2, *range(3, 20)]
    assert len(read_table(table.directory, filter=["=", "name", "n1"])) == 3


def test_a_null_key_deletes_nulls_and_every_column_must_match(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)
    table.append(ROWS[:12])

    table.delete_equal([{"name": None, "id": 5}, {"name": "n1", "id": 2}], ["name", "id"])
    assert ids(table) == [i for i in range(12) if i != 5]

    table.delete_equal([{"name": None}], ["name"])
    assert ids(table) == [i for i in range(12) if i % 5]


def test_equality_keys_follow_evolution(tmp_path: Path) -> None:
    columns = schema({"k": "int", "gone": "string", "who": struct({"name": "string"})})
    table = TableWriter.create(tmp_path / "t", columns)
    table.append([{"k": i, "gone": f"g{i}", "who": {"name": f"n{i}"}} for i in range(6)])
    table.delete_equal([{"gone": "g0"}], ["gone"])
    table.delete_equal([{"who": {"name": "n1"}}], ["who.name"])
    table.promote_column("k", "long")
    table.rename_column("k", "key")
    table.drop_column("gone")
    table.add_column("late", "int")
    table.delete_equal([{"key": 2}], ["key"])
    table.delete_equal([{"key": 3, "late": None}, {"key": 4, "late": 1}], ["key", "late"])

    assert sorted(row["key"] for row in read_table(table.directory)) == [4, 5]


def test_deletes_stay_in_their_partition_unless_they_are_global(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, [("name", "identity")])
    table.append([{"id": 1, "name": "a"}, {"id": 1, "name": "b"}, {"id": 2, "name": "b"}])

    table.delete_equal([{"id": 1}], ["id"], partition={"name": "a"})
    assert ids(table) == [1, 2]

    table.delete_equal([{"id": 2}], ["id"])
    assert ids(table) == [1]


def test_a_vector_takes_the_place_of_position_deletes(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)
    first, second = (f for rows in (ROWS[:10], ROWS[10:]) for f in table.append(rows))
    table.delete_positions({first: [0, 1], second: [0]})
    table.upgrade(3)

    table.write_vectors({first: [5]})

    assert ids(table) == [i for i in range(20) if i not in (5, 10)]


def test_columns_come_from_the_file_the_partition_the_mapping_the_default(tmp_path: Path) -> None:
    mapping = [
        {"field-id": 1, "names": ["old_id", "id"]},
        {"field-id": 4, "names": ["st"], "fields": [{"field-id": 5, "names": ["x"]}]},
    ]
    columns = schema(
        {"id": "long", "part": "string", "d": Column("date"), "st": struct({"a": "int"})}
    )
    table = TableWriter.create(
        tmp_path / "t",
        columns,
        [("part", "identity")],
        format_version=3,
        properties={"schema.name-mapping.default": json.dumps(mapping)},
    )
    stored = pa.table(
        {"old_id": pa.array([7], pa.int32()), "st": [{"x": 1, "y": 2}], "part": ["from the file"]}
    )
    with table.commit() as commit:
        commit.append_arrow(stored, partition={"part": "from the tuple"})
    table.add_column("count", Column("long", initial_default=3))
    table.add_column("day", Column("date", initial_default="2024-02-29", required=True))
    table.add_column("st.b", Column("decimal(4,2)", initial_default="1.50"))

    assert read_table(table.directory) == [
        {
            "id": 7,
            "part": "from the tuple",
            "d": None,
            "st": {"a": 1, "b": Decimal("1.50")},
            "count": 3,
            "day": 19782,
        }
    ]


def test_avro_files_read_as_parquet_files_do(tmp_path: Path) -> None:
    columns = schema(
        {
            "i": "int",
            "day": "date",
            "ns": "timestamp_ns",
            "t": "time",
            "price": "decimal(20,3)",
            "u": "uuid",
            "m": map_of("int", list_of(struct({"a-b": "binary"}))),
        }
    )
    row = {
        "i": 1,
        "day": dt.date(1960, 2, 3),
        "ns": -1,
        "t": dt.time(1, 2, 3, 4),
        "price": Decimal("-5.125"),
        "u": bytes(range(16)),
        "m": {1: [{"a-b": b"x"}, None], 2: None},
    }
    read = []
    for format_ in ("avro", "parquet"):
        table = TableWriter.create(tmp_path / format_, columns, format_version=3)
        table.append([row, {}], layout=FileLayout(format=format_))
        read.append(read_table(table.directory))

    assert multiset(read[0]) == multiset(read[1])
    assert read[0][0]["ns"] == -1


def test_rows_know_where_they_come_from(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, [("name", "identity")], format_version=3)
    (file,) = table.append([{"id": i, "name": "a"} for i in range(4)])
    table.write_vectors({file: [1]})
    with table.commit() as commit:
        commit.append([{"id": 9, "name": "b", "_row_id": 2}], stored_lineage=True)
    lineage = ["_row_id", "_last_updated_sequence_number", "_pos", "_partition", "id"]

    rows = read_table(table.directory, select=lineage)

    assert [tuple(row.values()) for row in sorted(rows, key=lambda r: int(r["id"]))] == [
        (0, 1, 0, {"name": "a"}, 0),
        (2, 1, 2, {"name": "a"}, 2),
        (3, 1, 3, {"name": "a"}, 3),
        (2, 3, 0, {"name": "b"}, 9),
    ]


def test_time_travel_reads_the_schema_of_its_time(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)
    table.append(ROWS[:1])
    first = table.snapshot()
    table.tag("first")
    table.branch("work")
    table.rename_column("score", "points")
    table.append(ROWS[1:2])

    names = {
        key: [list(row) for row in read_table(table.directory, **scan)]
        for key, scan in {
            "id": {"snapshot_id": first["snapshot-id"]},
            "tag": {"ref": "first"},
            "time": {"as_of_ms": first["timestamp-ms"]},
            "branch": {"ref": "work"},
            "now": {},
        }.items()
    }

    then, now = ["id", "name", "score"], ["id", "name", "points"]
    assert names == {
        "id": [then],
        "tag": [then],
        "time": [then],
        "branch": [now],
        "now": [now, now],
    }


def test_selecting_prunes_structs_and_keeps_the_order_asked_for(tmp_path: Path) -> None:
    columns = schema({"a": struct({"x": "int", "y": "int", "z": "int"}), "b": "int"})
    table = TableWriter.create(tmp_path / "t", columns)
    table.append([{"a": {"x": 1, "y": 2, "z": 3}, "b": 4}, {"a": None, "b": 5}])

    rows = read_table(table.directory, select=["b", "a.z", "a.x"])

    assert [list(row) for row in rows] == [["b", "a"]] * 2
    assert rows == [{"b": 4, "a": {"x": 1, "z": 3}}, {"b": 5, "a": None}]


def test_a_moved_table_is_read_by_rebasing(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, location="s3://bucket/t")
    table.append(ROWS[:3])

    rows = read_table(table.directory, rebase={"s3://bucket/t": str(tmp_path / "t")})

    assert len(rows) == 3


def test_a_table_never_written_to_has_no_rows(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE)

    assert read_table(table.directory) == []


@pytest.mark.parametrize(
    ("type_", "unit", "stored", "expected"),
    [
        ("timestamp", "ms", -1, -1000),
        ("timestamp", "ns", -1, -1),
        ("timestamp_ns", "us", 5, 5000),
        ("timestamp", "day", -1, -86_400_000_000),
        ("decimal(12,3)", None, Decimal("1.5"), Decimal("1.500")),
        ("double", None, 1, 1.0),
        ("string", None, b"x", "x"),
    ],
)
def test_stored_values_are_promoted(
    type_: str, unit: str | None, stored: Any, expected: Any
) -> None:
    assert promoted(type_, unit, stored) == expected


@pytest.mark.parametrize(
    ("type_", "raw", "expected"),
    [
        ("date", "1969-12-31", -1),
        ("time", "00:00:01.000002", 1_000_002),
        ("timestamptz", "1970-01-01T01:00:00+01:00", 0),
        ("timestamp_ns", "1969-12-31T23:59:59.999999999", -1),
        ("decimal(9,2)", "14.20", Decimal("14.20")),
        ("float", 0.1, 0.10000000149011612),
        ("fixed[4]", "000102ff", b"\x00\x01\x02\xff"),
        ("long", 5, 5),
    ],
)
def test_json_values_are_plain_values(type_: str, raw: Any, expected: Any) -> None:
    assert from_json(type_, raw) == expected
