from __future__ import annotations

import pytest

from floeberg.protocol.errors import BadSql
from floeberg.server.sql.remembered import Remembered


class Made:
    """Makes lists, and knows of what."""

    def __init__(self, characters: int) -> None:
        self.texts: list[str] = []
        self._remembered: Remembered[str, list[str]] = Remembered(characters)

    def of(self, text: str) -> list[str]:
        def make() -> list[str]:
            self.texts.append(text)
            return [text]

        return self._remembered.get(text, len(text), make)


def test_what_comes_again_is_not_made_again() -> None:
    made = Made(10)

    assert made.of("a") is made.of("a")
    assert made.texts == ["a"]


def test_what_was_used_longest_ago_makes_room() -> None:
    made = Made(10)
    for text in ("aaaa", "bbbb", "aaaa", "cccc"):
        made.of(text)

    for text in ("aaaa", "cccc", "bbbb"):
        made.of(text)

    assert made.texts == ["aaaa", "bbbb", "cccc", "bbbb"]


def test_one_that_is_too_long_drives_no_other_out() -> None:
    made = Made(10)
    made.of("a")

    assert made.of("b" * 11) is not made.of("b" * 11)
    made.of("a")

    assert made.texts == ["a", "b" * 11, "b" * 11]


def test_errors_are_not_remembered() -> None:
    remembered: Remembered[str, int] = Remembered()

    def fail() -> int:
        raise BadSql("no")

    with pytest.raises(BadSql):
        remembered.get("a", 1, fail)
    assert remembered.get("a", 1, lambda: 7) == 7
