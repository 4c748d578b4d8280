"""Ask contenders for the queries of one table, and tell what that took."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from tests.bench.taxi.aims import WORKER_MEGABYTES, WORST_QUERY, aggregates, total
from tests.bench.taxi.contenders import (
    CONTENDERS,
    IN_PROCESS,
    PYARROW,
    ContenderProcess,
    Place,
)
from tests.bench.taxi.parts import Part
from tests.bench.taxi.plotting import bars
from tests.bench.taxi.queries import QUERIES
from tests.bench.taxi.reporting import (
    memory,
    moved,
    refusals,
    times,
    total_seconds,
    worker_megabytes,
)
from tests.bench.taxi.rounds import Results, in_turns
from tests.bench.taxi.sides.serving import Question


@dataclass(frozen=True)
class Terms:
    """How to compare: the Pythons of the peers' environments, which contenders and queries, how
    many rounds, and in how many seconds a table; `told` hears how far it is."""

    pythons: Mapping[str, str] = field(default_factory=dict)
    names: Sequence[str] = tuple(CONTENDERS)
    queries: Sequence[str] = tuple(QUERIES)
    rounds: int = 5
    seconds: float = math.inf
    told: Callable[[str], None] = lambda _: None


def compare(
    terms: Terms, questions: Mapping[str, Question], place: Place, names: Sequence[str]
) -> Results:
    """Return what contenders took for the questions by query, each of them a process over `place`
    for as long as this takes. Raises `AnswersDiffer`."""
    wanted = {query: question for query, question in questions.items() if query in terms.queries}
    with ExitStack() as stack:
        processes = {
            name: ContenderProcess(CONTENDERS[name], terms.pythons, place) for name in names
        }
        for process in processes.values():
            stack.callback(process.close)
        return in_turns(wanted, processes, terms.rounds, terms.told, seconds=terms.seconds)


def part_of(results: Results, of: str, title: str, *, with_moved: bool = False) -> Part:
    """Return what the results of a table say. `of` is the part's name."""
    texts = [times(results), memory(results)]
    if with_moved:
        texts.append(moved(results) or "")
    texts.append("\n".join(f"- {refusal}" for refusal in refusals(results)))
    figures: dict[str, float | None] = {f"{WORKER_MEGABYTES}: {of}": worker_megabytes(results)}
    for name in _names(results):
        figures[total(of, name)] = total_seconds(results, name)
        aggregating = [query for query in results if not QUERIES[query].rows]
        figures[aggregates(of, name)] = total_seconds(results, name, aggregating)
    if of == "trips":
        figures[WORST_QUERY] = _worst(results)
    return Part(
        "\n\n".join(text for text in texts if text),
        {name: figure for name, figure in figures.items() if figure is not None},
        {f"{of}.svg": bars({title: _totals(results)})},
    )


def _names(results: Results) -> list[str]:
    return list(next(iter(results.values()), {}))


def _totals(results: Results) -> dict[str, float]:
    totals = {name: total_seconds(results, name) for name in _names(results)}
    return {name: seconds for name, seconds in totals.items() if seconds is not None}


def _worst(results: Results) -> float | None:
    """Return how many times as long as pyarrow floeberg takes in the query that is worst."""
    ratios = [
        by_name[IN_PROCESS].seconds / by_name[PYARROW].seconds
        for by_name in results.values()
        if {IN_PROCESS, PYARROW} <= by_name.keys()
        and by_name[IN_PROCESS].measured
        and by_name[PYARROW].measured
    ]
    return max(ratios, default=None)
