"""The words of a filter's text: names, literals and signs, each with its place.

Spaces separate and mean nothing. What is in quotes stays in them here, so that a quoted name is no
keyword.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from floeberg.protocol.errors import BadFilter

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<hex>[xX]'[^']*')
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
      | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
      | (?P<name>[^\W\d]\w*)
      | (?P<sign>==|=|!=|<>|<=|>=|<|>|[().,])
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """`kind` is hex, text, quoted, number, name, sign or end; `start` counts characters from 0."""

    kind: str
    text: str
    start: int

    def is_word(self, word: str) -> bool:
        """Say whether this is the keyword `word`, which is in lower case."""
        return self.kind == "name" and self.text.lower() == word

    def is_sign(self, sign: str) -> bool:
        return self.kind == "sign" and self.text == sign


def tokens(text: str) -> list[Token]:
    """Return the tokens of `text`, the last of them its end. Raises `BadFilter` for anything
    else."""
    found: list[Token] = []
    place = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(text, place)
        if match is None:
            start = place + len(text[place:]) - len(text[place:].lstrip())
            raise BadFilter(
                f"{shortened(text[start:])!r}{place_of(start)} cannot be read;"
                " text goes in single quotes, and unusual names in double quotes"
            )
        kind = match.lastgroup or ""
        found.append(Token(kind, match[kind], match.start(kind)))
        place = match.end()
    return found


def place_of(start: int) -> str:
    """Return how a message names a place, counting from 1."""
    return f" at character {start + 1}"


def shortened(text: str) -> str:
    """Return as much of `text` as belongs into a message."""
    return text if len(text) <= 20 else text[:20] + "…"


def unquoted(text: str) -> str:
    """Return what stands between quotes, where a doubled quote is one."""
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)


def name_of(token: Token) -> str:
    """Return the name that a token of kind name or quoted writes."""
    return unquoted(token.text) if token.kind == "quoted" else token.text
