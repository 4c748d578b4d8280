"""What clients carry for a server, and who they are meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from floeberg.process.auth import Gate, Principal
from floeberg.process.auth.carrying import (
    COOKIE,
    Carrier,
    open_carrier,
    seal_carrier,
)
from floeberg.process.auth.tokens import TokenList
from floeberg.process.auth.watched import WatchedFile
from floeberg.protocol.errors import BadCommand, Unauthenticated
from floeberg.protocol.sealing import Keyring
from tests.support.callers import ANN, token_file

KEYS = Keyring.generate()
OPTIONS = {"ref": "main", "snapshot_id": 7}


def gate(folder: Path | None = None) -> Gate:
    """A gate that asks for tokens, where there is a folder to keep them in."""
    if folder is None:
        return Gate(KEYS)
    return Gate(KEYS, tokens=WatchedFile("auth_tokens", token_file(folder), TokenList.parse))


def carried_by(headers: dict[str, str]) -> tuple[list[str], list[str]]:
    """What a client that keeps both kinds sends next: authorization, and cookies."""
    cookie = headers["set-cookie"].split(";")[0]
    return [headers["authorization"]] if "authorization" in headers else [], [cookie]


def test_a_carrier_comes_back_and_a_damaged_one_is_refused():
    token = seal_carrier(Carrier(OPTIONS, "secret"), KEYS)

    assert open_carrier(token, KEYS) == Carrier(OPTIONS, "secret")
    assert "secret" not in repr(open_carrier(token, KEYS))
    for other in (token[:-1], token[:-3] + "abc", "flo.", "flo.é", token + "A"):
        with pytest.raises(Unauthenticated, match="connect again"):
            open_carrier(other, KEYS)
    with pytest.raises(Unauthenticated, match="another fleet"):
        open_carrier(token, Keyring.generate())


def test_who_carries_something_is_who_they_were(tmp_path: Path):
    asks = gate(tmp_path)
    headers = dict(asks.to_carry([f"Bearer {ANN}"], OPTIONS))

    authorization, cookies = carried_by(headers)

    assert ANN not in str(headers)
    assert asks.admit(authorization) == Principal("ann", "token")
    assert asks.carried(authorization) == OPTIONS
    # a client that keeps cookies alone sends its own token still
    assert asks.carried([f"Bearer {ANN}"], cookies) == OPTIONS
    with pytest.raises(Unauthenticated):
        asks.admit([], None)
    with pytest.raises(Unauthenticated):
        # a cookie proves nothing
        asks.admit([f"Bearer {cookies[0].partition('=')[2]}"])


def test_a_carrier_ends_with_the_token_that_is_in_it(tmp_path: Path):
    asks = gate(tmp_path)
    authorization, _ = carried_by(dict(asks.to_carry([f"Bearer {ANN}"], OPTIONS)))
    tokens = tmp_path / "tokens"

    tokens.write_text("bob:bobs-token-of-24-letters\n")

    later = Gate(KEYS, tokens=WatchedFile("auth_tokens", str(tokens), TokenList.parse))
    with pytest.raises(Unauthenticated, match="none that this server knows"):
        later.admit(authorization)


def test_what_is_carried_is_replaced_and_does_not_grow():
    asks = gate()
    first, _ = carried_by(dict(asks.to_carry([], OPTIONS)))

    second, _ = carried_by(dict(asks.to_carry(first, {"ref": "b"})))

    assert asks.carried(second) == {"ref": "b"}
    assert len(second[0]) < len(first[0])
    assert asks.admit(second) is None
    assert asks.carried([]) == {}


def test_the_later_of_token_and_cookie_counts():
    asks = gate()
    token, cookie = carried_by(dict(asks.to_carry([], {"ref": "a"})))
    later_token, later_cookie = carried_by(dict(asks.to_carry(token, {"ref": "b"}, cookie)))

    for shown in ((token, later_cookie), (later_token, cookie), (later_token, later_cookie)):
        assert asks.carried(*shown) == {"ref": "b"}
    # a client that has lost one of them goes on from the later one
    last, _ = carried_by(dict(asks.to_carry(token, {"ref": "c"}, later_cookie)))
    assert asks.carried(last, later_cookie) == {"ref": "c"}


def test_a_token_for_somebody_else_is_left_alone():
    asks = gate()

    headers = dict(asks.to_carry(["Bearer a-proxys"], OPTIONS))

    assert "authorization" not in headers
    assert asks.carried(["Bearer a-proxys"], [headers["set-cookie"]]) == OPTIONS


def test_nothing_to_carry_drops_the_cookie():
    headers = dict(gate().to_carry([], {}))

    assert headers["set-cookie"] == f"{COOKIE}=; Path=/; HttpOnly; Max-Age=0"
    assert gate().carried([], [f"other=1; {COOKIE}="]) == {}


def test_more_than_headers_hold_is_refused():
    with pytest.raises(BadCommand, match="fewer or shorter options"):
        list(gate().to_carry([], {"ref": "x" * 4000}))


def test_what_cannot_be_read_is_not_passed_over():
    with pytest.raises(Unauthenticated, match="connect again"):
        gate().carried(["Bearer flo.damaged"])
    with pytest.raises(Unauthenticated, match="connect again"):
        gate().carried([], [f"{COOKIE}=flo.damaged"])
    # who has options that can't be read may still read with a ticket
    assert gate().admit(["Bearer flo.damaged"]) is None
