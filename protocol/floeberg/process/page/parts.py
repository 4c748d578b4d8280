"""The parts that a page of facts is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from floeberg.process.page.html import Html, element

Mood = Literal["good", "busy", "bad", "plain"]


@dataclass(frozen=True, slots=True)
class Column:
    label: str
    is_number: bool = False


def tile(label: str, value: str, note: str | None = None) -> Html:
    """Return one fact of the whole process, to stand among `tiles`."""
    return element(
        "div",
        element("dt", label),
        element("dd", value, element("small", note) if note else None),
    )


def tiles(*facts: Html) -> Html:
    return element("dl", *facts, class_="tiles")


def section(title: str, *content: str, note: str | None = None) -> Html:
    return element(
        "section",
        element("h2", title),
        element("p", note, class_="note") if note else None,
        *content,
    )


def table(
    caption: str, columns: Sequence[Column], rows: Iterable[Sequence[str]], *, empty: str
) -> Html:
    """Return a table, the first cell of each row its header; or `empty`, where it has no row.

    A column without anything in it is left out. On narrow screens each row is shown as a card; the
    roles say what the parts are where their layout is no table's any more.
    """
    body = list(rows)
    if not body:
        return element("p", empty, class_="empty")
    used = [n for n, _ in enumerate(columns) if n == 0 or any(row[n] for row in body)]
    head = [
        element("th", c.label, scope="col", role="columnheader", class_=_kind(c))
        for c in (columns[n] for n in used)
    ]
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head, role="row"), role="rowgroup"),
        element("tbody", *(_row(columns, row, used) for row in body), role="rowgroup"),
        role="table",
    )


def _row(columns: Sequence[Column], row: Sequence[str], used: Sequence[int]) -> Html:
    cells = (_cell(columns[n], row[n], is_first=n == 0) for n in used)
    return element("tr", *cells, role="row")


def _cell(column: Column, content: str, *, is_first: bool) -> Html:
    if is_first:
        return element("th", content, scope="row", role="rowheader", class_=_kind(column))
    return element(
        "td",
        content,
        role="cell",
        class_=_kind(column),
        data_label=column.label,
        data_empty=not content,
    )


def _kind(column: Column) -> str | None:
    return "number" if column.is_number else None


def badge(text: str, mood: Mood) -> Html:
    """Return a word that stands out; its colour says no more than the word does."""
    return element("span", text, class_=f"badge {mood}")


def code(text: str) -> Html:
    """Return an identifier."""
    return element("code", text)


def filling(value: float, maximum: float, text: str) -> Html:
    """Return how full something is that had better not be: `text` above a bar."""
    bar = element("meter", value=value, max=maximum, high=0.9 * maximum, aria_hidden="true")
    return element("span", text, bar, class_="bar")


def progress(done: float, whole: float, text: str) -> Html:
    """Return how far something has come that has an end: `text` above a bar."""
    return element(
        "span",
        text,
        element("progress", value=done, max=whole, aria_hidden="true"),
        class_="bar",
    )


def ratio(part: int, whole: int) -> str:
    """Return a part in per cent.

    >>> ratio(1, 3), ratio(0, 0)
    ('33 %', '–')
    """
    return f"{100 * part / whole:.0f} %" if whole else "–"
