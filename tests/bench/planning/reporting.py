"""The figures as tables, and the targets beside what was reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table as RichTable

from tests.bench.planning.driving import Rounds
from tests.bench.planning.sides.serving import Measured

WARM, COLD, RESTARTED = "floeberg, warm", "floeberg, cold", "floeberg, restarted"
JAVA, POLARS, PYICEBERG = "Java", "Polars", "PyIceberg"

Results = Mapping[tuple[str, str], Mapping[str, Rounds]]
"""What the rounds took, by table and question, and then by side."""


def figures(title: str, results: Results) -> RichTable:
    """Return a line for each question and side; ratios are to floeberg's cold plan, by CPU time."""
    report = RichTable(
        *("filter", "side", "tasks", "seconds", "least–most", "CPU seconds", "ratio", "peak MB"),
        title=title,
        box=box.MARKDOWN,
    )
    for (_, question), by_side in results.items():
        cold = by_side.get(COLD)
        for name, found in by_side.items():
            if not found.measured:
                report.add_row(question, name, "", found.refusal[:40])
                continue
            least, most = found.spread(seconds)
            ratio = ""
            if cold is not None and cold.measured and cold.median(cpu_seconds):
                ratio = f"{found.median(cpu_seconds) / cold.median(cpu_seconds):.2f}x"
            report.add_row(
                question,
                name,
                f"{found.median(lambda m: m.tasks):,.0f}",
                f"{found.median(seconds):.4f}",
                f"{least:.4f}–{most:.4f}",
                f"{found.median(cpu_seconds):.4f}",
                ratio,
                f"{max(m.peak_bytes for m in found.measured) / 1e6:,.0f}",
            )
    return report


def seconds(measured: Measured) -> float:
    return measured.seconds


def cpu_seconds(measured: Measured) -> float:
    return measured.cpu_seconds


# --- targets --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """Something to reach: `found` shall be at most, or at least, `limit`."""

    what: str
    found: float
    limit: float
    unit: str
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        return self.found >= self.limit if self.at_least else self.found <= self.limit


def targets(results: Results) -> list[Target]:
    """Return those targets that the results say something about."""
    found: list[Target] = []

    def add(what: str, value: float | None, limit: float) -> None:
        if value is not None:
            found.append(Target(what, value, limit, "ms"))

    def ms(table: str, question: str, side: str) -> float | None:
        rounds = results.get((table, question), {}).get(side)
        return rounds.median(seconds) * 1000 if rounds and rounds.measured else None

    million = "files_1000000"
    add("1M files, warm, part", ms(million, "part", WARM), 10)
    add("1M files, warm, metrics", ms(million, "metrics", WARM), 60)
    add("1M files, warm, none", ms(million, "none", WARM), 600)
    add("1 file, warm, none", ms("files_1", "none", WARM), 2)
    for question in ("none", "part", "metrics"):
        add(f"1M files, restarted, {question}", ms(million, question, RESTARTED), 1000)
    with_deletes = ms("files_100000_deletes", "none", WARM)
    without = ms("files_100000", "none", WARM)
    if with_deletes is not None and without is not None:
        add("deletes of 100k files, warm", with_deletes - without, 150)
    for (table, question), by_side in results.items():
        found += _ratios(f"{table}, cold, {question}", by_side)
    found += _memory(results.get((million, "none"), {}))
    return found


def _ratios(title: str, by_side: Mapping[str, Rounds]) -> list[Target]:
    cold = by_side.get(COLD)
    if cold is None or not cold.measured:
        return []
    compared = (
        (PYICEBERG, "time", seconds, 20.0),
        (PYICEBERG, "CPU time", cpu_seconds, 20.0),
        (POLARS, "CPU time", cpu_seconds, 1.0),
        (JAVA, "CPU time", cpu_seconds, 1.0),
    )
    return [
        Target(
            f"{title}: {what} of {peer} to ours",
            by_side[peer].median(measure) / max(cold.median(measure), 1e-9),
            limit,
            "x",
            at_least=True,
        )
        for peer, what, measure, limit in compared
        if peer in by_side and by_side[peer].measured
    ]


def _memory(by_side: Mapping[str, Rounds]) -> list[Target]:
    found = []
    warm, cold = by_side.get(WARM), by_side.get(COLD)
    if warm and warm.measured and warm.measured[-1].cached_bytes:
        one = warm.measured[-1]
        found.append(Target("cache, an entry", one.cached_bytes / one.tasks, 700, "B"))
    if cold and cold.measured:
        peak = max(m.peak_bytes for m in cold.measured)
        found.append(Target("1M files, cold, peak", peak / 1e6, 1000, "MB"))
    return found


def target_table(found: Sequence[Target]) -> RichTable:
    report = RichTable("target", "limit", "found", "", title="targets", box=box.MARKDOWN)
    for target in found:
        bound = "≥" if target.at_least else "≤"
        report.add_row(
            target.what,
            f"{bound} {target.limit:,g} {target.unit}",
            f"{target.found:,.1f} {target.unit}",
            "" if target.is_met else "missed",
        )
    return report
