from __future__ import annotations

import io

import pytest

from floeberg.embedded.cli.terminal import console, plain, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcode, 日本\u3000語\xa0", "plain, ünïcode, 日本\u3000語\xa0"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\tb\r\n", r"a\tb\r\n"),
        ("\x9b31m", r"\x9b31m"),  # the one-byte form of an escape sequence
        ("\u202eabc\u2028", r"\u202eabc\u2028"),
        ("\U000e0041", r"\U000e0041"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
    ],
)
def test_control_characters_are_shown_and_not_obeyed(text: str, shown: str):
    assert printable(text) == shown
    file = io.StringIO()
    console(file).print(plain(text))
    assert file.getvalue() == shown + "\n"


def test_what_is_to_be_kept_is_kept():
    assert printable("a\nb\t\x1b", keep="\n") == "a\nb\\t\\x1b"


def test_lines_are_whole_where_nobody_watches():
    file = io.StringIO()

    console(file).print(plain("x" * 500))

    assert file.getvalue() == "x" * 500 + "\n"
