from __future__ import annotations

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.process.auth.credentials import Basic, Bearer, Credentials, parse_authorization
from floeberg.protocol.errors import Unauthenticated


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([""], None),
        (["Bearer abc"], Bearer("abc")),
        (["bearer  abc "], Bearer("abc")),
        ([b"Bearer abc", "Bearer abc"], Bearer("abc")),
        ([basic("ann:a:b")], Basic("ann", "a:b")),
        ([basic("ann:")], Basic("ann", "")),
        ([basic("änn:ü")], Basic("änn", "ü")),
        ([basic("ann:x").rstrip("=")], Basic("ann", "x")),
    ],
)
def test_reads_what_clients_send(values: list[str | bytes], expected: Credentials | None):
    assert parse_authorization(values) == expected


@pytest.mark.parametrize(
    "values",
    [
        ["Bearer"],
        ["Bearer "],
        ["hush-hush"],
        ["Digest hush-hush"],
        ["Basic hush-hush!"],
        [basic("hush-hush")],
        ["Bearer hush-hush", "Bearer another"],
        [b"Bearer hush\xff\xfe"],
        ["Bearer " + "hush" * 10_000],
    ],
)
def test_refuses_anything_else_and_repeats_nothing_of_it(values: list[str | bytes]):
    with pytest.raises(Unauthenticated) as refused:
        parse_authorization(values)

    assert "hush" not in str(refused.value)


@given(st.lists(st.one_of(st.text(max_size=60), st.binary(max_size=60)), max_size=3))
def test_nothing_but_a_refusal_comes_of_what_nobody_would_send(values: list[str | bytes]):
    with suppress(Unauthenticated):
        parse_authorization(values)


def test_secrets_are_not_shown():
    assert "hush" not in repr(Bearer("hush")) + repr(Basic("ann", "hush"))
