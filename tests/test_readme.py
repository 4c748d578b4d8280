"""What the documents show is run: on a small lake, from two workers."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from floeberg.embedded.cli.main import app
from floeberg.embedded.up import UpConfig
from floeberg.process.config import config_from_command_line
from floeberg.protocol.expressions import as_expression
from floeberg.server.config import CoordinatorConfig
from floeberg.worker.config import WorkerConfig
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.trips import write_trips

REPOSITORY = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "docs/python.md",
    "docs/command-line.md",
    "docs/configuration.md",
    "docs/rest-planning.md",
    "docs/security.md",
    "docs/sql.md",
]
SERVICES = {"up": UpConfig, "coordinator": CoordinatorConfig, "worker": WorkerConfig}
SHOWN_SERVER = "grpc://127.0.0.1:8815"
SHOWN_LAKE = "/data/lake"
SHOWN_REST = "http://127.0.0.1:8816"


def blocks(document: str, language: str) -> list[str]:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    shown = "\n".join(b for document in DOCUMENTS for b in blocks(document, "console"))
    whole = shown.replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in whole.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("lake")
    write_trips(directory / "nyc" / "trips")
    return directory


@pytest.fixture(scope="module")
def fleet(lake: Path) -> Iterator[LocalFleet]:
    with local_fleet(lake, rest_planning=True) as fleet:
        yield fleet


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d, "python")])
def test_the_python_of_a_document_runs(
    document: str, lake: Path, fleet: LocalFleet, capsys: pytest.CaptureFixture[str]
):
    names: dict[str, object] = {}
    for number, block in enumerate(blocks(document, "python"), start=1):
        code = block.replace(SHOWN_SERVER, fleet.location).replace(SHOWN_LAKE, str(lake))
        code = code.replace(SHOWN_REST, str(fleet.coordinator.addresses()["http"]))
        exec(compile(code, f"{document}, block {number}", "exec"), names)

    assert capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        c
        for c in commands()
        if shlex.split(c)[0] == "floeberg" and shlex.split(c)[1] not in SERVICES
    ],
)
def test_a_question_that_a_document_shows_has_an_answer(
    command: str,
    lake: Path,
    fleet: LocalFleet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOEBERG_SERVER", fleet.location)  # in the place of the default
    shown = command.replace(SHOWN_SERVER, fleet.location).replace(SHOWN_LAKE, str(lake))
    arguments = shlex.split(shown.replace("/etc/floeberg", str(tmp_path)))[1:]

    # `floeberg password` asks for one
    done = CliRunner().invoke(app, arguments, input="correct horse\n")

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout or os.listdir(tmp_path)


@pytest.mark.parametrize(
    "command",
    [c for c in commands() if c.startswith("floeberg ") and shlex.split(c)[1] in SERVICES],
)
def test_a_service_that_a_document_shows_takes_these_flags(command: str):
    _, service, *flags = shlex.split(command)

    config = config_from_command_line(
        SERVICES[service], flags, {}, program=f"floeberg {service}", summary=""
    )

    assert isinstance(config, SERVICES[service])


def test_each_make_target_that_a_document_shows_is_there():
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    shown = {shlex.split(c)[1] for c in commands() if c.startswith("make ")}

    assert shown
    assert [target for target in shown if f"\n{target}:" not in makefile] == []


def test_the_filters_that_the_readme_calls_equal_are():
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    text, json_form = re.findall(r"A filter is text or JSON: `(.*?)` is\n`(.*?)`", readme)[0]

    assert as_expression(text) == as_expression(json_form)


def test_each_link_between_documents_leads_somewhere():
    for page in (REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
