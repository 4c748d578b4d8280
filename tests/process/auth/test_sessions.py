from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.process.auth.principals import Principal
from floeberg.process.auth.sessions import PREFIX, open_session, seal_session
from floeberg.protocol.errors import Unauthenticated
from floeberg.protocol.sealing import REGISTRATION, Keyring, seal_message

KEYS = Keyring.generate()
TOKEN = seal_session("ann", KEYS, expires_at_ms=1000, stamp="s")


def test_a_session_is_its_principals_until_it_expires():
    session = open_session(TOKEN, KEYS, now_ms=999)

    assert (session.principal, session.stamp) == (Principal("ann", "password"), "s")
    with pytest.raises(Unauthenticated, match="expired"):
        open_session(TOKEN, KEYS, now_ms=1000)


def test_other_keys_and_other_messages_are_no_session():
    import base64

    with pytest.raises(Unauthenticated):
        open_session(TOKEN, Keyring.generate(), now_ms=0)
    registration = seal_message(KEYS, REGISTRATION, b"{}")
    with pytest.raises(Unauthenticated):
        open_session(PREFIX + base64.urlsafe_b64encode(registration).decode(), KEYS, now_ms=0)


@given(place=st.integers(len(PREFIX), len(TOKEN) - 1), letter=st.characters(codec="ascii"))
def test_a_changed_letter_is_refused(place: int, letter: str):
    changed = TOKEN[:place] + letter + TOKEN[place + 1 :]
    try:
        session = open_session(changed, KEYS, now_ms=0)
    except Unauthenticated:
        return
    # the last letter of base64 has bits that mean nothing
    assert session.principal.name == "ann"


@given(length=st.integers(0, len(TOKEN) - 1))
def test_every_truncation_is_refused(length: int):
    with pytest.raises(Unauthenticated):
        open_session(TOKEN[:length], KEYS, now_ms=0)
