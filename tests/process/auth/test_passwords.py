from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from floeberg.process.auth.passwords import PasswordHash, PasswordList, hash_password
from floeberg.process.auth.principals import Principal
from floeberg.protocol.errors import BadConfig, ServerBusy


def cheap(password: str) -> PasswordHash:
    """A hash of the least cost that is taken."""
    made = hash_password(password)
    text = made.to_text()
    assert text.startswith("scrypt$15$8$1$")
    return made


def test_a_user_is_known_by_the_password():
    users = PasswordList({"ann": cheap("correct horse"), "bob": cheap("ü")})
    again = PasswordList.parse("# users\n" + users.to_text())

    assert again == users
    assert again.find("ann", "correct horse") == Principal("ann", "password")
    assert again.find("bob", "ü") == Principal("bob", "password")
    assert again.find("ann", "correct hors") is None
    assert again.find("ann", "") is None
    assert again.find("eve", "correct horse") is None


def test_the_same_password_has_another_hash_each_time():
    first, second = cheap("x"), cheap("x")

    assert first != second
    assert first.stamp != second.stamp


@pytest.mark.parametrize(
    "hashed",
    [
        "",
        "hush",
        "scrypt$15$8$1$hush",
        "scrypt$10$8$1$AAAAAAAAAAAAAAAAAAAAAA$" + "A" * 43,  # cheap to guess
        "scrypt$24$8$1$AAAAAAAAAAAAAAAAAAAAAA$" + "A" * 43,  # 16 GiB to check
        "scrypt$15$8$1$AAAA$" + "A" * 43,
        "scrypt$15$8$1$AAAAAAAAAAAAAAAAAAAAAA$hush",
        "scrypt$x$8$1$AAAAAAAAAAAAAAAAAAAAAA$" + "A" * 43,
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_not_shown(hashed: str):
    with pytest.raises(BadConfig, match="line 1") as refused:
        PasswordList.parse(f"ann:{hashed}\n")

    assert "hush" not in str(refused.value)


def test_a_user_is_there_once():
    line = PasswordList({"ann": cheap("x")}).to_text()

    with pytest.raises(BadConfig, match="line 2: the user is there twice"):
        PasswordList.parse(line + line)


def test_a_flood_of_logins_is_refused_and_not_queued_for_ever():
    hashed = cheap("x")
    busy = 0

    def check(_: int) -> int:
        try:
            return int(not hashed.fits("x"))
        except ServerBusy:
            return 1

    with ThreadPoolExecutor(60) as pool:
        busy = sum(pool.map(check, range(60)))

    assert busy > 0
    assert hashed.fits("x")


def test_an_empty_password_is_refused():
    with pytest.raises(BadConfig):
        hash_password("")
