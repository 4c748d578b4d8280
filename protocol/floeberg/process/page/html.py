"""HTML that is well formed and escaped because of how it is built."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"br", "hr", "img", "link", "meta"})


class Html(str):
    """Text that is HTML already. Anything else is escaped where it becomes a part of an element."""

    __slots__ = ()


Child = str | None
Attribute = str | int | float | bool | None


def element(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """Return an element. A child that is None is left out.

    An attribute's name ends in `_` where Python has the word for itself, and `_` within it is a
    `-`. True is an attribute without a value; False and None leave it out.

    >>> element("td", "a < b", class_="name", data_label="what")
    '<td class="name" data-label="what">a &lt; b</td>'
    >>> element("p", element("b", "&"), " or ", None, hidden=True)
    '<p hidden><b>&amp;</b> or </p>'
    """
    opening = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_quoted(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{opening}>")
    return Html(f"<{name}{opening}>{joined(children)}</{name}>")


def joined(children: Iterable[Child]) -> Html:
    """Return children one after the other, what is no HTML yet escaped."""
    return Html(
        "".join(
            child if isinstance(child, Html) else _escaped(child)
            for child in children
            if child is not None
        )
    )


def _escaped(text: str) -> str:
    return escape(_plain(text), quote=False)


def _quoted(value: str | int | float | bool) -> str:
    return escape(_plain(str(value)))


def _plain(text: str) -> str:
    """Return `text` without what HTML can't hold: control characters and halves of surrogates."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text
    )
