"""Options of the whole test run, and fixtures that tests of several packages ask for."""

from __future__ import annotations

import hypothesis
import pytest

from tests.support.services import seaweed

__all__ = ["seaweed"]

# how long an example takes says more of the machine than of the code
hypothesis.settings.register_profile("random", deadline=None)
# the same examples in every run: whether a change passes must not depend on luck
hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True)
hypothesis.settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--corpus",
        metavar="DIR",
        help="a directory of foreign tables with expected rows (cases.json); see tests/corpus",
    )
    parser.addoption(
        "--oracles",
        action="store_true",
        help="compare with Spark, PyIceberg and DuckDB, which must be installed; see tests/oracles",
    )
    parser.addoption(
        "--clients",
        metavar="PYTHON",
        help="try the clients that this Python has, instead of this one's; see tests/sql/clients",
    )
