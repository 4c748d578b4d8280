"""What a part of the benchmark has found, and the directory in which parts wait for each other.

A run may measure some parts only: the report is made of what the directory has of all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Part:
    """`text` is Markdown; `figures` are numbers that aims are about, by name; `pictures` are SVG,
    by file name. `measured` is when, to the minute, and `compared` what, on which machine."""

    text: str
    figures: Mapping[str, float] = field(default_factory=dict)
    pictures: Mapping[str, str] = field(default_factory=dict)
    measured: str = ""
    compared: str = ""


def keep(directory: Path, name: str, part: Part) -> None:
    """Write a part, in the place of one of the same name."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_text(json.dumps(asdict(part), indent=1))


def kept(directory: Path) -> dict[str, Part]:
    """Return the parts that a directory holds, by name."""
    return {
        path.stem: Part(**json.loads(path.read_text())) for path in sorted(directory.glob("*.json"))
    }
