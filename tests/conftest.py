"""Options of the whole test run."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--corpus",
        metavar="DIR",
        help="a directory of foreign tables with expected rows (cases.json); see tests/corpus",
    )
