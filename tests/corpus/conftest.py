"""The corpus tests run only where a corpus is given: `make corpus CORPUS=DIR`."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_test = collection_path.name.startswith("test_corpus")
    return True if is_test and config.getoption("--corpus") is None else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    from tests.corpus.cases import load_cases

    if "case" in metafunc.fixturenames:
        root = Path(metafunc.config.getoption("--corpus")).resolve()
        cases = load_cases(root)
        metafunc.parametrize("case", cases, ids=[case.id for case in cases])
