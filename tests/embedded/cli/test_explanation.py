from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from floeberg.embedded import open_table
from floeberg.embedded.cli.explanation import show_explanation
from floeberg.embedded.cli.terminal import console
from floeberg.protocol.actions import Explanation
from tests.support.lake import TableWriter, schema


def shown(found: Explanation) -> str:
    file = io.StringIO()
    show_explanation(found, console(file))
    return file.getvalue()


def explained(table: TableWriter, filter_: Any = None) -> Explanation:
    scan = open_table(table.directory).scan()
    return (scan if filter_ is None else scan.filter(filter_)).explain()


def test_names_and_values_cannot_take_hold_of_a_terminal(tmp_path: Path):
    table = TableWriter.create(tmp_path, schema({"a\x1b[2J": "string"}))
    table.append([{"a\x1b[2J": "[bold]\x1b[2J"}])

    text = shown(explained(table, ["=", "a\x1b[2J", "[bold]\x1b[2J"]))

    assert "\x1b" not in text
    assert r"[bold]\x1b[2J" in text


def test_a_filter_that_no_row_can_pass_is_told_to_look_at_nothing(tmp_path: Path):
    table = TableWriter.create(tmp_path, schema({"id": "long"}))
    table.append([{"id": 1}])

    assert "none was looked at: no row can pass the filter" in shown(explained(table, "false"))
    assert "1 task of 1 file" in shown(explained(table))
    assert "1 by metadata" in shown(explained(table))


def test_a_table_never_written_to_has_no_snapshot(tmp_path: Path):
    text = shown(explained(TableWriter.create(tmp_path, schema({"id": "long"}))))

    assert "snapshot   none" in text
    assert "manifests  none" in text


def test_of_many_residuals_the_most_common_are_shown_and_the_others_counted(tmp_path: Path):
    table = TableWriter.create(
        tmp_path, schema({"id": "long", "name": "string"}), [("id", "identity")]
    )
    table.append([{"id": n, "name": "x"} for n in range(15)])
    each = ["or", *(["and", ["=", "id", n], [">=", "name", f"a{n}"]] for n in range(15))]

    assert "and 5 more" in shown(explained(table, each))


def test_that_no_worker_is_ready_is_said(tmp_path: Path):
    table = TableWriter.create(tmp_path, schema({"id": "long"}))
    found = explained(table).model_copy(update={"endpoints": ()})

    assert "no worker is ready" in shown(found)
