from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from floeberg.client import connect
from floeberg.client.credentials import Login, NoCredentials, Token, credentials_of
from floeberg.protocol.errors import BadConfig, Unauthenticated
from tests.support.callers import ANN, password_file, token_file
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.orders import live_ids

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def guarded(warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """Takes tickets from nobody but who asked for them."""
    folder = tmp_path_factory.mktemp("auth")
    passwords = password_file(folder, ann=PASSWORD)
    auth = {"auth_tokens": token_file(folder), "auth_passwords": passwords}
    with local_fleet(warehouse, workers=0, bind_tickets=True, **auth) as fleet:
        for _ in range(2):
            fleet.add_worker(**auth)
        yield fleet


@pytest.mark.parametrize("who", [{"token": ANN}, {"username": "ann", "password": PASSWORD}])
def test_credentials_go_to_the_coordinator_and_to_workers(guarded: LocalFleet, who: dict[str, str]):
    with connect(guarded.location, **who) as lake:
        table = lake.table("db.orders")

        assert table.scan().to_arrow().num_rows == len(live_ids())
        assert table.scan().count() == len(live_ids())
        assert lake.status().workers


@pytest.mark.parametrize(
    ("who", "told"),
    [
        ({}, "must know who calls; send a bearer token"),
        ({"token": "hush-hush-hush-hush"}, "none that this server knows"),
        ({"username": "ann", "password": "hush"}, "the username or the password is wrong"),
        ({"username": "eve", "password": PASSWORD}, "the username or the password is wrong"),
    ],
)
def test_a_refusal_is_told_in_the_servers_words(
    guarded: LocalFleet, who: dict[str, str], told: str
):
    with connect(guarded.location, **who) as lake, pytest.raises(Unauthenticated, match=told):
        lake.tables()


def test_a_server_that_asks_nothing_takes_no_password(fleet: LocalFleet):
    from floeberg.protocol.errors import Unsupported

    with (
        connect(fleet.location, username="ann", password="x") as lake,
        pytest.raises(Unsupported),
    ):
        lake.tables()


def test_a_login_is_repeated_every_five_minutes():
    now, logins = [0.0], []

    def log_in(username: str, password: str) -> bytes:
        logins.append((username, password, now[0]))
        return b"Bearer %d" % len(logins)

    login = Login("ann", PASSWORD, lambda: now[0])
    headers = []
    for now[0] in (0.0, 299.0, 301.0, 500.0):
        headers.append(login.authorization(log_in))

    assert headers == [b"Bearer 1", b"Bearer 1", b"Bearer 2", b"Bearer 2"]
    assert [when for *_, when in logins] == [0.0, 301.0]


@pytest.mark.parametrize(
    "given",
    [
        ("a token", "ann", "x"),
        (None, "ann", None),
        (None, None, "x"),
        (None, "", "x"),
        (None, "a:b", "x"),
        ("", None, None),
        ("hush\nhush", None, None),
        ("hüsh", None, None),
    ],
)
def test_credentials_that_make_no_sense_are_refused(given: tuple[str | None, ...]):
    with pytest.raises(BadConfig) as refused:
        credentials_of(*given)
    assert "hush" not in str(refused.value)


def test_secrets_are_not_shown():
    assert "hush" not in repr(Token("hush")) + repr(Login("ann", "hush"))
    assert isinstance(credentials_of(None, None, None), NoCredentials)
