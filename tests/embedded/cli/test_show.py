from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from floeberg.embedded.cli import show
from floeberg.embedded.cli.terminal import console
from floeberg.protocol.metadata import TableMetadata
from floeberg.server.describing import describe_table, list_snapshots
from tests.support.lake import Column, TableWriter, required, schema


@pytest.fixture
def hostile(tmp_path: Path) -> TableWriter:
    """A table in which whatever its writer may name holds an escape sequence."""
    table = TableWriter.create(
        tmp_path / "t",
        schema({"id": "long", "a\x1b[2J": Column("string", doc="b\x1b[2J")}),
        [("id", "bucket[4]")],
        properties={"owner\x1b[2J": "[bold]me[/bold]\x1b[2J"},
    )
    with table.commit(summary={"total-records": "1\x1b[2J"}) as commit:
        commit.append([{"id": 1}])
    table.branch("x\x1b[2J")
    return table


def shown(table: TableWriter, show_it: Any) -> str:
    metadata = TableMetadata.parse(table.metadata_path.read_bytes(), "a test")
    file = io.StringIO()
    show_it(metadata, console(file))
    return file.getvalue()


def description(metadata: TableMetadata, to: Any) -> None:
    show.description(describe_table(metadata, "\x1b[2J", "", ()), to)


def snapshots(metadata: TableMetadata, to: Any) -> None:
    show.snapshots(list_snapshots(metadata), to)


@pytest.mark.parametrize("show_it", [description, snapshots])
def test_names_and_properties_cannot_take_hold_of_a_terminal(hostile: TableWriter, show_it: Any):
    text = shown(hostile, show_it)

    assert "\x1b" not in text
    assert r"\x1b[2J" in text


def test_columns_tell_whether_they_hold_null(tmp_path: Path):
    table = TableWriter.create(tmp_path / "t", schema({"id": required("long"), "note": "string"}))

    lines = shown(table, description).splitlines()

    cells = [[cell.strip() for cell in line.split("│")[2:5]] for line in lines if "│" in line]
    assert cells == [["id", "long", "no"], ["note", "string", "yes"]]
    assert any("nulls" in line for line in lines)


def test_a_description_tells_how_a_table_is_partitioned(hostile: TableWriter):
    assert "partitioned by    bucket[4](id)" in shown(hostile, description)
    assert "[bold]me[/bold]" in shown(hostile, description)

    hostile.evolve_spec([])

    assert "partitioned by    nothing (and 1 other spec)" in shown(hostile, description)


def test_a_partition_field_of_a_column_that_was_dropped_is_told_by_its_id(hostile: TableWriter):
    hostile.drop_column("id")

    assert "bucket[4]((dropped column 1))" in shown(hostile, description)
