"""The corpus tests run only where a corpus is given: `make corpus CORPUS=DIR`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from floeberg.client import Lake, connect
from floeberg.server.catalogs import Catalogs
from tests.corpus.cases import load_cases
from tests.corpus.served import CaseCatalog
from tests.support.fleet import local_fleet


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_test = collection_path.name.startswith("test_corpus")
    return True if is_test and config.getoption("--corpus") is None else None


@pytest.fixture(scope="session")
def lake(request: pytest.FixtureRequest) -> Iterator[Lake]:
    """A client of a coordinator that serves the corpus, with two workers."""
    cases = load_cases(Path(request.config.getoption("--corpus")).resolve())
    with (
        local_fleet(Catalogs([CaseCatalog(cases)])) as fleet,
        connect(fleet.location) as lake,
    ):
        yield lake


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    from tests.corpus.cases import load_cases

    if "case" in metafunc.fixturenames:
        root = Path(metafunc.config.getoption("--corpus")).resolve()
        cases = load_cases(root)
        metafunc.parametrize("case", cases, ids=[case.id for case in cases])
