"""The report of all parts: one file of Markdown with pictures beside it, and marks on a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.bench.taxi.aims import aim_table, aims
from tests.bench.taxi.page import filled
from tests.bench.taxi.parts import Part

TITLES: Mapping[str, str] = {
    "trips": "12 million trips in 24 files",
    "trips_positions": "1% deleted by position",
    "trips_vectors": "1% deleted by deletion vectors",
    "trips_equal_10k": "10,000 equality deletes",
    "trips_equal_1m": "1 million equality deletes",
    "wide": "wide strings",
    "store": "more trips, in an object store",
    "streams": "streams by themselves",
    "clients": "many clients",
    "fleet": "100 workers and 10,000 endpoints",
    "profiles": "where the time goes",
}
"""What each part is about, in the order of the report."""


def write_report(directory: Path, parts: Mapping[str, Part]) -> str:
    """Write `report.md` and the pictures into a directory, and return the text."""
    sections = [
        f"## {title} (`{name}`)\n\n{_with_pictures(name, parts[name], '')}"
        for name, title in TITLES.items()
        if name in parts
    ]
    aims_section = f"## what was to be reached (`aims`)\n\n{_aims(parts)}"
    text = "\n\n".join([_machine(parts), *sections, aims_section]) + "\n"
    directory.mkdir(parents=True, exist_ok=True)
    _write_pictures(directory, parts)
    (directory / "report.md").write_text(text)
    return text


def write_page(page: Path, parts: Mapping[str, Part]) -> None:
    """Write what parts say between the marks of a page, and pictures into `images` beside it."""
    texts = {name: _with_pictures(name, part, "images/") for name, part in parts.items()}
    texts |= {"aims": _aims(parts), "machine": _machine(parts)}
    page.write_text(filled(page.read_text(), texts))
    _write_pictures(page.parent / "images", parts)


def _with_pictures(name: str, part: Part, folder: str) -> str:
    links = "".join(f"![{TITLES[name]}]({folder}{picture})\n\n" for picture in part.pictures)
    return links + part.text


def _machine(parts: Mapping[str, Part]) -> str:
    """Return when parts were measured, what was compared, and where."""
    whens = sorted(part.measured for part in parts.values())
    wheres = sorted({part.compared for part in parts.values()})
    return f"Measured from {whens[0]} to {whens[-1]} UTC: {'; or '.join(wheres)}."


def _aims(parts: Mapping[str, Part]) -> str:
    return aim_table(aims({k: v for part in parts.values() for k, v in part.figures.items()}))


def _write_pictures(directory: Path, parts: Mapping[str, Part]) -> None:
    for part in parts.values():
        for name, picture in part.pictures.items():
            (directory / name).write_text(picture)
