from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyiceberg.table import StaticTable

from floeberg.embedded import Table, open_table
from floeberg.protocol.errors import (
    BadRequest,
    CorruptMetadata,
    MissingFile,
    NotATable,
    UnsupportedVersion,
)
from floeberg.protocol.metadata import TableMetadata
from tests.support.lake import TableWriter, required, schema
from tests.support.orders import live_ids
from tests.support.scans import RecordingStorage


def ids(table: Table) -> list[int]:
    return sorted(table.scan().select(["id"]).to_table()["id"].to_pylist())


def parsed(table: TableWriter) -> TableMetadata:
    return TableMetadata.parse(table.metadata_path.read_bytes(), "a test")


def pyiceberg_table(table: TableWriter) -> StaticTable:
    return StaticTable.from_metadata(str(table.metadata_path))


# --- what can be opened ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(lambda t: str(t.metadata_path), id="metadata path"),
        pytest.param(lambda t: f"file://{t.metadata_path}", id="metadata uri"),
        pytest.param(lambda t: str(t.directory), id="directory"),
        pytest.param(lambda t: f"file://{t.directory}/", id="directory uri"),
        pytest.param(lambda t: t.directory, id="Path"),
        pytest.param(parsed, id="TableMetadata"),
        pytest.param(pyiceberg_table, id="PyIceberg table"),
        pytest.param(lambda t: pyiceberg_table(t).metadata, id="PyIceberg metadata"),
    ],
)
def test_each_source_opens_the_same_table(orders, source):
    table = open_table(source(orders))

    assert ids(table) == list(live_ids())
    assert table.schema() == table.scan().schema()
    assert table.schema().names == ["id", "region", "amount", "placed_at", "customer", "note"]


def test_the_metadata_location_is_known_where_there_is_one(orders):
    assert open_table(orders.directory).metadata_location == str(orders.metadata_path)
    assert open_table(parsed(orders)).metadata_location is None


def test_a_pyiceberg_table_that_is_staged_is_read_from_its_metadata_in_memory(orders):
    class Staged:
        metadata_location = None
        metadata = pyiceberg_table(orders).metadata
        io = pyiceberg_table(orders).io

    assert ids(open_table(Staged())) == list(live_ids())


def test_a_pyiceberg_io_gives_its_properties_and_those_given_win(orders):
    class Io:
        properties: ClassVar = {"s3.endpoint": "http://a", "s3.region": "x", "py-io-retries": 3}

    class Loaded:
        metadata_location = str(orders.metadata_path)
        metadata = pyiceberg_table(orders).metadata
        io = Io()

    table = open_table(Loaded(), {"s3.region": "y"})
    beside = open_table(parsed(orders), io=Io())

    assert table.config.properties == {
        "s3.endpoint": "http://a",
        "s3.region": "y",
        "py-io-retries": "3",
    }
    assert beside.config.properties["s3.region"] == "x"


def test_storage_that_is_given_is_what_reads(orders):
    storage = RecordingStorage()

    open_table(str(orders.directory), io=storage).scan().plan_files()

    assert str(orders.metadata_path) in storage.read_locations


def test_a_copied_warehouse_is_read_where_it_is(directory: Path, tmp_path: Path):
    table = TableWriter.create(
        directory, schema({"id": required("long")}), location="s3://elsewhere/lake/t"
    )
    table.append([{"id": 1}])
    moved = tmp_path / "moved"
    shutil.move(directory, moved)

    opened = open_table(str(moved), rebase={"s3://elsewhere/lake/t": str(moved)})

    assert ids(opened) == [1]
    (path,) = opened.scan().select(["_file"]).to_table()["_file"].unique().to_pylist()
    assert path.startswith("s3://elsewhere/lake/t/")


def test_a_table_stays_the_version_that_was_opened(directory: Path):
    writer = TableWriter.create(directory, schema({"id": required("long")}))
    writer.append([{"id": 1}])
    opened = open_table(str(directory))
    writer.append([{"id": 2}])

    assert ids(opened) == [1]
    assert ids(open_table(str(directory))) == [1, 2]


# --- what cannot ----------------------------------------------------------------------------------


def write(path: Path, body: Any) -> str:
    path.write_text(json.dumps(body) if not isinstance(body, str) else body)
    return str(path)


def test_what_is_no_table_is_refused_by_name(orders, tmp_path: Path):
    with pytest.raises(NotATable, match="no-such"):
        open_table(str(tmp_path / "no-such"))
    with pytest.raises(NotATable):
        open_table(str(tmp_path))
    with pytest.raises(MissingFile, match="v9"):
        open_table(str(tmp_path / "v9.metadata.json"))
    with pytest.raises(BadRequest, match="int is not a table"):
        open_table(3)  # type: ignore[arg-type]


def test_metadata_that_cannot_be_read_is_refused_by_name(orders, tmp_path: Path):
    whole = orders.metadata_path.read_text()
    cut = write(tmp_path / "v1.metadata.json", whole[: len(whole) // 2])
    future = write(tmp_path / "v2.metadata.json", {**orders.metadata, "format-version": 9})

    with pytest.raises(CorruptMetadata, match=r"v1\.metadata\.json"):
        open_table(cut)
    with pytest.raises(UnsupportedVersion, match="9"):
        open_table(future)


def test_secrets_stay_out_of_the_repr(orders):
    table = open_table(str(orders.directory), {"s3.secret-access-key": "hush"})

    assert "hush" not in repr(table)
    assert "hush" not in repr(table.scan())
