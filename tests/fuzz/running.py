"""Make a case, look for what is wrong with it, and say so."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from tests.fuzz.building import Lake
from tests.fuzz.cases import Case, Question
from tests.fuzz.checking import CHECKS, Checker, Mismatch
from tests.fuzz.generating import Generator
from tests.fuzz.questions import random_question, random_snapshot

SNAPSHOTS, QUESTIONS = 2, 2
"""How many snapshots of a table are looked at, and how many questions are asked of each."""


@dataclass(frozen=True)
class Finding:
    """Something wrong: `what` stays the same while the case is made smaller."""

    what: str
    detail: str


def generated(seed: int, number: int) -> tuple[Case, Finding | None]:
    """Return the case of a seed and number, and what is wrong with it."""
    rng = Random(f"{seed}/{number}")
    with _directory() as directory:
        case, lake = Generator(rng, directory).steps_and_lake()
        checker = _checker(lake, directory)
        questions: list[Question] = []
        for _ in range(SNAPSHOTS):
            snapshot = random_snapshot(rng, lake.metadata)
            plain, rows = checker.plain(snapshot)
            questions += [
                random_question(rng, snapshot, plain, rows, list(CHECKS)) for _ in range(QUESTIONS)
            ]
        case = replace(case, questions=tuple(questions))
        return case, _finding(checker, case)


def finding(case: Case) -> Finding | None:
    """Write a case's table and ask its questions; return the first thing that is wrong."""
    with _directory() as directory:
        lake = Lake.of(directory, case)
        return _finding(_checker(lake, directory), case)


def _checker(lake: Lake, directory: Path) -> Checker:
    return Checker(directory, lake.metadata, lake.table.metadata_path)


def _finding(checker: Checker, case: Case) -> Finding | None:
    for question in case.questions:
        checker.plain(question.snapshot)  # if this fails, the table or the plain reader is wrong
        try:
            checker.check(question)
        except Mismatch as mismatch:
            return Finding(mismatch.what, str(mismatch))
        except Exception as error:  # whatever floeberg raises is a finding
            frame = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__} in {Path(frame.filename).name}:{frame.name}"
            return Finding(what, "".join(traceback.format_exception(error)))
    return None


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        yield Path(directory) / "table"
