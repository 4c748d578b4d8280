"""The sums of the queries as bars, drawn as SVG: small, and the same in light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

from tests.bench.taxi.contenders import OURS
from tests.bench.taxi.reporting import total_seconds
from tests.bench.taxi.rounds import Results

_WIDTH, _BAR, _GAP, _LABEL, _VALUE = 720, 16, 6, 150, 70
_OURS, _PEERS, _TEXT = "#2f6fdb", "#9aa4b2", "#6b7280"


def bars(results: Mapping[str, Results], titles: Mapping[str, str]) -> str:
    """Return a picture with a group of bars for each table; what is longest fills the width of its
    group."""
    parts: list[str] = []
    y = 8
    for table, title in titles.items():
        totals = _totals(results.get(table, {}))
        if not totals:
            continue
        parts.append(_text(0, y + 13, f"{title}, seconds", weight="bold"))
        y += 24
        longest = max(totals.values())
        for name, seconds in totals.items():
            length = max(seconds / longest * (_WIDTH - _LABEL - _VALUE), 1)
            colour = _OURS if name in OURS else _PEERS
            parts += [
                _text(_LABEL - 8, y + 12, name, anchor="end"),
                f'<rect x="{_LABEL}" y="{y}" width="{length:.1f}" height="{_BAR}" rx="2"'
                f' fill="{colour}"/>',
                _text(_LABEL + length + 6, y + 12, f"{seconds:.2f}"),
            ]
            y += _BAR + _GAP
        y += 14
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}"'
        f' font-family="system-ui, sans-serif" font-size="12" fill="{_TEXT}">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _totals(results: Results) -> dict[str, float]:
    names = list(next(iter(results.values()), {}))
    totals = {name: total_seconds(results, name) for name in names}
    return dict(sorted(((n, t) for n, t in totals.items() if t), key=lambda item: item[1]))


def _text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )
