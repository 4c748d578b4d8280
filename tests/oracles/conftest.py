"""The oracles run only where they are installed and asked for: `make oracles`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.oracles.matrix import Cells
    from tests.oracles.oracles import Oracles

MATRIX: pytest.StashKey[Cells] = pytest.StashKey()
PLANS: pytest.StashKey[Cells] = pytest.StashKey()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # every module here imports a peer, and doctests collect them all
    return None if config.getoption("--oracles") else True


def pytest_configure(config: pytest.Config) -> None:
    config.stash[MATRIX] = {}
    config.stash[PLANS] = {}
    if config.getoption("--oracles"):
        config.addinivalue_line("filterwarnings", "ignore")  # the peers' are theirs to mend


@pytest.fixture(scope="session")
def oracles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracles]:
    from tests.oracles.oracles import running_oracles

    with running_oracles(tmp_path_factory.mktemp("oracles")) as running:
        yield running


@pytest.fixture
def plans(request: pytest.FixtureRequest) -> Cells:
    """How each peer's plans of each table compare, for the summary."""
    return request.config.stash[PLANS]


@pytest.fixture
def matrix(request: pytest.FixtureRequest) -> Cells:
    """What each oracle said of each table, for the summary."""
    return request.config.stash[MATRIX]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for title, key in (("oracles", MATRIX), ("plans", PLANS)):
        cells = config.stash.get(key, {})
        if not cells:
            continue
        from tests.oracles.matrix import lines

        terminalreporter.section(title)
        for line in lines(cells):
            terminalreporter.write_line(line)
