"""What was measured of one table's queries, as tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.bench.taxi.contenders import PYICEBERG
from tests.bench.taxi.markdown import milliseconds, table
from tests.bench.taxi.queries import QUERIES
from tests.bench.taxi.rounds import Results, Rounds

_DIRECTORIES = re.compile(r"(?<![:/\w])/\S*/")


def times(results: Results) -> str:
    """Return the medians of each query by contender in ms, with half the spread; their sums, and
    the CPU seconds of all."""
    names = _names(results)
    lines = []
    for query, by_name in results.items():
        cells = [_time(by_name[name]) for name in names]
        lines.append([f"{query}: {QUERIES[query].title}", *cells])
    sums = [total_seconds(results, name) for name in names]
    reference = total_seconds(results, PYICEBERG)
    lines.append(["**all**", *(f"**{milliseconds(s)}**" if s else "" for s in sums)])
    if reference:
        ratios = [f"{s / reference:.2f}x" if s else "" for s in sums]
        lines.append(["to PyIceberg's", *ratios])
    cpu = [_cpu_seconds(results, name) for name in names]
    lines.append(["CPU s", *("" if s is None else f"{s:,.2f}" for s in cpu)])
    return table(["query, ms", *names], lines)


def memory(results: Results) -> str:
    """Return the peak of each query by contender in MB: of the process that asks, and of its
    largest worker."""
    names = _names(results)
    lines = [[query, *(_peaks(by[name]) for name in names)] for query, by in results.items()]
    return table(["query, peak MB", *names], lines)


def refusals(results: Results) -> list[str]:
    """Return who refused the table or a query of it, and in which words."""
    said: dict[tuple[str, str], list[str]] = {}
    for query, by_name in results.items():
        for name, rounds in by_name.items():
            if rounds.refusal:
                # where the lake lies is nobody's business
                words = _DIRECTORIES.sub("…/", rounds.refusal.splitlines()[0])[:160]
                said.setdefault((name, words), []).append(query)
    return [
        f"{name} has no answer to {'any' if len(qs) == len(results) else ', '.join(qs)}: {words}"
        for (name, words), qs in sorted(said.items())
    ]


def moved(results: Results) -> str | None:
    """Return what workers sent for each query, in MB; None where nobody has workers."""
    names = [n for n in _names(results) if any(_moved(by[n]) for by in results.values())]
    if not names:
        return None
    lines = [[query, *(_moved(by[name]) for name in names)] for query, by in results.items()]
    return table(["query, MB sent", *names], lines)


def total_seconds(
    results: Results, name: str, queries: Sequence[str] | None = None
) -> float | None:
    """Return a contender's sum of medians, of all queries or of some; None unless it answered all
    of these."""
    asked = list(results) if queries is None else [q for q in queries if q in results]
    rounds = [results[query][name] for query in asked if name in results[query]]
    if not rounds or not all(r.measured for r in rounds):
        return None
    return sum(r.seconds for r in rounds)


def worker_megabytes(results: Results) -> float | None:
    """Return the most that any worker had; None where nobody has workers."""
    rounds = [r for by_name in results.values() for r in by_name.values()]
    return max((r.worker_peak_bytes or 0 for r in rounds), default=0) / 1e6 or None


def _cpu_seconds(results: Results, name: str) -> float | None:
    rounds = [by[name] for by in results.values() if by[name].measured]
    return sum(r.cpu_seconds for r in rounds) if len(rounds) == len(results) else None


def _names(results: Results) -> list[str]:
    return list(next(iter(results.values())))


def _time(rounds: Rounds) -> str:
    if not rounds.measured:
        return "–"
    least, most = rounds.spread
    return f"{milliseconds(rounds.seconds)} ±{(most - least) * 500:,.0f}"


def _peaks(rounds: Rounds) -> str:
    if not rounds.measured:
        return "–"
    worker = rounds.worker_peak_bytes
    own = f"{rounds.peak_bytes / 1e6:,.0f}"
    return own if worker is None else f"{own} + {worker / 1e6:,.0f}"


def _moved(rounds: Rounds) -> str:
    if not rounds.measured or rounds.moved_bytes is None:
        return ""
    return f"{rounds.moved_bytes / 1e6:,.3f}"
