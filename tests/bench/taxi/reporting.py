"""The figures as tables in Markdown, and what was to be reached beside what was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench.taxi.contenders import (
    DAFT,
    DUCKDB,
    FLIGHT_1,
    FLIGHT_2,
    IN_PROCESS,
    POLARS,
    PYARROW,
    PYICEBERG,
    SQL_1,
    SQL_2,
)
from tests.bench.taxi.queries import QUERIES
from tests.bench.taxi.rounds import Results, Rounds

_WORKER_MEGABYTES = 400


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def times(results: Results) -> str:
    """Return the medians of each query by contender in ms, with half the spread, and their sums."""
    names = _names(results)
    lines = []
    for query, by_name in results.items():
        cells = [_time(by_name[name]) for name in names]
        lines.append([f"{query}: {QUERIES[query].title}", *cells])
    sums = [total_seconds(results, name) for name in names]
    reference = total_seconds(results, PYICEBERG)
    lines.append(["**all**", *(f"**{_ms(s)}**" if s else "" for s in sums)])
    if reference:
        ratios = [f"{s / reference:.2f}x" if s else "" for s in sums]
        lines.append(["to PyIceberg's", *ratios])
    return markdown(["query, ms", *names], lines)


def refusals(results: Results) -> list[str]:
    """Return who refused the table or a query of it, and in which words."""
    said = {
        (name, rounds.refusal.splitlines()[0][:160])
        for by_name in results.values()
        for name, rounds in by_name.items()
        if rounds.refusal
    }
    return [f"{name}: {refusal}" for name, refusal in sorted(said)]


def memory(results: Results) -> str:
    """Return the CPU time of all queries, the peaks of every contender's process and of its largest
    worker, and what workers sent, in MB."""
    lines = []
    for name in _names(results):
        rounds = [by[name] for by in results.values() if by[name].measured]
        if not rounds:
            continue
        worker = max((r.worker_peak_bytes or 0 for r in rounds), default=0)
        moved = [r.moved_bytes for r in rounds if r.moved_bytes is not None]
        lines.append(
            [
                name,
                f"{sum(r.cpu_seconds for r in rounds):,.2f}",
                f"{max(r.peak_bytes for r in rounds) / 1e6:,.0f}",
                f"{worker / 1e6:,.0f}" if worker else "",
                f"{sum(moved) / 1e6:,.1f}" if moved else "",
            ]
        )
    return markdown(
        ["contender", "CPU s", "peak MB", "peak MB of a worker", "MB sent by workers"], lines
    )


def moved(results: Results) -> str | None:
    """Return what workers sent for each query, in MB; None where nobody has workers."""
    names = [n for n in _names(results) if any(_moved(by[n]) for by in results.values())]
    if not names:
        return None
    lines = [[query, *(_moved(by[name]) for name in names)] for query, by in results.items()]
    return markdown(["query, MB sent", *names], lines)


def _moved(rounds: Rounds) -> str:
    if not rounds.measured or rounds.moved_bytes is None:
        return ""
    return f"{rounds.moved_bytes / 1e6:,.3f}"


def total_seconds(results: Results, name: str) -> float | None:
    """Return a contender's sum of medians; None unless it answered everything."""
    rounds = [by[name] for by in results.values() if name in by]
    if not rounds or not all(r.measured for r in rounds):
        return None
    return sum(r.seconds for r in rounds)


def _names(results: Results) -> list[str]:
    return list(next(iter(results.values())))


def _time(rounds: Rounds) -> str:
    if not rounds.measured:
        return ""
    least, most = rounds.spread
    return f"{_ms(rounds.seconds)} ±{(most - least) * 500:,.0f}"


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:,.0f}"


# --- what is to be reached ------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A ratio or an amount that `found` shall not exceed, or not fall below."""

    what: str
    found: float
    limit: float
    unit: str = "x"
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        return self.found >= self.limit if self.at_least else self.found <= self.limit


def targets(results: Mapping[str, Results]) -> list[Target]:
    """Return those targets that the results, by table, say something about."""
    found: list[Target] = []

    def ratio(what: str, table: str, name: str, other: str, limit: float, to: str = "") -> None:
        ours = total_seconds(results.get(table, {}), name)
        theirs = total_seconds(results.get(to or table, {}), other)
        if ours and theirs:
            found.append(Target(what, ours / theirs, limit))

    ratio("trips, Flight to PyIceberg", "trips", FLIGHT_2, PYICEBERG, 0.75)
    ratio("trips, Flight to pyarrow", "trips", FLIGHT_2, PYARROW, 1.2)
    for table in ("trips_positions", "trips_vectors"):
        ratio(f"{table}, Flight to PyIceberg", table, FLIGHT_2, PYICEBERG, 0.10)
        ratio(f"{table}, Flight to Daft", table, FLIGHT_2, DAFT, 1.0)
        ratio(f"{table}, Flight to Polars", table, FLIGHT_2, POLARS, 1.1)
    ratio("trips_equal_1m, Flight to trips", "trips_equal_1m", FLIGHT_2, FLIGHT_2, 1.5, "trips")
    for table in ("trips", "trips_positions"):
        for peer in (PYICEBERG, DAFT, POLARS, DUCKDB, PYARROW):
            ratio(f"{table}, Flight SQL to {peer}", table, SQL_2, peer, 1.0)
    ratio("trips, in process to pyarrow", "trips", IN_PROCESS, PYARROW, 1.1)
    one, two = (total_seconds(results.get("trips", {}), name) for name in (SQL_1, SQL_2))
    if one and two:
        found.append(Target("trips, Flight SQL, 1 to 2 workers", one / two, 1.5, at_least=True))
    found += _worker_memory(results)
    return found


def _worker_memory(results: Mapping[str, Results]) -> list[Target]:
    peaks = {
        (table, name): rounds.worker_peak_bytes
        for table, by_query in results.items()
        for by_name in by_query.values()
        for name, rounds in by_name.items()
        if rounds.measured and rounds.worker_peak_bytes and name in (FLIGHT_1, FLIGHT_2, SQL_2)
    }
    if not peaks:
        return []
    most = max(value or 0 for value in peaks.values())
    return [Target("a worker's memory at most", most / 1e6, _WORKER_MEGABYTES, " MB")]


def target_table(found: Sequence[Target]) -> str:
    return markdown(
        ["to be reached", "limit", "found", ""],
        [
            [
                target.what,
                f"{'≥' if target.at_least else '≤'} {target.limit:g}{target.unit}",
                f"{target.found:,.2f}{target.unit}",
                "" if target.is_met else "missed",
            ]
            for target in found
        ],
    )
