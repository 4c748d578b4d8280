"""What a person sees: consoles, and text that cannot take hold of a terminal."""

from __future__ import annotations

import unicodedata
from typing import TextIO

from rich.console import Console
from rich.text import Text

# Control, format (bidirectional overrides among them), surrogates, and the two line separators.
# Letters of every script and the space of every width stay.
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_UNBOUNDED = 100_000


def printable(text: str, keep: str = "") -> str:
    r"""Return `text` with control characters, but those in `keep`, as Python writes them.

    A table's values and names come from anywhere: an escape sequence in one could rewrite what
    stands on the screen.

    >>> print(printable("a\x1b[31m\u202eb\n"))
    a\x1b[31m\u202eb\n
    """
    if text.isprintable():
        return text
    return "".join(
        repr(letter)[1:-1]
        if letter not in keep and unicodedata.category(letter) in _UNPRINTABLE
        else letter
        for letter in text
    )


def plain(text: object, style: str = "") -> Text:
    """Return `text` for a console, with nothing in it read as markup or as a control character."""
    return Text(printable(str(text)), style)


def console(file: TextIO | None = None, *, stderr: bool = False) -> Console:
    """Return a console on standard output, or on `file`.

    On a terminal it is as wide as that; elsewhere lines are as long as what stands in them, since a
    program that reads them, or a person with a pager, would rather have them whole.
    """
    found = Console(file=file, stderr=stderr, highlight=False, soft_wrap=False)
    if not found.is_terminal:
        found.width = _UNBOUNDED
    return found
