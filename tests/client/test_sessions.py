from __future__ import annotations

import pytest

from floeberg.client.sessions import Cookies, SetCookies, SqlOptions, refused
from floeberg.protocol.errors import InternalError
from floeberg.protocol.flight_sql.actions import OptionError


def test_a_cookie_is_kept_for_a_while_and_by_its_options():
    now = 0.0
    made: list[str] = []

    def ask() -> bytes:
        made.append("made")
        return b"%d" % len(made)

    cookies = Cookies(clock=lambda: now)
    one, other = SqlOptions(schema="db"), SqlOptions(schema="crm")

    assert [cookies.of(one, ask), cookies.of(one, ask), cookies.of(other, ask)] == [
        b"1",
        b"1",
        b"2",
    ]
    now = 301.0
    assert cookies.of(one, ask) == b"3"


def test_the_cookies_of_a_connection_are_bounded():
    cookies = Cookies()
    for number in range(200):
        cookies.of(SqlOptions(snapshot_id=number), lambda: b"a cookie")

    assert len(cookies._kept) <= 64


def test_a_cookie_is_shown_as_it_was_set():
    kept = SetCookies()
    call = kept.start_call(None)  # type: ignore[arg-type]

    call.received_headers({"set-cookie": ["floeberg-session=flo.x; Path=/; HttpOnly"]})

    assert kept.header() == b"floeberg-session=flo.x"
    with pytest.raises(InternalError):
        SetCookies().header()


def test_options_that_a_server_refuses_are_told_one_by_one():
    error = refused(
        {"schema": "a", "ref": "b"},
        {"ref": OptionError.INVALID_VALUE, "schema": OptionError.INVALID_NAME},
    )

    assert str(error) == (
        "ref='b' is refused: write the name of a branch or a tag; schema is an option that the"
        " server doesn't have"
    )
