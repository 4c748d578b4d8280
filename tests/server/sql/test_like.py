from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.server.sql.like import like, literal


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("%", ["", "a", "äß\n"], []),
        ("", [""], ["a"]),
        ("my_table", ["my_table", "myXtable"], ["mytable", "my_tables", "My_table"]),
        (r"my\_table", ["my_table"], ["myXtable"]),
        (r"100\%", ["100%"], ["100", "1000", r"100\%"]),
        (r"a\\b", [r"a\b"], [r"a\\b", "ab"]),
        (r"\a", ["a"], [r"\a"]),
        ("a\\", ["a\\"], ["a"]),
        ("%ab%b", ["abb", "xabxb", "ababb"], ["ab", "abba"]),
        ("a.b*[c]", ["a.b*[c]"], ["axbbc"]),
        ("_%_", ["ab", "abc"], ["a", ""]),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, matching: list[str], others: list[str]):
    matches = like(pattern)

    assert [name for name in matching + others if matches(name)] == matching


def test_no_pattern_lets_everything_through():
    assert like(None)("anything")


LETTERS = st.text("ab%_\\", max_size=8)


@given(LETTERS, st.text("ab%_\\", max_size=10))
def test_a_pattern_means_what_it_says(pattern: str, name: str):
    tokens = re.findall(r"\\.|.", pattern, re.DOTALL)
    meaning = {"%": ".*", "_": "."}
    expression = "".join(meaning.get(t) or re.escape(t[1:] if len(t) > 1 else t) for t in tokens)

    assert like(pattern)(name) == (re.fullmatch(expression, name, re.DOTALL) is not None)


@given(LETTERS)
def test_a_literal_is_the_one_name_that_its_pattern_matches(pattern: str):
    name = literal(pattern)

    if name is not None:
        assert like(pattern)(name)
        assert not like(pattern)(name + "a")


def test_many_wildcards_come_to_an_end():
    # as a regular expression, longer than anybody waits
    assert not like("%a" * 200 + "b")("a" * 2000)
