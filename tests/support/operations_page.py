"""What docs/operations.md tells of in its tables."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
_FIRST_CELL = re.compile(r"^\| `(?P<name>\w+)(?P<labels>\{[\w,]+\})?` \|")


def documented(heading: str) -> dict[str, set[str]]:
    """Return what the tables below a heading name in their first column, with the labels there."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    level = heading.partition(" ")[0]
    found = {}
    for line in re.split(rf"\n#{{1,{len(level)}}} ", section)[0].splitlines():
        cell = _FIRST_CELL.match(line)
        if cell is not None:
            labels = (cell["labels"] or "").strip("{}")
            assert cell["name"] not in found, f"{cell['name']} stands twice below {heading}"
            found[cell["name"]] = set(filter(None, labels.split(",")))
    return found
