"""Names in messages: what one that isn't known may have been meant to be, and as much of it as
belongs into a sentence.

Clients choose these names, and a request may be of many megabytes. Comparing takes time with the
product of two names' lengths, so a suggestion is bounded in every direction.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from heapq import nsmallest

LONGEST_NAME = 100
"""How many characters of a name are quoted; a longer one is compared with nothing."""

MOST_COMPARED = 300
"""How many names one is compared with: those that are nearest in length, as typing errors are."""


def nearest(name: str, known: Iterable[str], n: int = 3, cutoff: float = 0.6) -> list[str]:
    """Return at most `n` of the names in `known` that `name` may have been meant to be, the
    likeliest first; their case counts for nothing.

    `cutoff` is how alike they must be, from 0 to 1.

    >>> nearest("Amuont", ["id", "amount", "region"])
    ['amount']
    """
    if len(name) > LONGEST_NAME:
        return []
    candidates = nsmallest(
        MOST_COMPARED,
        (k for k in known if len(k) <= LONGEST_NAME),
        key=lambda k: abs(len(k) - len(name)),
    )
    written: dict[str, list[str]] = {}
    for candidate in candidates:
        written.setdefault(candidate.casefold(), []).append(candidate)
    near = get_close_matches(name.casefold(), written, n=n, cutoff=cutoff)
    return [candidate for folded in near for candidate in written[folded]][:n]


def cut(text: str, longest: int = LONGEST_NAME) -> str:
    """Return as much of `text` as belongs into a message.

    >>> cut("abcdef", 3)
    'abc…'
    """
    return text if len(text) <= longest else text[:longest] + "…"


def quoted(text: str, longest: int = LONGEST_NAME) -> str:
    """Return `text` in quotes, cut.

    >>> quoted("it's"), quoted("abcdef", 3)
    ('"it\\'s"', "'abc…'")
    """
    return repr(cut(text, longest))
