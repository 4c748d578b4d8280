"""The command as a process: on a terminal, in pipes, and interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from floeberg.embedded import open_table
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.gate import Gate
from tests.support.lake import TableWriter, required, schema
from tests.support.orders import live_ids
from tests.support.terminal import on_terminal
from tests.support.waiting import wait_until

FLOEBERG = [sys.executable, "-m", "floeberg.embedded"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def orders(fleet: LocalFleet) -> list[str]:
    return ["db.orders", "--server", fleet.location]


@pytest.fixture
def hostile(tmp_path: Path) -> list[str]:
    """A table whose values and column names hold escape sequences."""
    table = TableWriter.create(
        tmp_path / "t", schema({"id": required("long"), "a\x1b[2J": "string"})
    )
    table.append([{"id": 1, "a\x1b[2J": "x\x1b]0;owned\x07\x9b31m\ny"}])
    return ["--table", str(tmp_path / "t")]


def test_a_question_loads_no_library_of_catalogs_object_stores_or_servers():
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, floeberg.embedded.cli.main; print(*sys.modules, sep='\\n')",
        ],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()

    slow = {"aiohttp", "botocore", "fsspec", "pandas", "polars", "pyiceberg", "s3fs", "uvicorn"}
    assert "pyarrow" in loaded
    assert not slow & set(loaded)


# --- on a terminal --------------------------------------------------------------------------------


def test_a_scan_shows_how_far_it_is_while_the_rows_go_elsewhere(orders: list[str]):
    command = [*FLOEBERG, "scan", *orders, "--format", "json", "--select", "id"]

    seen = on_terminal(command, ENVIRONMENT, pipe_output=True)

    ids = [json.loads(line)["id"] for line in seen.piped.splitlines()]
    assert (sorted(ids), seen.status) == (list(live_ids()), 0)
    assert f"{len(ids)} rows, " in seen.text
    assert re.search(r"\d of \d endpoints", seen.text)
    assert "\x1b[2K" in seen.raw  # the line is wiped at the end


def test_a_table_on_a_terminal_comes_after_the_progress(orders: list[str]):
    seen = on_terminal([*FLOEBERG, "scan", *orders, "--limit", "3"], ENVIRONMENT)

    assert seen.status == 0
    assert seen.text.rstrip().endswith("3 rows")
    assert "endpoints" in seen.text


def test_rows_on_a_terminal_are_not_mixed_with_progress(orders: list[str]):
    command = [*FLOEBERG, "scan", *orders, "--limit", "2", "--format", "csv", "--select", "region"]

    seen = on_terminal(command, ENVIRONMENT)

    assert seen.text == "region\nasia\nasia\n"


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_control_characters_do_not_reach_a_terminal(hostile: list[str], format: str):
    seen = on_terminal([*FLOEBERG, "scan", *hostile, "--format", format], ENVIRONMENT)

    assert seen.status == 0
    for harmful in ("\x1b]0", "\x07", "\x9b", "\x1b[2Jx", "a\x1b[2J"):
        assert harmful not in seen.raw
    assert "owned" in seen.text


def test_binary_data_is_not_written_to_a_terminal(orders: list[str]):
    seen = on_terminal([*FLOEBERG, "scan", *orders, "--format", "arrow"], ENVIRONMENT)

    assert seen.status == 2
    assert "error [BAD_REQUEST] binary data would garble the terminal" in seen.text


def test_a_table_fits_the_terminal(orders: list[str]):
    seen = on_terminal([*FLOEBERG, "scan", *orders, "-n", "2"], ENVIRONMENT, columns=60)

    assert max(len(line) for line in seen.text.splitlines() if "│" in line) <= 60


# --- in pipes -------------------------------------------------------------------------------------


def test_in_a_pipe_there_are_rows_and_nothing_else(orders: list[str], hostile: list[str]):
    done = subprocess.run(
        [*FLOEBERG, "scan", *orders, "--format", "csv", "--select", "id"],
        env=ENVIRONMENT,
        capture_output=True,
        check=True,
    )
    exact = subprocess.run(
        [*FLOEBERG, "scan", *hostile, "--format", "csv"],
        env={**ENVIRONMENT, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )

    assert done.stderr == exact.stderr == b""
    assert len(done.stdout.splitlines()) == 1 + len(live_ids())
    assert exact.stdout.decode() == 'id,a\x1b[2J\n1,"x\x1b]0;owned\x07\x9b31m\ny"\n'


def test_whoever_closes_the_pipe_has_seen_enough(tmp_path: Path):
    table = TableWriter.create(tmp_path / "t", schema({"text": required("string")}))
    table.append([{"text": "x" * 1000} for _ in range(2000)])
    command = [*FLOEBERG, "scan", "--table", str(tmp_path / "t"), "--format", "csv"]

    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"text\n"
        process.stdout.close()
        told = process.stderr.read()

    assert (process.returncode, told) == (0, b"")


def test_a_disk_that_is_full_is_told_in_one_line(orders: list[str]):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*FLOEBERG, "scan", *orders, "--format", "csv"],
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr.decode() == "error: there is no room for the output\n"


def test_a_scan_that_fails_ends_its_arrow_stream_without_the_mark_of_the_end(tmp_path: Path):
    table = TableWriter.create(tmp_path / "t", schema({"id": required("long")}))
    table.append([{"id": 1}])
    table.append([{"id": 2}])
    # the newest file is planned first, so there are rows before the error
    newest_first = open_table(tmp_path / "t").scan().plan_files()
    table.local(newest_first[-1].data_file.location).unlink()

    done = subprocess.run(
        [*FLOEBERG, "scan", "--table", str(tmp_path / "t"), "--format", "arrow"],
        env=ENVIRONMENT,
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith(b"error [MISSING_FILE] ")
    assert len(done.stdout) > 100
    assert not done.stdout.endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00")


# --- interrupted ----------------------------------------------------------------------------------


def test_an_interrupt_ends_a_scan_that_waits_for_a_worker(warehouse: Path):
    gate = Gate()
    with local_fleet(warehouse, workers=0) as slow:
        worker = slow.add_worker(gate)
        command = [*FLOEBERG, "scan", "db.orders", "--server", slow.location]
        with subprocess.Popen(
            command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            wait_until(lambda: worker.status()["streams"], "the stream to begin")
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=30)
        wait_until(gate.closes_at_a_batch, "the worker to notice")

    assert process.returncode == 130
    assert b"Traceback" not in told


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_standard_stream_that_is_closed_is_one_without_anything(orders: list[str], closed: int):
    script = f'exec "$@" {closed}>&-'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *FLOEBERG, "scan", *orders, "--format", "csv", "--limit", "1"],
        env=ENVIRONMENT,
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert (b"\n" in done.stdout) == (closed != 1)
