"""Pictures as SVG: small, and the same in light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from tests.bench.taxi.contenders import OURS

_WIDTH, _BAR, _GAP, _LABEL, _VALUE = 720, 16, 6, 150, 70
_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 260, 60, 160, 30, 40
_OURS, _PEERS, _TEXT, _GRID = "#2f6fdb", "#9aa4b2", "#6b7280", "#9aa4b240"
_COLOURS = ("#2f6fdb", "#d9822b", "#2e9e6b", "#a855f7", "#d64550")

Points = Sequence[tuple[float, float]]


def bars(groups: Mapping[str, Mapping[str, float]]) -> str:
    """Return a picture with a group of bars for each title, of seconds by contender, the least
    first; what is longest fills the width of its group."""
    parts: list[str] = []
    y = 8
    for title, totals in groups.items():
        if not totals:
            continue
        parts.append(_text(0, y + 13, f"{title}, seconds", weight="bold"))
        y += 24
        longest = max(totals.values())
        for name, seconds in sorted(totals.items(), key=lambda item: item[1]):
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
    return _picture(parts, y)


def lines(title: str, across: str, series: Mapping[str, Points]) -> str:
    """Return a picture of lines over positive numbers, each of which is twice the one before or
    some such: `across` is what these are; the other axis begins at 0."""
    points = [point for line in series.values() for point in line]
    least, most = (math.log(choose(x for x, _ in points)) for choose in (min, max))
    highest = _round_above(max(y for _, y in points))
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        along = (math.log(x) - least) / ((most - least) or 1)
        return _LEFT + along * width, _TOP + height * (1 - y / highest)

    parts = [_text(0, 16, title, weight="bold")]
    for fraction in (0, 0.25, 0.5, 0.75, 1):
        _, y = at(math.exp(least), fraction * highest)
        parts += [
            f'<path d="M{_LEFT} {y:.1f}h{width}" stroke="{_GRID}"/>',
            _text(_LEFT - 8, y + 4, f"{fraction * highest:g}", anchor="end"),
        ]
    for x in sorted({x for x, _ in points}):
        parts.append(_text(at(x, 0)[0], _TOP + height + 18, f"{x:g}", anchor="middle"))
    parts.append(_text(_LEFT + width / 2, _HEIGHT - 4, across, anchor="middle"))
    for colour, (name, line) in zip(_COLOURS, series.items(), strict=False):
        path = "L".join("{:.1f} {:.1f}".format(*at(x, y)) for x, y in line)
        _, y = at(*line[-1])
        parts += [
            f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
            _text(_LEFT + width + 8, y + 4, name, colour=colour),
        ]
    return _picture(parts, _HEIGHT)


def _round_above(value: float) -> float:
    """Return the least of 1, 2, 4, 6, 8, 10, 20, … that is not below a positive value."""
    power = 10 ** math.floor(math.log10(value))
    return float(next(power * step for step in (1, 2, 4, 6, 8, 10) if power * step >= value))


def _picture(parts: Sequence[str], height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}"'
        f' font-family="system-ui, sans-serif" font-size="12" fill="{_TEXT}">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    weight: str = "normal",
    colour: str | None = None,
) -> str:
    fill = "" if colour is None else f' fill="{colour}"'
    return (
        f'<text x="{x:.1f}" y="{y:g}" text-anchor="{anchor}" font-weight="{weight}"{fill}>'
        f"{escape(text)}</text>"
    )
