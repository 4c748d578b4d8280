"""The matrix of tables and oracles, as the test run prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

Outcome: TypeAlias = tuple[str, str]
"""What became of a scan (`agrees`, `differs`, `refuses`, …), and the reason where there is one."""

Cells: TypeAlias = dict[tuple[str, str], Counter[Outcome]]
"""How many of a table's scans had which outcome, by table and oracle."""


def lines(cells: Mapping[tuple[str, str], Counter[Outcome]]) -> Iterator[str]:
    """Yield a line for each table, a column for each oracle, and then the reasons in full."""
    oracles = list(dict.fromkeys(oracle for _, oracle in cells))
    tables = list(dict.fromkeys(table for table, _ in cells))
    found = [o for outcomes in cells.values() for o in outcomes if o[1]]
    numbers = {outcome: f"[{i}]" for i, outcome in enumerate(dict.fromkeys(found), 1)}

    def text(outcomes: Counter[Outcome]) -> str:
        parts = (f"{o[0]}{numbers.get(o, '')} {count}" for o, count in outcomes.items())
        return ", ".join(parts)

    rows = [["table", *oracles]]
    rows += [[t, *(text(cells.get((t, o), Counter())) for o in oracles)] for t in tables]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
    yield ""
    for (what, reason), number in numbers.items():
        yield f"{number} {what}: {reason}"
