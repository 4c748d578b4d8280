"""Every command, on a server and on a table that is opened in process."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from floeberg.embedded import open_table
from floeberg.embedded.cli.main import app
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from tests.support.all_types import JSON
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.orders import live_ids
from tests.support.unreachable import UnreachableCatalog

COMMANDS = [
    "tables",
    "describe",
    "schema",
    "snapshots",
    "files",
    "explain",
    "count",
    "scan",
    "sql",
    "status",
]
SERVICES = ["up", "coordinator", "worker", "key", "token", "password"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def output(*arguments: str) -> str:
    done = run(*arguments)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return done.stdout


@pytest.fixture(params=["server", "table"])
def orders(request: pytest.FixtureRequest, warehouse: Path) -> list[str]:
    """The arguments that name `db.orders`, one way or the other."""
    if request.param == "table":
        return ["--table", str(warehouse / "db" / "orders")]
    fleet: LocalFleet = request.getfixturevalue("fleet")
    return ["db.orders", "--server", fleet.location]


# --- asking ---------------------------------------------------------------------------------------


def test_tables_are_listed_as_they_can_be_named(fleet: LocalFleet):
    lines = output("tables", "--server", fleet.location).splitlines()

    assert lines == ['["db", "a.b"]', "db.all_types", "db.orders"]
    for line in lines:
        assert output("count", line, "--server", fleet.location).strip().isdigit()
    names = json.loads(output("tables", "--server", fleet.location, "--json"))
    assert names == [["db", "a.b"], ["db", "all_types"], ["db", "orders"]]


def test_a_list_of_tables_says_what_is_missing_in_it(warehouse: Path, tmp_path: Path):
    with local_fleet(tmp_path, workers=0) as nothing:
        done = run("tables", "--server", nothing.location)
        assert (done.exit_code, done.stdout) == (0, "")
        assert done.stderr.startswith("no tables")

    catalogs = [WarehouseCatalog("lake", str(warehouse)), UnreachableCatalog("gone", tmp_path)]
    with local_fleet(Catalogs(catalogs), workers=0) as partly:
        done = run("tables", "--server", partly.location)
        assert "db.orders" in done.stdout.splitlines()
        assert done.stderr.startswith("catalog gone is not listed: [CATALOG_UNAVAILABLE]")


def test_describe_shows_what_a_table_is_like(orders: list[str]):
    text = output("describe", *orders)

    for part in ("format version    2", "partitioned by    region", "audit (branch)", "placed_at"):
        assert part in text
    described = json.loads(output("describe", *orders, "--json"))
    assert described["format_version"] == 2
    assert len(described["refs"]) == 3


def test_schema_shows_nested_fields_below_their_parents(orders: list[str]):
    lines = output("schema", *orders).splitlines()

    cells = [[cell.strip() for cell in line.split("│")[1:3]] for line in lines if "│" in line]
    assert cells[4:7] == [["5", "customer"], ["6", "name"], ["7", "vip"]]
    assert "│   vip" in "\n".join(lines)
    assert json.loads(output("schema", *orders, "--json"))["fields"][0]["name"] == "id"


def test_snapshots_are_listed_oldest_first_with_their_names(orders: list[str]):
    listed = json.loads(output("snapshots", *orders, "--json"))["snapshots"]
    rows = [line for line in output("snapshots", *orders).splitlines() if line.startswith("│")]

    assert [row.split()[1] for row in rows] == [str(s["snapshot_id"]) for s in listed]
    assert sum("v1 (tag)" in row for row in rows) == 1


def test_the_time_of_a_snapshot_leads_back_to_it(orders: list[str]):
    rows = [line for line in output("snapshots", *orders).splitlines() if "v1 (tag)" in line]
    time = rows[0].split("│")[2].strip()

    scan = ["scan", *orders, "--format", "csv", "--ordered"]
    assert output(*scan, "--as-of", time) == output(*scan, "--ref", "v1")


def test_files_are_listed_once_each(orders: list[str], warehouse: Path):
    scan = open_table(warehouse / "db" / "orders").scan().filter("id = 1")
    expected = {task.data_file.location for task in scan.plan_files()}

    text = output("files", *orders, "--filter", "id = 1")
    plan = json.loads(output("files", *orders, "--filter", "id = 1", "--json"))

    assert f"{len(expected):,} file" in text.splitlines()[-1]
    assert all(path in text for path in expected)
    assert "id = 1" in text
    paths = [task["data-file"]["file-path"] for task in plan["file-scan-tasks"]]
    assert sorted(paths) == sorted(expected)
    references = {r for task in plan["file-scan-tasks"] for r in task["delete-file-references"]}
    assert references == set(range(len(plan["delete-files"])))


def test_explain_shows_what_is_pruned_and_by_what(orders: list[str]):
    options = [*orders, "--filter", "region = 'eu' AND id > 200"]

    text = output("explain", *options)
    found = json.loads(output("explain", *options, "--json"))

    assert "partition values 14, column metrics 5" in text
    assert "id > 200" in text
    (files,) = (level for level in found["levels"] if level["name"] == "data files")
    assert files == {
        "name": "data files",
        "total": 21,
        "pruned": {"partition values": 14, "column metrics": 5, "limit": 0},
        "kept": 2,
    }
    assert all(step["name"] in text for step in found["steps"])


def test_explain_shows_where_endpoints_are_read(fleet: LocalFleet):
    text = output("explain", "db.orders", "--server", fleet.location)

    assert all(worker.location in text for worker in fleet.workers)
    assert "equality deletes" in text
    assert "rows       at most" in text


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ([], len(live_ids())),
        (["--filter", "id < 10"], 8),
        (["--filter", "ID < 10", "--case-insensitive"], 8),
        (["--ref", "v1"], len(live_ids(noted=False))),
    ],
)
def test_count(orders: list[str], options: list[str], count: int):
    assert output("count", *orders, *options) == f"{count}\n"


def test_status_shows_the_workers(fleet: LocalFleet):
    text = output("status", "--server", fleet.location)
    found = json.loads(output("status", "--server", fleet.location, "--json"))

    assert all(worker.location in text for worker in fleet.workers)
    assert "catalog warehouse: " in text
    assert "cache of manifests in memory: " in text
    assert len(found["workers"]) == 2


# --- scanning -------------------------------------------------------------------------------------


def test_a_scan_shows_a_table_of_the_first_rows(orders: list[str]):
    lines = output("scan", *orders, "--select", "id,customer.name", "--ordered").splitlines()

    assert lines[-1].startswith("100 rows shown, and there are more")
    assert len([line for line in lines if line.startswith("│")]) == 100
    assert output("scan", *orders, "--limit", "150").splitlines()[-1] == "150 rows"
    assert output("scan", *orders, "--filter", "id = 1").splitlines()[-1] == "1 row"


def test_a_scan_without_columns_is_a_count(orders: list[str]):
    assert output("scan", *orders, "--select", "") == f"{len(live_ids())} rows\n"


def test_a_scan_as_json_has_every_row(orders: list[str]):
    lines = output("scan", *orders, "--format", "json", "--select", "id").splitlines()

    assert sorted(json.loads(line)["id"] for line in lines) == list(live_ids())


def test_a_scan_as_csv_has_every_row(orders: list[str]):
    text = output("scan", *orders, "--format", "csv", "--filter", "id >= 5000")

    rows = list(csv.DictReader(io.StringIO(text)))
    assert sorted(int(row["id"]) for row in rows) == list(range(5000, 5040))
    assert all(row["note"] == f"n{row['id']}" for row in rows)


def test_a_scan_as_arrow_or_parquet_has_the_very_rows(
    orders: list[str], warehouse: Path, tmp_path: Path
):
    expected = open_table(warehouse / "db" / "orders").scan().to_table()
    stream = CliRunner().invoke(app, ["scan", *orders, "--format", "arrow", "--ordered"])
    path = tmp_path / "rows.parquet"

    assert output("scan", *orders, "--format", "parquet", "--ordered", "-o", str(path)) == ""

    assert pa.ipc.open_stream(stream.stdout_bytes).read_all() == expected
    assert pq.read_table(path) == expected


def test_every_type_is_shown_in_every_format(warehouse: Path, fleet: LocalFleet, tmp_path: Path):
    for name in (
        ["--table", str(warehouse / "db" / "all_types")],
        ["db.all_types", "--server", fleet.location],
    ):
        lines = output("scan", *name, "--format", "json").splitlines()
        assert [json.loads(line) for line in lines] == [JSON, dict.fromkeys(JSON)]
        assert "2 rows" in output("scan", *name)
        assert output("scan", *name, "--format", "csv").startswith("boolean,int,long,")
        assert output("scan", *name, "--format", "parquet", "-o", str(tmp_path / "p")) == ""


def test_a_column_whose_name_holds_a_comma_is_selected_by_a_list(warehouse: Path):
    table = ["--table", str(warehouse / "db" / "a.b")]

    text = output("scan", *table, "--select", '["x,y"]', "--select", "id", "--format", "csv")

    assert text == '"x,y",id\nseven,7\n'


@pytest.mark.parametrize("limit", ["0", "1", "41"])
def test_a_limit_is_exact(orders: list[str], limit: str):
    text = output("scan", *orders, "--limit", limit, "--format", "json")

    assert len(text.splitlines()) == int(limit)


def test_a_copied_table_is_read_with_a_rebase(warehouse: Path, tmp_path: Path):
    moved = tmp_path / "moved"
    moved.symlink_to(warehouse / "db" / "orders")
    rebase = f"file://{warehouse}/db/orders={moved}"

    text = output("count", "--table", str(moved), "--rebase", rebase, "--filter", "id < 10")

    assert text == "8\n"


# --- what is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (["--filter", "id >"], "BAD_FILTER", 2),
        (["--filter", "nope = 1"], "UNKNOWN_COLUMN", 2),
        (["--filter", "id = 'x'"], "BAD_LITERAL", 2),
        (["--select", "nope"], "UNKNOWN_COLUMN", 2),
        (["--ref", "nope"], "UNKNOWN_REF", 2),
        (["--snapshot-id", "1"], "UNKNOWN_SNAPSHOT", 2),
        (["--snapshot-id", "1", "--ref", "v1"], "CONFLICTING_SNAPSHOT", 2),
        (["--as-of", "2025-01-01"], "BAD_COMMAND", 2),
        (["--limit", "-1"], "BAD_COMMAND", 2),
        (["--format", "parquet"], "BAD_REQUEST", 2),
        (["--format", "csv", "--output", "/no/such/file"], "BAD_REQUEST", 2),
    ],
)
def test_an_error_is_one_line_and_a_status(orders: list[str], arguments, code: str, status: int):
    done = run("scan", *orders, *arguments)

    assert done.exit_code == status
    assert done.stderr.startswith(f"error [{code}] ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.output
    assert isinstance(done.exception, SystemExit)


def test_what_a_command_reads_must_be_named_once(fleet: LocalFleet, warehouse: Path):
    table = str(warehouse / "db" / "orders")
    for arguments, said in (
        ([], "name a table of the server"),
        (["db.orders", "--table", table], "name one table"),
        (["db.orders", "--server", fleet.location, "--rebase", "a=b"], "go with --table"),
        (["--table", table, "--rebase", "ab"], "--rebase 'ab'"),
    ):
        done = run("count", *arguments)
        assert done.exit_code == 2
        assert said in done.stderr


def test_a_table_that_cannot_be_read_fails_with_status_1(tmp_path: Path):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_text("{")

    done = run("scan", "--table", str(tmp_path))

    assert done.exit_code == 1
    assert done.stderr.startswith("error [CORRUPT_METADATA] ")


def test_a_server_that_is_not_there_fails_with_status_4_and_the_remedy():
    done = run("tables", "--server", "grpc://127.0.0.1:1")

    assert done.exit_code == 4
    assert done.stderr.startswith("error [SERVER_UNAVAILABLE] ")
    assert "floeberg up" in done.stderr


def test_control_characters_in_an_error_are_shown_and_not_obeyed(tmp_path: Path):
    done = run("scan", "--table", str(tmp_path / "\x1b[2J"))

    assert "\x1b" not in done.stderr
    assert r"\x1b[2J" in done.stderr


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS + SERVICES)
def test_each_command_has_help(command: str):
    assert "usage" in output(command, "--help").lower()
    assert command in output("--help")


@pytest.mark.parametrize("command", [*COMMANDS, "key"])
def test_help_shows_what_to_write_and_no_type_of_python(command: str):
    shown = output(command, "--help")

    for noise in ("<bool>", "<str>", "<int>", "<path>"):
        assert noise not in shown
    assert "<bool>" not in output("--help")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--limit", "few"], "'few' is not a whole number"),
        (["--snapshot-id", "1.5"], "'1.5' is not a whole number"),
        (["--format", "xml"], "'xml' is not one of 'table', 'csv', 'json'"),
    ],
)
def test_a_value_of_another_kind_is_refused_in_plain_words(arguments: list[str], told: str):
    done = run("scan", "--table", "nowhere", *arguments)

    assert done.exit_code == 2
    assert arguments[0] in done.stderr
    assert told in " ".join(done.stderr.split())
    assert "Value error" not in done.stderr


def test_no_command_is_without_a_test():
    listed = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}

    assert listed == {*COMMANDS, *SERVICES}


def test_the_version_is_told():
    assert output("--version").startswith("floeberg ")


def test_no_arguments_show_the_help():
    assert "Usage" in run().output
