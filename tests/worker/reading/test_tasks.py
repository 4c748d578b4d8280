"""A task that cannot be read whole is an error that says why, and never fewer rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from floeberg.protocol.errors import (
    CorruptDataFile,
    CorruptDeletes,
    FloebergError,
    MissingFile,
    Unsupported,
)
from floeberg.protocol.files import DeleteFile
from floeberg.protocol.schema import Schema
from floeberg.protocol.tasks import FileScanTask
from tests.support.lake import FileLayout, TableWriter, WrittenFile, required, schema
from tests.support.plain import plain_rows
from tests.support.reads import plan_of, read

PEOPLE = schema({"id": required("long"), "name": "string"})
ROWS = [{"id": i, "name": f"n{i % 3}"} for i in range(30)]


@pytest.fixture
def people(tmp_path: Path) -> TableWriter:
    return TableWriter.create(tmp_path / "t", PEOPLE)


def ids(table: TableWriter, **scan: Any) -> list[int]:
    return [row["id"] for row in plain_rows(read(plan_of(table, **scan)))]


def test_a_missing_data_file_is_named(people: TableWriter) -> None:
    (file,) = people.append(ROWS)
    people.local(file.location).unlink()

    with pytest.raises(MissingFile, match=rf"data file {file.location}"):
        read(plan_of(people))


def delete_positions(table: TableWriter, file: WrittenFile) -> WrittenFile:
    return table.delete_positions({file: [1, 2]})[0]


def delete_equal(table: TableWriter, file: WrittenFile) -> WrittenFile:
    return table.delete_equal([{"name": "n1"}], ["name"])


delete_kinds = pytest.mark.parametrize("delete", [delete_positions, delete_equal])
Delete = Callable[[TableWriter, WrittenFile], WrittenFile]


@delete_kinds
def test_a_missing_delete_file_is_named(people: TableWriter, delete: Delete) -> None:
    (file,) = people.append(ROWS)
    deletes = delete(people, file)
    people.local(deletes.location).unlink()

    with pytest.raises(MissingFile, match=rf"delete file {deletes.location}"):
        read(plan_of(people))


@delete_kinds
def test_a_damaged_delete_file_is_named(people: TableWriter, delete: Delete) -> None:
    (file,) = people.append(ROWS)
    path = people.local(delete(people, file).location)
    path.write_bytes(path.read_bytes()[:-30])

    with pytest.raises(CorruptDeletes, match=path.name):
        read(plan_of(people))


def test_a_damaged_vector_is_named(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, format_version=3)
    (file,) = table.append(ROWS)
    (vector,) = table.write_vectors({file: [0, 5]})
    path = table.local(vector.location)
    content = bytearray(path.read_bytes())
    assert vector.content_offset is not None
    content[vector.content_offset + 10] ^= 1
    path.write_bytes(content)

    with pytest.raises(CorruptDeletes, match=r"wrong checksum"):
        read(plan_of(table))


def test_two_vectors_for_one_file_are_refused(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, format_version=3)
    (file,) = table.append(ROWS)
    table.write_vectors({file: [0]})

    def double(task: FileScanTask) -> list[FileScanTask]:
        return [replace(task, delete_files=task.delete_files * 2)]

    with pytest.raises(CorruptDeletes, match="2 deletion vectors"):
        read(plan_of(table, change=double))


def test_a_vector_takes_the_place_of_position_deletes(tmp_path: Path) -> None:
    table = TableWriter.create(tmp_path / "t", PEOPLE, format_version=2)
    (file,) = table.append(ROWS)
    (positions,) = table.delete_positions({file: [1, 2]})
    table.upgrade(3)
    table.write_vectors({file: [1, 2, 3]})
    table.local(positions.location).unlink()

    assert ids(table) == [0, *range(4, 30)]


def test_encrypted_files_are_unsupported(people: TableWriter) -> None:
    (file,) = people.append(ROWS)
    delete_equal(people, file)

    def encrypt_data(task: FileScanTask) -> list[FileScanTask]:
        return [replace(task, data_file=replace(task.data_file, key_metadata=b"k"))]

    def encrypt_deletes(task: FileScanTask) -> list[FileScanTask]:
        locked: list[DeleteFile] = [replace(d, key_metadata=b"k") for d in task.delete_files]
        return [replace(task, delete_files=tuple(locked))]

    for change in (encrypt_data, encrypt_deletes):
        with pytest.raises(Unsupported, match="encrypted"):
            read(plan_of(people, change=change))


def test_a_file_of_another_number_of_rows_is_refused(people: TableWriter) -> None:
    people.append(ROWS)

    def fewer(task: FileScanTask) -> list[FileScanTask]:
        return [replace(task, data_file=replace(task.data_file, record_count=31))]

    with pytest.raises(CorruptDataFile, match="holds 30 rows; its manifest says 31"):
        read(plan_of(people, change=fewer))


@delete_kinds
def test_a_delete_file_of_another_number_of_rows_is_refused(
    people: TableWriter, delete: Delete
) -> None:
    (file,) = people.append(ROWS)
    delete(people, file)

    def more(task: FileScanTask) -> list[FileScanTask]:
        counted = [replace(d, record_count=9) for d in task.delete_files]
        return [replace(task, delete_files=tuple(counted))]

    with pytest.raises(CorruptDeletes, match="its manifest says 9"):
        read(plan_of(people, change=more))


def test_a_listed_file_without_rows_need_not_exist(people: TableWriter) -> None:
    (file,) = people.append(ROWS)
    people.local(file.location).unlink()

    def empty(task: FileScanTask) -> list[FileScanTask]:
        return [replace(task, data_file=replace(task.data_file, record_count=0))]

    assert read(plan_of(people, change=empty)).num_rows == 0


def test_an_equality_delete_file_without_its_key_is_refused(people: TableWriter) -> None:
    people.append(ROWS)
    people.delete_equal([{"name": "n1"}], ["name"])

    def other_key(task: FileScanTask) -> list[FileScanTask]:
        keyed = [replace(d, equality_ids=(1,)) for d in task.delete_files]
        return [replace(task, delete_files=tuple(keyed))]

    with pytest.raises(CorruptDeletes, match=r"lacks its key column 'id' \(id 1\)"):
        read(plan_of(people, change=other_key))


def test_a_file_without_ids_is_read_by_the_name_mapping(people: TableWriter) -> None:
    people.append(ROWS, layout=FileLayout(field_ids=False))
    people.set_properties({"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'})

    assert ids(people) == list(range(30))
    assert plain_rows(read(plan_of(people, select=("name",))))[0] == {"name": None}


def test_a_file_whose_columns_are_unknown_is_warned_of(
    people: TableWriter, caplog: pytest.LogCaptureFixture
) -> None:
    people.append(ROWS, layout=FileLayout(field_ids=False))

    with caplog.at_level(logging.WARNING):
        rows = plain_rows(read(plan_of(people, select=("name",))))

    assert rows == [{"name": None}] * 30
    assert "without field ids" in caplog.text
    with pytest.raises(CorruptDataFile, match="required field 'id'"):
        ids(people)
    with pytest.raises(CorruptDataFile, match="required field 'id'"):
        read(plan_of(people, [">", "id", 3], select=("name",)))


@pytest.mark.parametrize("layout", [FileLayout("avro"), FileLayout("orc", field_ids=False)])
def test_other_formats_take_the_same_deletes(people: TableWriter, layout: FileLayout) -> None:
    people.set_properties(
        {
            "schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]},'
            ' {"field-id": 2, "names": ["name"]}]'
        }
    )
    (file,) = people.append(ROWS, layout=layout)
    people.delete_positions({file: [0, 29]}, layout=layout)
    people.delete_equal([{"name": "n1"}], ["name"], layout=layout)

    assert ids(people) == [i for i in range(1, 29) if i % 3 != 1]
    assert ids(people, filter=["=", "name", "n2"]) == [i for i in range(1, 29) if i % 3 == 2]


def test_a_damaged_file_is_refused_by_name_or_gives_all_its_rows(people: TableWriter) -> None:
    (file,) = people.append(ROWS)
    path = people.local(file.location)
    content = path.read_bytes()
    plan = plan_of(people)

    def outcome(at: int) -> int | str:
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            return read(plan).num_rows
        except FloebergError as error:
            return str(error)

    outcomes = [outcome(at) for at in range(0, len(content), 7)]
    assert all(o == 30 or (isinstance(o, str) and file.location in o) for o in outcomes)


@pytest.mark.parametrize("format_", ["parquet", "avro", "orc"])
@pytest.mark.parametrize("size", [1, 100, 10**9])
def test_a_file_of_another_size_than_its_manifest_says_is_read_whole(
    tmp_path: Path, format_: str, size: int
) -> None:
    mapping = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name"]}]'
    table = TableWriter.create(
        tmp_path / "t", PEOPLE, properties={"schema.name-mapping.default": mapping}
    )
    layout = FileLayout(format_, row_group_size=10, field_ids=format_ != "orc")
    (file,) = table.append(ROWS, layout=layout)
    table.remove(file)
    with table.commit() as commit:
        commit.add_file(replace(file, size_bytes=size))

    assert ids(table) == list(range(30))
    assert ids(table, split_size=40) == list(range(30))


@pytest.mark.parametrize("key", ["tags", "tags.element"])
def test_an_equality_delete_by_a_list_is_refused_by_name(tmp_path: Path, key: str) -> None:
    tags = {"type": "list", "element": "string", "element-required": False}
    table = TableWriter.create(tmp_path / "t", schema({"id": required("long"), "tags": tags}))
    table.append([{"id": 1, "tags": ["a"]}])
    deletes = table.delete_equal([{"id": 9}], ["id"])
    found = Schema.from_json(table.schema).lookup(key, case_sensitive=True)
    table.remove(deletes)
    with table.commit() as commit:
        commit.add_file(replace(deletes, equality_ids=(found.field_id,)))

    with pytest.raises(CorruptDeletes, match=rf"{deletes.location} compares '{key}'"):
        read(plan_of(table))
