"""Ask all contenders in turns, so that what the machine does meanwhile hits all of them."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.bench.taxi.answers import Answer, same
from tests.bench.taxi.sides.serving import Measured, Question

_FEW_ROUNDS, _LONG_SECONDS = 3, 6.0


class Asked(Protocol):
    """What answers a question, or tells why not."""

    def ask(self, question: Question) -> Measured | str: ...


class AnswersDiffer(Exception):
    """Two contenders gave different answers: no time counts."""


@dataclass
class Rounds:
    """What one contender took for one query."""

    measured: list[Measured] = field(default_factory=list)
    refusal: str = ""

    @property
    def seconds(self) -> float:
        return statistics.median(m.seconds for m in self.measured)

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the most seconds."""
        seconds = [m.seconds for m in self.measured]
        return min(seconds), max(seconds)

    @property
    def cpu_seconds(self) -> float:
        return statistics.median(m.cpu_seconds for m in self.measured)

    @property
    def peak_bytes(self) -> int:
        return max(m.peak_bytes for m in self.measured)

    @property
    def worker_peak_bytes(self) -> int | None:
        return max((m.worker_peak_bytes or 0 for m in self.measured), default=0) or None

    @property
    def moved_bytes(self) -> int | None:
        return self.measured[-1].moved_bytes

    @property
    def is_enough(self) -> bool:
        """Whether it took so long so often that more rounds would tell no more."""
        seconds = [m.seconds for m in self.measured]
        return len(seconds) >= _FEW_ROUNDS and sum(seconds) > _LONG_SECONDS


Results = Mapping[str, Mapping[str, Rounds]]
"""Of one table: by query, and then by contender."""


def in_turns(
    questions: Mapping[str, Question],
    contenders: Mapping[str, Asked],
    rounds: int,
    told: Callable[[str], None] = lambda _: None,
    *,
    seconds: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> Results:
    """Return what everyone took for every query, after a round that isn't measured.

    There are fewer rounds, and at least one, where as many would take more than `seconds`; who
    takes two seconds for a query, or more, is asked it three times.

    Raises `AnswersDiffer` where two contenders answer a query differently, in any round.
    """
    results = {query: {name: Rounds() for name in contenders} for query in questions}
    agreed: dict[str, tuple[str, Answer]] = {}
    began = clock()
    for turn in range(rounds + 1):
        if turn > 1 and (clock() - began) * (turn + 1) / turn > seconds:
            break
        for query, question in questions.items():
            for name in _rotated(list(contenders), turn):
                found = results[query][name]
                if found.refusal or found.is_enough:
                    continue
                told(f"round {turn} of {rounds}, {query}: {name}")
                answer = contenders[name].ask(question)
                if isinstance(answer, str):
                    found.refusal = answer
                    continue
                first, expected = agreed.setdefault(query, (name, answer.answer))
                if not same(answer.answer, expected):
                    raise AnswersDiffer(
                        f"{query} of {question.table}: {name} answers {_shown(answer.answer)},"
                        f" and {first} {_shown(expected)}"
                    )
                if turn:
                    found.measured.append(answer)
    return results


def _rotated(names: Sequence[str], turn: int) -> Sequence[str]:
    start = turn % len(names)
    return [*names[start:], *names[:start]]


def _shown(answer: Answer) -> str:
    return str(dict(list(answer.items())[:5]))
