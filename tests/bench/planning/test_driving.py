"""The driver asks its sides in turns, and believes them only when they agree."""

from __future__ import annotations

import random
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.bench.planning.driving import SideFailed, SideOfComparison, SideProcess, running
from tests.bench.planning.generating import existing_or_generated
from tests.bench.planning.questions import QUESTIONS
from tests.bench.planning.reporting import COLD, WARM, figures, targets
from tests.bench.planning.tables import BenchTable

FILTERS = [[], [("=", "quantity", 1)], [(">=", "event_id", 0)]]


@pytest.fixture(scope="module")
def metadata_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return existing_or_generated(BenchTable(50), tmp_path_factory.mktemp("warehouse"))


@pytest.fixture
def floeberg(metadata_file: Path) -> partial[SideProcess]:
    return partial(SideProcess, sys.executable, "floeberg_side", str(metadata_file.parents[3]))


def test_each_filter_but_the_first_is_measured_by_every_side(
    metadata_file: Path, floeberg: partial[SideProcess]
):
    sides = [
        SideOfComparison(WARM, floeberg, in_a_row=True),
        SideOfComparison(COLD, floeberg, forget=True),
        SideOfComparison("new", floeberg, anew=True, only_round=1),
    ]
    told: list[str] = []

    with running(sides) as asked:
        found = asked.in_turns(metadata_file, FILTERS, told.append, lambda: FILTERS)

    assert [len(rounds.measured) for rounds in found.values()] == [8, 2, 1]
    assert found[WARM].measured[3].tasks == found[COLD].measured[0].tasks
    assert found[WARM].median(lambda m: m.seconds) > 0
    assert told[0].endswith(WARM)
    assert told[2].endswith(COLD)  # the next round begins with the next side
    results = {("files_50", "none"): found}
    assert figures("a table", results).row_count == 3
    assert targets(results) == []


def test_sides_that_disagree_end_the_run(metadata_file: Path, tmp_path: Path):
    other = existing_or_generated(BenchTable(60), tmp_path).parents[1]
    other.with_name("files_50").symlink_to(other)
    sides = [
        SideOfComparison(name, partial(SideProcess, sys.executable, "floeberg_side", str(place)))
        for name, place in {"here": metadata_file.parents[3], "there": tmp_path}.items()
    ]

    with running(sides) as asked, pytest.raises(SystemExit, match="the sides disagree"):
        asked.in_turns(metadata_file, FILTERS)


def test_what_a_side_died_of_is_told(metadata_file: Path):
    side = SideProcess(sys.executable, "floeberg_side")

    with pytest.raises(SideFailed, match="the following arguments are required: warehouse"):
        side.plan(metadata_file, [[]], forget=False)
    side.close()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_another_each_time(question: str):
    r = random.Random(1)

    asked = [QUESTIONS[question](r) for _ in range(5)]

    assert question == "none" or len({repr(filter_) for filter_ in asked}) == 5
