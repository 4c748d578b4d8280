"""The image: what can be known of it without building it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from floeberg.process.config import load_config
from floeberg.protocol.errors import BadConfig
from floeberg.worker.config import WorkerConfig
from floeberg.worker.process import WorkerService
from tests.support.fleet import local_fleet
from tests.support.gate import NO_HURRY

CHECKOUT = Path(__file__).parents[2]
DOCKERFILE = CHECKOUT / "deploy" / "docker" / "Dockerfile"
HEALTH_CHECK = DOCKERFILE.with_name("healthcheck.py")


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, by name, with what follows the name in one line."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    whole = re.sub(r"\\\n\s*", "", text)
    return [(i[0], i[2]) for i in (line.partition(" ") for line in whole.splitlines() if line)]


@pytest.fixture(scope="module")
def environment(instructions: list[tuple[str, str]]) -> dict[str, str]:
    set_there = " ".join(rest for name, rest in instructions if name == "ENV")
    return dict(pair.split("=", 1) for pair in set_there.split())


def test_hadolint_finds_nothing() -> None:
    command = shutil.which("hadolint", path=os.path.dirname(sys.executable)) or "hadolint"
    done = subprocess.run(
        [command, str(DOCKERFILE)], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_is_made_from_the_official_python_alone(
    instructions: list[tuple[str, str]],
) -> None:
    made_from = {rest.partition(" AS ")[0] for name, rest in instructions if name == "FROM"}
    (python,) = (r.partition("=")[2] for n, r in instructions if (n, r[:7]) == ("ARG", "PYTHON="))

    assert made_from == {"python:${PYTHON}"}
    assert re.fullmatch(r"3\.\d+-slim-\w+", python)


def test_what_is_copied_is_in_the_build_s_context(instructions: list[tuple[str, str]]) -> None:
    ignoring = Path(f"{DOCKERFILE}.dockerignore").read_text().splitlines()
    context = {line[1:] for line in ignoring if line.startswith("!")}
    copied = set()
    for name, rest in instructions:
        if name == "COPY" and not rest.startswith("--from="):
            copied |= set(rest.split()[:-1])

    assert "*" in ignoring
    assert context == copied
    assert all((CHECKOUT / name).exists() for name in copied)


def test_it_runs_as_nobody_s_user(instructions: list[tuple[str, str]]) -> None:
    (user,) = (rest for name, rest in instructions if name == "USER")

    assert [int(part) > 0 for part in user.split(":")] == [True, True]


def test_each_version_is_pinned(instructions: list[tuple[str, str]]) -> None:
    (extras,) = (r.partition("=")[2] for n, r in instructions if (n, r[:7]) == ("ARG", "EXTRAS="))
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(text) for text in project["dependencies"]]
    for extra in extras.split(","):
        wanted += [Requirement(text) for text in project["optional-dependencies"][extra]]
    constraints = (CHECKOUT / "constraints.txt").read_text().splitlines()
    pinned = {canonicalize_name(c.partition("==")[0]) for c in constraints if "==" in c}

    assert with_all_below(wanted) - pinned == set()


def with_all_below(wanted: list[Requirement]) -> set[str]:
    """Return the names of what is installed for these requirements, and for theirs."""
    found: set[tuple[str, frozenset[str]]] = set()
    while wanted:
        requirement = wanted.pop()
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key in found:
            continue
        found.add(key)
        extras = requirement.extras or {""}
        for text in requires(requirement.name) or ():
            below = Requirement(text)
            if below.marker is None or any(
                below.marker.evaluate({**default_environment(), "extra": extra}) for extra in extras
            ):
                wanted.append(below)
    return {name for name, _ in found}


def test_its_variables_are_keys_and_open_nothing_by_themselves(
    environment: dict[str, str],
) -> None:
    with pytest.raises(BadConfig, match=r"'host' 0\.0\.0\.0 is open to other machines"):
        load_config(WorkerConfig, environ=environment)

    config = load_config(WorkerConfig, environ=environment, flags={"insecure": "true"})
    assert (config.port, config.http_port) == (8815, 8080)


def test_its_ports_are_those_that_it_listens_on(
    instructions: list[tuple[str, str]], environment: dict[str, str]
) -> None:
    (exposed,) = (rest for name, rest in instructions if name == "EXPOSE")

    assert exposed.split() == [environment["FLOEBERG_PORT"], environment["FLOEBERG_HTTP_PORT"]]


def test_the_health_check_is_the_file_that_is_copied(
    instructions: list[tuple[str, str]],
) -> None:
    (check,) = (rest for name, rest in instructions if name == "HEALTHCHECK")
    program, script = json.loads(check.partition("CMD ")[2])

    assert program == "python"
    assert ("COPY", f"deploy/docker/healthcheck.py {script}") in instructions


def test_a_container_is_healthy_while_it_wants_work(tmp_path: Path) -> None:
    with local_fleet(tmp_path, workers=1) as fleet:
        # one that no coordinator has
        lost = WorkerService(load_config(WorkerConfig, flags={"key": fleet.keys.to_text()}))
        lost.start()
        ports = [str(w.addresses()["http"]).rpartition(":")[2] for w in (fleet.workers[0], lost)]

        checked = [health(ports[0]), health(ports[1]), health(ports[1], "/healthz")]
        lost.stop(NO_HURRY)

    assert checked == [0, 1, 0]
    assert health(ports[0]) == 1, "nobody answers"


def health(port: str, *path: str) -> int:
    done = subprocess.run(
        [sys.executable, str(HEALTH_CHECK), *path],
        # a proxy that the environment names must not be asked
        env={"FLOEBERG_HTTP_PORT": port, "http_proxy": "http://127.0.0.1:1"},
        capture_output=True,
        timeout=30,
        check=False,
    )
    return done.returncode
