"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:,.0f}"
