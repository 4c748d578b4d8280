from __future__ import annotations

import pytest

from floeberg.process.auth.principals import Principal
from floeberg.process.auth.tokens import TokenList, new_token
from floeberg.protocol.errors import BadConfig

PLAIN = "a-token-of-24-letters-xx"


def test_tokens_stand_for_principals_plain_or_hashed():
    token, line = new_token("bob")
    tokens = TokenList.parse(f"# of the fleet\n\nann: {PLAIN}\n{line}\nann:another-{PLAIN}\n")

    assert tokens.find(PLAIN) == Principal("ann", "token")
    assert tokens.find(f"another-{PLAIN}") == Principal("ann", "token")
    assert tokens.find(token) == Principal("bob", "token")
    assert tokens.find(token[:-1]) is None
    assert tokens.find("") is None
    assert token not in line


def test_the_hash_of_a_token_is_no_token():
    _, line = new_token("bob")
    tokens = TokenList.parse(line)

    assert tokens.find(line.strip().partition(":")[2]) is None


@pytest.mark.parametrize(
    "line",
    [
        "hush-hush-hush-hush",
        ":hush-hush-hush-hush",
        "ann:hush",
        "ann:",
        "ann:sha256$hush",
        "ann:hush hush hush hush hüsh",
        "x" * 300 + ":hush-hush-hush-hush",
        f"bob:{PLAIN}",
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_not_shown(line: str):
    with pytest.raises(BadConfig, match="line 2") as refused:
        TokenList.parse(f"ann:{PLAIN}\n{line}\n")

    assert "hush" not in str(refused.value)
    assert PLAIN not in str(refused.value)


@pytest.mark.parametrize("name", ["", "a:b", "#ann", " ann", "a\nb", "x" * 257])
def test_no_line_is_made_for_what_is_no_name(name: str):
    with pytest.raises(BadConfig):
        new_token(name)


def test_tokens_are_not_shown():
    assert PLAIN not in repr(TokenList.parse(f"ann:{PLAIN}"))
