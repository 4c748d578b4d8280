"""`floeberg sql`: a statement from wherever it comes, and the prompt."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from floeberg.embedded.cli import prompt
from floeberg.embedded.cli.main import app
from floeberg.embedded.cli.prompt import run_prompt, statements_in
from floeberg.protocol.errors import BadRequest
from tests.support.fleet import LocalFleet
from tests.support.orders import live_ids
from tests.support.terminal import on_terminal

QUERY = "SELECT * FROM db.orders"


def run(fleet: LocalFleet, *arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, ["sql", *arguments, "--server", fleet.location], input=typed)


def output(fleet: LocalFleet, *arguments: str, typed: str | None = None) -> str:
    done = run(fleet, *arguments, typed=typed)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return done.stdout


def ids(lines: str) -> list[int]:
    return sorted(json.loads(line)["id"] for line in lines.splitlines())


# --- the statement -------------------------------------------------------------------------------


def test_a_statement_comes_as_an_argument_from_standard_input_or_from_a_file(
    fleet: LocalFleet, tmp_path: Path
):
    file = tmp_path / "query.sql"
    file.write_text(QUERY)

    for answer in (
        output(fleet, QUERY, "--format", "json"),
        output(fleet, "-", "--format", "json", typed=QUERY),
        output(fleet, "--format", "json", typed=QUERY),
        output(fleet, "-f", str(file), "--format", "json"),
    ):
        assert ids(answer) == list(live_ids())


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([QUERY, "--file", "x.sql"], "not both"),
        (["--file", "/no/such.sql"], "cannot be read: No such file"),
        ([QUERY, "--param", "1", "--ref", "v1", "--snapshot-id", "1"], "CONFLICTING_SNAPSHOT"),
        ([QUERY, "--as-of", "yesterday"], "neither milliseconds"),
        (["SELEKT 1"], "[BAD_SQL]"),
        (["SELECT * FROM db.nope"], "[UNKNOWN_TABLE]"),
        ([QUERY, "--catalog", "nope"], "catalog='nope' is refused"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_with_its_status(
    fleet: LocalFleet, arguments: list[str], why: str
):
    done = run(fleet, *arguments)

    assert done.exit_code == 2
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_parameters_and_options_reach_the_statement(fleet: LocalFleet):
    limited = ["SELECT * FROM orders LIMIT ?", "--param", "3", "--schema", "db", "--ref", "v1"]

    assert len(output(fleet, *limited, "--format", "json").splitlines()) == 3


# --- the rows ------------------------------------------------------------------------------------


def test_rows_come_in_the_formats_of_scans(fleet: LocalFleet, tmp_path: Path):
    arrow = tmp_path / "rows.arrow"
    output(fleet, QUERY, "--format", "arrow", "--output", str(arrow))
    with pa.ipc.open_stream(arrow) as stream:
        assert sorted(stream.read_all()["id"].to_pylist()) == list(live_ids())

    rows = csv.DictReader(io.StringIO(output(fleet, QUERY, "--format", "csv")))
    assert sorted(int(row["id"]) for row in rows) == list(live_ids())


def test_a_table_is_a_look_at_the_first_rows(fleet: LocalFleet):
    look = output(fleet, QUERY)
    assert look.rstrip().endswith(
        "100 rows shown, and there are more: say --limit, or another --format"
    )
    assert output(fleet, QUERY, "--limit", "3").rstrip().endswith("3 rows")
    assert output(fleet, QUERY, "--limit", "0").rstrip().endswith("0 rows")
    assert len(output(fleet, QUERY, "-n", "7", "--format", "csv").splitlines()) == 8


# --- the prompt ----------------------------------------------------------------------------------


def test_a_statement_ends_at_a_semicolon_that_nothing_hides():
    assert statements_in("SELECT 1; SELECT ';' ;\n") == ["SELECT 1", " SELECT ';' ", "\n"]
    assert statements_in('SELECT "a;b" -- c;\n, 1;')[0] == 'SELECT "a;b" -- c;\n, 1'
    assert statements_in("SELECT /* ; */ 1;;")[:-1] == ["SELECT /* ; */ 1"]
    for still_open in ("SELECT 'it''s;", 'SELECT "a;', "SELECT /* ;", "SELECT 1 -- ;"):
        assert statements_in(still_open) == [still_open]


class Typist:
    """Types lines, one of which may be Ctrl-C, and then the end of all."""

    def __init__(self, *lines: str | type[BaseException]) -> None:
        self.lines = list(lines)
        self.asked: list[str] = []

    def __call__(self, ask: str) -> str:
        self.asked.append(ask)
        if not self.lines:
            raise EOFError
        line = self.lines.pop(0)
        if not isinstance(line, str):
            raise line
        return line


@pytest.fixture
def kept_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "floeberg" / "sql_history"


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str | type[BaseException]) -> list[str]:
    """Return what a prompt asks for, and runs, when a person types these lines."""
    typist = Typist(*lines)
    monkeypatch.setattr(prompt, "_editing", lambda: typist)
    ran: list[str] = []

    def run_it(statement: str) -> None:
        ran.append(statement)
        if "WRONG" in statement:
            raise BadRequest("there is no such thing")
        if "LONG" in statement:
            raise KeyboardInterrupt

    run_prompt(run_it)
    return ran


def test_a_prompt_runs_what_is_typed_over_several_lines(
    kept_at: Path, monkeypatch: pytest.MonkeyPatch
):
    ran = typed(
        monkeypatch, "SELECT 1", "  + 1;", "", "SELECT 2; SELECT 3", ";", "\\q", "SELECT 4;"
    )

    assert ran == ["SELECT 1\n  + 1", "SELECT 2", "SELECT 3"]


def test_a_prompt_says_what_there_is(
    kept_at: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert typed(monkeypatch, "help", "\\?", "\\H;", "SELECT", "help", ";", "exit") == [
        "SELECT\nhelp"
    ]
    told = capsys.readouterr().err
    assert told.count("SHOW ALL TABLES;") == 3
    assert "exit, quit or \\q leaves" in told


def test_a_prompt_goes_on_after_errors_and_ctrl_c(
    kept_at: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    ran = typed(monkeypatch, "WRONG;", "SELECT a", KeyboardInterrupt, "LONG;", "SELECT 5;")

    assert ran == ["WRONG", "LONG", "SELECT 5"]
    told = capsys.readouterr().err
    assert "[BAD_REQUEST] there is no such thing" in told
    assert "cancelled" in told


def test_a_person_at_a_terminal_is_prompted_and_what_they_type_is_kept(
    fleet: LocalFleet, kept_at: Path
):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "floeberg.embedded", "sql", "--server", fleet.location]

    seen = on_terminal(
        [*command, "--limit", "2"], environment, typed="SELECT * FROM db.orders\n;\nSELEKT;\n\\q\n"
    )

    assert seen.status == 0
    assert "floeberg> " in seen.text
    assert "     ...> " in seen.text
    assert "2 rows" in seen.text
    assert "[BAD_SQL]" in seen.text
    assert "SELECT * FROM db.orders" in kept_at.read_text()
    assert kept_at.stat().st_mode & 0o077 == 0
