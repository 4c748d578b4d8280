from __future__ import annotations

import pytest

from floeberg.protocol.errors import BadTicket, ExpiredTicket
from floeberg.protocol.lending import CREDENTIALS, LentTable, open_table, seal_table
from floeberg.protocol.sealing import REGISTRATION, TICKET, Keyring, seal_message

KEYRING = Keyring.generate()
NOW = 1_800_000_000_000
TABLE = LentTable(
    catalog="lake", identifier=("db", "a.b"), table_uuid="9c12d441", until_ms=NOW + 1000
)


def test_a_table_comes_back_until_its_time():
    raw = seal_table(TABLE, KEYRING)

    assert open_table(raw, KEYRING, now_ms=NOW) == TABLE
    assert b'"identifier"' not in raw
    with pytest.raises(ExpiredTicket):
        open_table(raw, KEYRING, now_ms=NOW + 1000)


def test_what_was_not_sealed_for_this_is_refused():
    raw = seal_table(TABLE, KEYRING)
    sealed = TABLE.model_dump_json().encode()
    made_up = [
        b"",
        sealed,
        seal_table(TABLE, Keyring.generate()),
        # what a client or a worker has of other kinds
        seal_message(KEYRING, TICKET, sealed),
        seal_message(KEYRING, REGISTRATION, sealed),
        *(raw[:i] for i in range(0, len(raw), 7)),
        *(raw[:i] + bytes([raw[i] ^ 1]) + raw[i + 1 :] for i in range(0, len(raw), 5)),
    ]

    for other in made_up:
        with pytest.raises(BadTicket, match="not sealed with a key"):
            open_table(other, KEYRING, now_ms=NOW)


def test_a_later_version_may_say_more():
    more = b'{"catalog":"lake","identifier":["t"],"table_uuid":null,"until_ms":1,"more":2}'

    opened = open_table(seal_message(KEYRING, CREDENTIALS, more), KEYRING, now_ms=0)
    assert opened.identifier == ("t",)
