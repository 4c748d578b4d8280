"""Some of the attacks that `python -m tests.fuzz.hostile` makes any number of, always the same."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tests.fuzz.hostile.attacks import attack
from tests.fuzz.hostile.target import Target, running_target

SEED, EXAMPLES = 20261130, 600
EXAMPLES_A_TEST = 200


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with running_target() as target:
        yield target


@pytest.mark.parametrize("first", range(0, EXAMPLES, EXAMPLES_A_TEST))
def test_what_was_tampered_with_gives_no_row_no_secret_and_no_traceback(
    target: Target, first: int
) -> None:
    made = [
        attack(target, Random(f"{SEED} {number}"))
        for number in range(first, first + EXAMPLES_A_TEST)
    ]

    assert [a for a in made if a.wrong is not None] == []
