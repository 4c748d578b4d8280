"""Options of the whole test run, and fixtures that tests of several packages ask for."""

from __future__ import annotations

import pytest

from tests.support.services import seaweed

__all__ = ["seaweed"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--corpus",
        metavar="DIR",
        help="a directory of foreign tables with expected rows (cases.json); see tests/corpus",
    )
