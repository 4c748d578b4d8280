"""The whole demo runs, shows what it says, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.demo import lake
from deploy.demo.service import Service, ServiceFailed

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Where the demo ran, and how it ended."""
    directory = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "deploy.demo", "--directory", str(directory)],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return directory, done


Demo = tuple[Path, subprocess.CompletedProcess[str]]


def test_the_demo_shows_a_lake_read_from_two_workers(demo: Demo) -> None:
    _, done = demo

    assert done.returncode == 0, done.stderr
    assert "2,000,016 rows, planned in" in done.stdout
    whole = done.stdout.partition("The whole table")[2]
    assert len(set(re.findall(r"worker \d +(\S+)", whole))) == 2
    assert re.search(r"branch audit +0\.00", done.stdout)
    assert re.search(r"card +│ +1238718 │", done.stdout)
    assert done.stdout.rstrip().endswith("Everything is stopped.")


def test_nothing_is_left_running(demo: Demo) -> None:
    directory, _ = demo
    ready = json.loads((directory / "floeberg.ready.json").read_text())

    for worker in ready["workers"]:
        with pytest.raises(ProcessLookupError):
            os.kill(worker["pid"], 0)


def test_a_lake_counts_as_complete_only_where_it_was_written(demo: Demo, tmp_path: Path) -> None:
    directory, _ = demo
    shutil.copytree(directory / "lake", tmp_path / "lake")
    shutil.copy(directory / "lake.complete", tmp_path)

    assert lake.is_complete(directory / "lake")
    assert not lake.is_complete(tmp_path / "lake"), "its metadata holds the other place's paths"


def test_a_service_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))

    with (
        Service(tmp_path / "no such warehouse", 1, tmp_path, port=0) as service,
        pytest.raises(ServiceFailed, match=r"floeberg up ended(.|\n)*no such warehouse"),
    ):
        service.addresses()


def test_the_client_of_the_demo_is_pyarrow_alone() -> None:
    text = (CHECKOUT / "deploy" / "demo" / "client.py").read_text()

    assert not re.search(r"^\s*(from|import) (floeberg|tests|deploy)", text, re.MULTILINE)
