"""Some of the examples that `make fuzz` runs any number of, always the same."""

from __future__ import annotations

import pytest

from tests.fuzz.campaign import first_failure

SEED, EXAMPLES = 20261130, 120
EXAMPLES_A_TEST = 10


@pytest.mark.parametrize("first", range(0, EXAMPLES, EXAMPLES_A_TEST))
def test_floeberg_agrees_with_the_plain_reader_on_random_tables(first: int) -> None:
    failure = first_failure(SEED, range(first, first + EXAMPLES_A_TEST))

    assert failure is None, failure
